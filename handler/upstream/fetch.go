// SPDX-License-Identifier: Apache-2.0

package upstream

import (
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"net/url"
	"strings"

	"github.com/andybalholm/brotli"

	"github.com/robotspolicy/caddy-robots-policy/policy"
	"github.com/robotspolicy/caddy-robots-policy/robotstxt"
)

// errNone means that the upstream has no such file. It is not a failure. If there is a response, but the file is
// treated as missing, the error wraps errNone, but its text gives the reason.
var errNone = errors.New("there is no such file")

// errDenied means that the upstream denied access to the file, for example with status 403. A file that it served
// earlier stays in use. Caddy sends the request in the name of a client, so the upstream may have denied only this
// client.
var errDenied error = deniedError{}

type deniedError struct{}

func (deniedError) Error() string { return "access denied" }

func (deniedError) Is(target error) bool { return target == errNone }

// otherDocumentError means that the upstream did not answer with the file, but for example with a maintenance page.
type otherDocumentError struct{ error }

func (otherDocumentError) Is(target error) bool { return target == errNone }

func isOther(err error) bool {
	_, ok := errors.AsType[otherDocumentError](err)
	return ok
}

// maxRedirects is the number of redirects that crawlers follow (RFC 9309 section 2.3.1.2).
const maxRedirects = 5

var (
	errTooLarge  = fmt.Errorf("larger than %d KiB, which is more than crawlers read", robotstxt.MaxSize>>10)
	errPartial   = errors.New("the groups of the file have too many lines and crawlers, so some lines are not read")
	errTimeout   = fmt.Errorf("no complete response within %v", fetchTimeout)
	errTruncated = errors.New("the response was cut off")
)

// request requests the upstream's file from the next handlers, and follows redirects, until ctx is done. An error that
// wraps errNone means that the file does not exist (RFC 9309 section 2.3.1.3). All other errors are failures (section
// 2.3.1.4).
func (c *Cache[T]) request(ctx context.Context, client *http.Request, next Next) (data []byte, err error) {
	var to *url.URL
	for range maxRedirects + 1 {
		rec, err := c.ask(ctx, client, next, to)
		if err != nil {
			return nil, err
		}
		location := rec.redirect()
		if location == "" {
			return rec.file(c.kind.Reject, c.kind.Cut)
		}
		if to, err = redirected(client, to, location); err != nil {
			return nil, err
		}
	}
	return nil, fmt.Errorf("more than %d redirects", maxRedirects)
}

// redirected returns the target of a redirect. It returns an error if the target is on another host.
func redirected(client *http.Request, from *url.URL, location string) (*url.URL, error) {
	if from == nil {
		from = client.URL
	}
	to, err := url.Parse(location)
	if err != nil {
		return nil, fmt.Errorf("redirected to %.100q, which is not a valid address", location)
	}
	elsewhere := to.Host != "" && policy.NormalizeHost(to.Host) != policy.NormalizeHost(client.Host)
	port := to.Port()
	elsewhere = elsewhere || port != "" && port != "80" && port != "443" && !strings.HasSuffix(client.Host, ":"+port)
	to = from.ResolveReference(to)
	if elsewhere || to.Opaque != "" || !strings.HasPrefix(to.Path, "/") {
		return nil, fmt.Errorf("redirected to %.100q, which is on another host", location)
	}
	return to, nil
}

// ask requests the file or, if to is not nil, the target of a redirect. During the call, it overwrites the client's
// request, instead of making a new one, because the server's placeholders have a pointer to the client's request.
func (c *Cache[T]) ask(ctx context.Context, client *http.Request, next Next, to *url.URL) (rec *recorder, err error) {
	rec = &recorder{header: http.Header{}}
	saved := *client
	defer func() {
		*client = saved
		if p := recover(); p != nil {
			// Caddy's proxy panics with ErrAbortHandler when a response is cut off.
			err = errTruncated
			if e, ok := p.(error); !ok || !errors.Is(e, http.ErrAbortHandler) {
				err = fmt.Errorf("a handler panicked: %v", p)
			}
		}
		if rec.tooLarge {
			err = nil // the handler only stopped because the response is too large
		} else if err != nil && ctx.Err() != nil {
			err = errTimeout
		}
	}()
	*client = *c.newRequest(ctx, &saved, to)
	if err := next.ServeHTTP(rec, client); err != nil {
		return rec, statusError(c.server.ErrorStatus(err))
	}
	return rec, ctx.Err()
}

func statusError(status int) error {
	err := fmt.Errorf("status %d %s", status, http.StatusText(status))
	switch {
	case status == http.StatusNotFound || status == http.StatusGone:
		return fmt.Errorf("%w: %w", errNone, err)
	case status >= 400 && status < 500 && status != http.StatusTooManyRequests && status != http.StatusRequestTimeout:
		return fmt.Errorf("%w: %w", errDenied, err)
	}
	return err
}

