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
	"strings"

	"github.com/andybalholm/brotli"

	"github.com/robotspolicy/caddy-robots-policy/robotstxt"
)

// errNone means that the upstream has no such file, as opposed to a failure.
var errNone = errors.New("there is no such file")

// errDenied means that the upstream does not answer every client. A file that it served earlier stays in use: it may
// have denied the client whose request happened to fetch, because Caddy proxies in the name of that client.
var errDenied = errors.New("access denied")

var (
	errTooLarge  = fmt.Errorf("larger than %d KiB, which is more than crawlers read", robotstxt.MaxSize>>10)
	errPartial   = errors.New("it has too many lines for too many crawlers, and they are not all read")
	errTimeout   = fmt.Errorf("no complete response within %v", fetchTimeout)
	errTruncated = errors.New("the response was cut off")
)

// request requests a file of the upstream from the following handlers, until ctx is done. An error that wraps errNone
// is a definite answer (RFC 9309 section 2.3.1.3), any other a failure (section 2.3.1.4). The client's request is
// changed in place during the call, because placeholders are bound to its address.
func (c *Cache[T]) request(ctx context.Context, client *http.Request, next Next) (data []byte, err error) {
	rec := &recorder{header: http.Header{}}
	saved := *client
	defer func() {
		*client = saved
		if p := recover(); p != nil {
			// Caddy's proxy panics with ErrAbortHandler when a response is cut off.
			data, err = nil, errTruncated
			if e, ok := p.(error); !ok || !errors.Is(e, http.ErrAbortHandler) {
				err = fmt.Errorf("a handler panicked: %v", p)
			}
		}
		if rec.tooLarge {
			data, err = rec.file(c.kind.Name, c.kind.IsLikely, c.kind.Cut)
		} else if err != nil && ctx.Err() != nil {
			data, err = nil, errTimeout
		}
	}()
	*client = *c.newRequest(ctx, &saved)
	if err := next.ServeHTTP(rec, client); err != nil {
		return nil, statusError(c.server.ErrorStatus(err))
	}
	if ctx.Err() != nil {
		return nil, ctx.Err()
	}
	return rec.file(c.kind.Name, c.kind.IsLikely, c.kind.Cut)
}

func statusError(status int) error {
	err := fmt.Errorf("status %d %s", status, http.StatusText(status))
	if status >= 500 || status == http.StatusTooManyRequests || status == http.StatusRequestTimeout {
		return err
	}
	if status == http.StatusUnauthorized || status == http.StatusForbidden {
		return fmt.Errorf("%w: %w: %w", errNone, errDenied, err)
	}
	return fmt.Errorf("%w: %w", errNone, err)
}

// recorder is a ResponseWriter that buffers a response up to the size that crawlers read.
type recorder struct {
	header   http.Header
	status   int
	sent     http.Header // copy of header when the body began
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

// file returns the file in the response. For one that is too large it returns the part that cut leaves, which
// may be nil.
func (rec *recorder) file(name string, isLikely func(string, []byte) bool, cut func([]byte) []byte) ([]byte, error) {
	switch {
	case rec.status == 0:
		return nil, fmt.Errorf("%w: no response", errNone)
	case rec.status != http.StatusOK:
		return nil, statusError(rec.status)
	}
	body, err := decode(rec.body, strings.Join(rec.sent["Content-Encoding"], ","))
	if rec.tooLarge && errors.Is(err, io.ErrUnexpectedEOF) {
		err = nil // its compressed form was cut
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
	if kind := rec.sent.Get("Content-Type"); !isLikely(kind, body) {
		return nil, fmt.Errorf("%w: the response is not a %s (Content-Type: %q)", errNone, name, kind)
	}
	return body, nil
}

// wholeLines returns the part of a too large robots.txt that crawlers read (RFC 9309 section
// 2.5), up to the last whole line. Half a path could allow more than the whole one.
func wholeLines(body []byte) []byte {
	body = body[:min(len(body), robotstxt.MaxSize)]
	if end := bytes.LastIndexAny(body, "\r\n"); end >= 0 {
		return body[:end+1]
	}
	return nil
}

// decode decodes a Content-Encoding that was used although not requested, as of files that are stored compressed, up to
// one byte more than crawlers read. With an error it returns what came before that.
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

// looksLikeRobots reports whether a body is a robots.txt rather than a page that an application serves for every
// path. The Content-Type alone does not tell: markup is never a robots.txt, and a body that is not labeled as plain
// text must contain a User-agent line.
func looksLikeRobots(contentType string, body []byte) bool {
	start := bytes.TrimLeft(bytes.TrimPrefix(body, []byte("\ufeff")), " \t\r\n")
	if bytes.HasPrefix(start, []byte("<")) {
		return false
	}
	kind, _, err := mime.ParseMediaType(contentType)
	if err != nil || kind == "text/plain" || kind == "application/byte-stream" {
		return true
	}
	return bytes.Contains(bytes.ToLower(body), []byte("user-agent"))
}
