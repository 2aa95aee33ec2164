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

// Style is the protocol in which another server asks whether it may answer a request.
type Style string

const (
	// StyleNginx is the protocol of nginx's auth_request. The header fields X-Original-URI and X-Original-Method have
	// the target and the method of the request. A block always has status 403, because nginx treats other statuses as
	// failures; the field Robots-Policy-Status has the status that the policy demands. Each response field has a single
	// line, because nginx's variables contain only the first line of a field.
	StyleNginx Style = "nginx"
	// StyleForward is the protocol of Traefik's ForwardAuth and Caddy's forward_auth. The target, method and host
	// are in X-Forwarded-Uri, X-Forwarded-Method and X-Forwarded-Host.
	StyleForward Style = "forward"
	// StyleEnvoy is the protocol of Envoy's ext_authz over HTTP with the path prefix DecidePath. The path after this
	// prefix, the method and the host belong to the request that Envoy asks about.
	StyleEnvoy Style = "envoy"
)

// DecidePath is the path where other servers ask for a decision. They also fetch robots.txt and the rights documents
// from this server, at the paths of these files.
const DecidePath = "/decide"

// statusField is the header field with the status that the policy demands, for StyleNginx. statusClose is nginx's
// status for closing the connection without an answer.
const (
	statusField = "Robots-Policy-Status"
	statusClose = 444
)

// Decide answers another server. The other server must be a proxy that Server.TrustsProxy trusts. A request for
// DecidePath asks about a request that the other server has received. If that request is allowed, the response has
// status 200 and the header fields for the page. Otherwise, it is the response for the blocked client. Decide cannot
// merge its fields with the page's own fields, because Decide does not know the page.
func (h *Handler) Decide(w http.ResponseWriter, r *http.Request) error {
	if !h.Server.TrustsProxy(r) {
		return h.reject(r, errors.New("the server that asks for the decision is not a trusted proxy"))
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
		answerOpaque(w) // the same in every style, because this response is not a block
		return nil
	}
	c := &check{ResponseWriter: w, style: h.Options.Decide}
	return h.serve(c, asked, c, target, c)
}

// reject logs why another server does not get a decision, and returns the error to answer with.
func (h *Handler) reject(r *http.Request, err error) error {
	if ok, skipped := h.samples.Sample(lineKind{}, time.Now()); ok {
		h.Logger.Error("rejected another server's request for a decision", zap.String("from", r.RemoteAddr), zap.Error(err), zap.Int("skipped", skipped))
	}
	return &Error{http.StatusForbidden, err}
}

// request returns the request that another server asks about.
func (s Style) request(r *http.Request) (*http.Request, error) {
	method, host := r.Method, r.Host
	var target string
	var err error
	switch s {
	case StyleEnvoy:
		if target = strings.TrimPrefix(r.RequestURI, DecidePath); target == "" {
			err = errors.New("after " + DecidePath + " the path is missing: the server that asks for the decision must add it; change the configuration of that server")
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
		target = "//" + rest // WHATWG parsers find a host after any number of slashes
	}
	asked := r.WithContext(r.Context())
	asked.Method, asked.RequestURI, asked.URL = method, target, u
	asked.Host = cmp.Or(u.Host, host) // RFC 9112 section 3.2.2
	return asked, nil
}

// parseTarget parses a request target like net/http. Other servers accept some targets that net/http rejects, such as
// "/100%". For such a target, parseTarget separates the scheme, host, path and query, but does not decode them.
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

// single returns the value of a header field that the other server sets. A second line of the field is an error,
// because that line would come from the client.
func single(r *http.Request, field string) (string, error) {
	switch values := r.Header[field]; {
	case len(values) == 0 || values[0] == "":
		return "", fmt.Errorf("%s is missing: the server that asks for the decision must send this header; add it to the configuration of that server", field)
	case len(values) > 1:
		return "", fmt.Errorf("%s occurs twice: the server that asks for the decision must replace the field that clients send; change the configuration of that server", field)
	default:
		return values[0], nil
	}
}

// check is a request that another server has received, together with the answer to that server.
type check struct {
	http.ResponseWriter
	style  Style
	passed bool
}

// hasPassed reports whether the other server may let the request pass. If c is nil, there is no other server, so it
// returns false.
func (c *check) hasPassed() bool { return c != nil && c.passed }

// ServeHTTP implements upstream.Next. It is called if the request may pass.
func (c *check) ServeHTTP(w http.ResponseWriter, _ *http.Request) error {
	c.passed = true
	w.WriteHeader(http.StatusOK)
	return nil
}

// WriteHeader replaces the status of a blocked request with one that the other server understands as a block.
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

// Unwrap returns the underlying writer, for http.ResponseController.
func (c *check) Unwrap() http.ResponseWriter { return c.ResponseWriter }

// notFound is the handler for paths that are neither robots.txt nor a rights document.
type notFound struct{}

// ServeHTTP implements upstream.Next.
func (notFound) ServeHTTP(http.ResponseWriter, *http.Request) error {
	return &Error{http.StatusNotFound, errors.New("the path is neither robots.txt nor a rights document of the policy")}
}