// recorder is a ResponseWriter that stores a response in memory, up to the size that crawlers read.
type recorder struct {
	header   http.Header
	status   int
	sent     http.Header // copy of header from when the body began
	body     []byte
	tooLarge bool
}

func (rec *recorder) Header() http.Header { return rec.header }

func (rec *recorder) WriteHeader(status int) {
	if rec.status == 0 && status >= 200 {
		rec.status, rec.sent = status, rec.header.Clone()
	}
}

func (rec *recorder) Write(b []byte) (int, error) {
	rec.WriteHeader(http.StatusOK)
	n := min(len(b), robotstxt.MaxSize-len(rec.body))
	rec.body = append(rec.body, b[:n]...)
	if n < len(b) {
		rec.tooLarge = true
		return n, errTooLarge
	}
	return n, nil
}

// Flush implements http.Flusher, which proxies call.
func (rec *recorder) Flush() { rec.WriteHeader(http.StatusOK) }

// redirect returns the target of a redirect, or "" if the response is not a redirect.
func (rec *recorder) redirect() string {
	switch rec.status {
	case http.StatusMovedPermanently, http.StatusFound, http.StatusSeeOther, http.StatusTemporaryRedirect, http.StatusPermanentRedirect:
		return rec.sent.Get("Location")
	}
	return ""
}

// file returns the file in the response. If the file is too large, it returns the part that cut returns. If cut is nil
// or returns nil, it returns errTooLarge.
func (rec *recorder) file(reject func(string, []byte) error, cut func([]byte) []byte) ([]byte, error) {
	switch {
	case rec.status == 0, rec.status == http.StatusNoContent:
		return nil, fmt.Errorf("%w: no response", errNone)
	case rec.status != http.StatusOK && rec.status != http.StatusNonAuthoritativeInfo:
		return nil, statusError(rec.status)
	}
	body, err := decode(rec.body, strings.Join(rec.sent["Content-Encoding"], ","))
	if rec.tooLarge && errors.Is(err, io.ErrUnexpectedEOF) {
		err = nil // the compressed file was cut off because of its size
	}
	if err != nil {
		return nil, err
	}
	if rec.tooLarge || len(body) > robotstxt.MaxSize {
		if cut == nil {
			return nil, errTooLarge
		}
		if body = cut(body); body == nil {
			return nil, errTooLarge
		}
	}
	kind := rec.sent.Get("Content-Type")
	if err := reject(kind, body); err != nil {
		return nil, fmt.Errorf("%w (Content-Type: %q)", otherDocumentError{err}, kind)
	}
	return body, nil
}

// wholeLines returns the complete lines in the first 500 KiB of a robots.txt, because crawlers do not read more (RFC
// 9309 section 2.5). It removes a last line that is cut off: a cut path in an Allow line could allow more than the
// complete path.
func wholeLines(body []byte) []byte {
	body = body[:min(len(body), robotstxt.MaxSize)]
	if end := bytes.LastIndexAny(body, "\r\n"); end >= 0 {
		return body[:end+1]
	}
	return nil
}

// decode decodes a body that the upstream has encoded although the request asked for "identity". Some servers store
// compressed files, and send them to all clients. decode stops one byte after robotstxt.MaxSize, so the caller can see
// that the file is too large. If decoding fails, it returns the bytes decoded so far together with the error.
func decode(body []byte, coding string) ([]byte, error) {
	var from io.Reader = bytes.NewReader(body)
	var err error
	switch strings.ToLower(strings.TrimSpace(coding)) {
	case "", "identity":
		return body, nil
	case "gzip", "x-gzip":
		from, err = gzip.NewReader(from)
	case "br":
		from = brotli.NewReader(from)
	default:
		return nil, fmt.Errorf("unsupported Content-Encoding %q", coding)
	}
	if err == nil {
		body, err = io.ReadAll(io.LimitReader(from, robotstxt.MaxSize+1))
	}
	if err != nil {
		return body, fmt.Errorf("decoding Content-Encoding %s: %w", coding, err)
	}
	return body, nil
}

// notRobots returns an error if a body is not a robots.txt. Some applications, for example, serve a page for every
// path. The Content-Type alone does not decide, because some servers send a wrong one. But if there is a Content-Type
// other than plain text, the body must contain the word User-agent.
func notRobots(contentType string, body []byte) error {
	if robotstxt.IsPage(body) {
		return robotstxt.ErrPage
	}
	kind, _, err := mime.ParseMediaType(contentType)
	if err != nil || kind == "text/plain" || kind == "application/byte-stream" || bytes.Contains(bytes.ToLower(body), []byte("user-agent")) {
		return nil
	}
	return errors.New("this is not a robots.txt, because it is not plain text, and has no User-agent line")
}
