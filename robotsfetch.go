// SPDX-License-Identifier: Apache-2.0

package robotspolicy

import (
	"bytes"
	"compress/flate"
	"compress/gzip"
	"compress/zlib"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"mime"
	"net/http"
	"net/url"
	"strings"

	"github.com/andybalholm/brotli"
	"github.com/caddyserver/caddy/v2/modules/caddyhttp"
	"github.com/klauspost/compress/zstd"

	"github.com/robotspolicy/caddy-robots-policy/robotsserve"
)

// errNoRobots says that the upstream has no robots.txt, in contrast to one that
// cannot tell now.
var errNoRobots = errors.New("it has none")

// errDenied says that the upstream does not answer everybody. What it has answered
// others holds on: it may have shut out the client that happened to come first, as
// whose proxy Caddy asks.
var errDenied = errors.New("it was denied")

var (
	errRobotsTooLarge = fmt.Errorf("it is over %d KiB, and crawlers read no more", robotsserve.MaxFile>>10)
	errRobotsLate     = fmt.Errorf("it takes longer than %v to answer", upstreamTimeout)
	errRobotsPartly   = errors.New("its answer broke off")
)

// fetchRobots asks for the upstream's own robots.txt through the handlers that
// follow on the route, until ctx ends. Errors of errNoRobots are answers (RFC 9309
// section 2.3.1.3), others are failures (section 2.3.1.4). The request is
// changed meanwhile, as placeholders go by its address.
func fetchRobots(ctx context.Context, r *http.Request, next caddyhttp.Handler) (data []byte, err error) {
	rec := &robotsRecorder{header: http.Header{}}
	saved := *r
	defer func() {
		*r = saved
		if p := recover(); p != nil {
			// Caddy's proxy ends so when an answer breaks off.
			data, err = nil, errRobotsPartly
			if e, ok := p.(error); !ok || !errors.Is(e, http.ErrAbortHandler) {
				err = fmt.Errorf("asking for it panicked: %v", p)
			}
		}
		if rec.tooLarge {
			data, err = nil, errRobotsTooLarge
		} else if err != nil && ctx.Err() != nil {
			data, err = nil, errRobotsLate
		}
	}()
	*r = *robotsRequest(ctx, &saved)
	err = next.ServeHTTP(rec, r)
	if err != nil {
		status := http.StatusInternalServerError
		var failed caddyhttp.HandlerError
		if errors.As(err, &failed) && failed.StatusCode != 0 {
			status = failed.StatusCode
		}
		return nil, statusError(status)
	}
	if ctx.Err() != nil {
		return nil, ctx.Err()
	}
	return rec.robots()
}

// robotsRequest is the request for the upstream's robots.txt. The answer is for
// everybody, so that nothing of the client that happened to come first may stand in
// it: its headers, its query, its cookies, its way to write the host. Which site was
// asked is kept where a trusted proxy tells it, and the query of a rewrite where the
// client sent none.
func robotsRequest(ctx context.Context, of *http.Request) *http.Request {
	if vars, ok := of.Context().Value(caddyhttp.VarsCtxKey).(map[string]any); ok {
		ctx = context.WithValue(ctx, caddyhttp.VarsCtxKey, maps.Clone(vars))
	}
	ctx = context.WithValue(ctx, caddyhttp.ExtraLogFieldsCtxKey, new(caddyhttp.ExtraLogFields))
	query := ""
	if original, ok := ctx.Value(caddyhttp.OriginalRequestCtxKey).(http.Request); ok {
		if original.URL.RawQuery == "" {
			query = of.URL.RawQuery
		}
		original.Method = http.MethodGet
		original.URL, original.RequestURI = plainURL(original.URL, "")
		ctx = context.WithValue(ctx, caddyhttp.OriginalRequestCtxKey, original)
	}
	r := of.WithContext(ctx)
	r.Method = http.MethodGet
	r.Host = siteHost(of)
	r.URL, r.RequestURI = plainURL(of.URL, query)
	r.Body, r.ContentLength, r.TransferEncoding, r.GetBody = http.NoBody, 0, nil, nil
	r.Trailer, r.Form, r.PostForm, r.MultipartForm = nil, nil, nil, nil
	r.Header = http.Header{
		"Accept":          {"text/plain"},
		"Accept-Encoding": {"identity"},
		"User-Agent":      {"caddy-robots-policy"},
	}
	for name, v := range forwarded(of) {
		r.Header[name] = v
	}
	return r
}

