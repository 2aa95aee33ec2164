// SPDX-License-Identifier: Apache-2.0

package handler

import (
	"cmp"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"go.uber.org/zap"

	"github.com/robotspolicy/caddy-robots-policy/site"
)

// Style is the protocol in which another server asks whether to answer a request that it has received.
type Style string

const (
	// StyleNginx is auth_request of nginx: the target is in X-Original-URI, the method in
	// X-Original-Method. Because nginx treats every other status as a failure, the status of a
	// block is 403, and Robots-Policy-Status has the policy's. A field has one line, because a
	// variable of nginx has only the first.
	StyleNginx Style = "nginx"
	// StyleForward is ForwardAuth of Traefik and forward_auth of Caddy: target, method and
	// host are in X-Forwarded-Uri, -Method and -Host.
	StyleForward Style = "forward"
	// StyleEnvoy is ext_authz of Envoy over HTTP, with the path prefix DecidePath. The rest of
	// the path, the method and the host come from the request.
	StyleEnvoy Style = "envoy"
)

// DecidePath is the path at which other servers ask. Requests for other paths are for
// robots.txt and the rights documents, which they pass on.
const DecidePath = "/decide"

// statusField has the status that the policy demands, for StyleNginx; statusClose, which
// is nginx's own, stands for closing the connection without an answer.
const (
	statusField = "Robots-Policy-Status"
	statusClose = 444
)

// Decide answers another server, which must be one that Server.TrustsProxy trusts. A request
// for DecidePath asks about a request that the other server has received. The answer is 200
// with the fields for the page, or the block. The page's own fields are not known, so those
// fields are not merged with them.
func (h *Handler) Decide(w http.ResponseWriter, r *http.Request) error {
	if !h.Server.TrustsProxy(r) {
		return h.reject(r, errors.New("the server that asks is not among the trusted proxies"))
	}
	if r.URL.Path != DecidePath && !strings.HasPrefix(r.URL.Path, DecidePath+"/") {
		return h.Serve(w, r, notFound{})
	}
	asked, err := h.Options.Decide.request(r)
	if err != nil {
		return h.reject(r, err)
	}
	target, ok := site.PathOf(asked.RequestURI, asked.URL)
	if !ok {
		answerOpaque(w) // in every style, because it is not a block
		return nil
	}
	c := &check{ResponseWriter: w, style: h.Options.Decide}
	return h.serve(c, asked, c, target, c)
}

// reject logs why a server gets no answer, and returns the error for it.
func (h *Handler) reject(r *http.Request, err error) error {
	if ok, skipped := h.samples.Sample(lineKind{}, time.Now()); ok {
		h.Logger.Error("not deciding for another server", zap.String("from", r.RemoteAddr), zap.Error(err), zap.Int("skipped", skipped))
	}
	return &Error{http.StatusForbidden, err}
}

// request is the request that another one asks about.
func (s Style) request(r *http.Request) (*http.Request, error) {
	method, host := r.Method, r.Host
	var target string
	var err error
	switch s {
	case StyleEnvoy:
		if target = strings.TrimPrefix(r.RequestURI, DecidePath); target == "" {
			err = errors.New("after " + DecidePath + " the path is missing: the server that asks must add it")
		}
	case StyleNginx:
		if target, err = single(r, "X-Original-Uri"); err == nil {
			method, err = single(r, "X-Original-Method")
		}
	case StyleForward:
		if target, err = single(r, "X-Forwarded-Uri"); err == nil {
			if method, err = single(r, "X-Forwarded-Method"); err == nil {
				host, err = single(r, "X-Forwarded-Host")
			}
		}
	}
	if err != nil {
		return nil, err
	}
	u := parseTarget(method, target)
	if _, rest, ok := strings.Cut(target, ":"); ok && u.Scheme != "" && u.Host == "" && u.Opaque == "" {
		target = "//" + rest // some find a host after any number of slashes (WHATWG)
	}
	asked := r.WithContext(r.Context())
	asked.Method, asked.RequestURI, asked.URL = method, target, u
	asked.Host = cmp.Or(u.Host, host) // RFC 9112 section 3.2.2
	return asked, nil
}

// parseTarget reads a request target as net/http does, or else as servers may that take
// what net/http does not, such as "/100%". Then only the scheme and the host are known for
// what they are.
func parseTarget(method, target string) *url.URL {
	if method == http.MethodConnect && !strings.HasPrefix(target, "/") {
		target = "connect://" + target
	}
	if u, err := url.ParseRequestURI(target); err == nil {
		return u
	}
	u := &url.URL{}
	if scheme, rest, ok := strings.Cut(target, "://"); ok && !strings.HasPrefix(target, "/") {
		end := strings.IndexAny(rest+"/", `/\?#`)
		u.Scheme, u.Host, target = scheme, rest[strings.LastIndexByte(rest[:end], '@')+1:end], rest[end:]
	}
	u.Path, u.RawQuery, _ = strings.Cut(target, "?")
	u.RawPath = u.Path
	return u
}

// single returns the value of a field that the other server sets. A second line would be
// the client's.
func single(r *http.Request, field string) (string, error) {
	switch values := r.Header[field]; {
	case len(values) == 0 || values[0] == "":
		return "", fmt.Errorf("%s is missing: the server that asks must set it", field)
	case len(values) > 1:
		return "", fmt.Errorf("%s is there twice: the server that asks must replace what clients send", field)
	default:
		return values[0], nil
	}
}

// check is a request that another server has received, and the answer to that server.
type check struct {
	http.ResponseWriter
	style  Style
	passed bool
}

// hasPassed reports whether the request may pass. It is false of nil, a request that was received here.
func (c *check) hasPassed() bool { return c != nil && c.passed }

// ServeHTTP implements upstream.Next: the request may pass.
func (c *check) ServeHTTP(w http.ResponseWriter, _ *http.Request) error {
	c.passed = true
	w.WriteHeader(http.StatusOK)
	return nil
}

// WriteHeader gives a block a status that the other server takes for one.
func (c *check) WriteHeader(status int) {
	switch {
	case c.passed:
	case c.style == StyleNginx:
		c.Header().Set(statusField, strconv.Itoa(status))
		status = http.StatusForbidden
	case status == statusClose:
		status = http.StatusForbidden
	}
	if c.style == StyleNginx {
		for field, lines := range c.Header() {
			if len(lines) > 1 {
				c.Header()[field] = []string{strings.Join(lines, ", ")}
			}
		}
	}
	c.ResponseWriter.WriteHeader(status)
}

// Unwrap is for http.ResponseController.
func (c *check) Unwrap() http.ResponseWriter { return c.ResponseWriter }

// notFound is the handler after the documents.
type notFound struct{}

// ServeHTTP implements upstream.Next.
func (notFound) ServeHTTP(http.ResponseWriter, *http.Request) error {
	return &Error{http.StatusNotFound, errors.New("neither robots.txt nor a document of the policy")}
}