// plainURL is an address without what a client may add to it, with a query, and as
// a request target.
func plainURL(u *url.URL, query string) (*url.URL, string) {
	plain := *u
	plain.RawQuery, plain.ForceQuery, plain.Fragment, plain.RawFragment, plain.User = query, false, "", "", nil
	if plain.Path == "/robots.txt" {
		plain.RawPath = "" // "/%72obots.txt" is the same resource
	}
	return &plain, plain.RequestURI()
}

// statusError is what a status other than 200 says.
func statusError(status int) error {
	err := fmt.Errorf("the answer is %d %s", status, http.StatusText(status))
	if status >= 500 || status == http.StatusTooManyRequests || status == http.StatusRequestTimeout {
		return err
	}
	if status == http.StatusUnauthorized || status == http.StatusForbidden {
		return fmt.Errorf("%w: %w: %w", errNoRobots, errDenied, err)
	}
	return fmt.Errorf("%w: %w", errNoRobots, err)
}

// robotsRecorder takes an answer, of which it keeps as much as crawlers read.
type robotsRecorder struct {
	header   http.Header
	status   int
	sent     http.Header // the header as it was when the body began
	body     []byte
	tooLarge bool
}

func (rec *robotsRecorder) Header() http.Header { return rec.header }

func (rec *robotsRecorder) WriteHeader(status int) {
	if rec.status == 0 && status >= 200 {
		rec.status, rec.sent = status, rec.header.Clone()
	}
}

func (rec *robotsRecorder) Write(b []byte) (int, error) {
	rec.WriteHeader(http.StatusOK)
	if rec.tooLarge = rec.tooLarge || len(rec.body)+len(b) > robotsserve.MaxFile; rec.tooLarge {
		return 0, errRobotsTooLarge
	}
	rec.body = append(rec.body, b...)
	return len(b), nil
}

// Flush implements http.Flusher: proxies want to.
func (rec *robotsRecorder) Flush() { rec.WriteHeader(http.StatusOK) }

// robots is the file that was answered with.
func (rec *robotsRecorder) robots() ([]byte, error) {
	switch {
	case rec.status == 0:
		return nil, fmt.Errorf("%w: there is no answer", errNoRobots)
	case rec.status != http.StatusOK:
		return nil, statusError(rec.status)
	}
	body, err := decoded(rec.body, strings.Join(rec.sent["Content-Encoding"], ","))
	if err != nil {
		return nil, err
	}
	if kind := rec.sent.Get("Content-Type"); !looksLikeRobots(kind, body) {
		return nil, fmt.Errorf("%w: the answer is no text of that kind (Content-Type: %q)", errNoRobots, kind)
	}
	return body, nil
}

// decoded undoes a coding that was not asked for.
func decoded(body []byte, coding string) ([]byte, error) {
	var from io.Reader = bytes.NewReader(body)
	var err error
	switch strings.ToLower(strings.TrimSpace(coding)) {
	case "", "identity":
		return body, nil
	case "gzip", "x-gzip":
		from, err = gzip.NewReader(from)
	case "deflate": // RFC 9110 section 8.4.1.2: with a header, which some leave out
		if from, err = zlib.NewReader(from); err != nil {
			from, err = flate.NewReader(bytes.NewReader(body)), nil
		}
	case "br":
		from = brotli.NewReader(from)
	case "zstd":
		var z *zstd.Decoder
		if z, err = zstd.NewReader(from, zstd.WithDecoderConcurrency(1), zstd.WithDecoderLowmem(true), zstd.WithDecoderMaxWindow(8<<20)); err == nil {
			defer z.Close()
			from = z
		}
	default:
		return nil, fmt.Errorf("its Content-Encoding is %q, which was not asked for", coding)
	}
	if err == nil {
		body, err = io.ReadAll(io.LimitReader(from, robotsserve.MaxFile+1))
	}
	if err != nil {
		return nil, fmt.Errorf("undoing its Content-Encoding %s: %w", coding, err)
	}
	if len(body) > robotsserve.MaxFile {
		return nil, errRobotsTooLarge
	}
	return body, nil
}

// looksLikeRobots reports whether an answer is a robots.txt and not a page that
// an application shows for any address. Servers label either as they like: what
// looks like markup is none, what is labelled otherwise than as plain text must
// name a crawler.
func looksLikeRobots(contentType string, body []byte) bool {
	start := bytes.TrimLeft(bytes.TrimPrefix(body, []byte("\ufeff")), " \t\r\n")
	if bytes.HasPrefix(start, []byte("<")) {
		return false
	}
	kind, _, err := mime.ParseMediaType(contentType)
	if err != nil || kind == "text/plain" || kind == "application/octet-stream" {
		return true
	}
	return bytes.Contains(bytes.ToLower(body), []byte("user-agent"))
}
