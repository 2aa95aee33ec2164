// SPDX-License-Identifier: Apache-2.0

package handler

import (
	"context"
	"errors"
	"maps"
	"net"
	"net/http"
	"net/url"
	"strings"

	"github.com/robotspolicy/caddy-robots-policy/handler/upstream"
)

// Server answers a handler's questions about the server around it, and takes its messages.
// Without one, a handler goes by the request alone, as net/http serves it.
type Server interface {
	upstream.Server

	// ClientIP returns the IP address of the client, without a port, "" if it is not known.
	// Clients are not verified by an address of another form.
	ClientIP(r *http.Request) string
	// Vars returns what handlers note about a request for those that see it later, nil if
	// there is no place for it. Keys begin with "robots_policy.".
	Vars(r *http.Request) map[string]any
	// IsInclude reports whether the response becomes a part of a page. Meta tags in it would
	// apply to the whole page.
	IsInclude(r *http.Request) bool
	// Publisher returns what is called with each request with a decision, such as to log
	// it. It is called once for many requests; d is nil for those that are by anyone but a
	// known crawler.
	Publisher(d *Decision) func(r *http.Request)
}

// Error is an answer that the server's error routes may replace.
type Error struct {
	Status int
	Err    error
}

func (e *Error) Error() string { return e.Err.Error() }

func (e *Error) Unwrap() error { return e.Err }

// NetHTTP is the Server of programs that have no other. Embed it to change what it knows.
type NetHTTP struct{}

// Original implements Server. Handlers that come first, such as http.StripPrefix, change
// the URL of a request but not RequestURI.
func (NetHTTP) Original(r *http.Request) (target string, u *url.URL) {
	if path, query, _ := strings.Cut(r.RequestURI, "?"); path == r.URL.Path && query == r.URL.RawQuery {
		return r.RequestURI, r.URL
	}
	sent, err := url.ParseRequestURI(r.RequestURI)
	if err != nil || r.Method == http.MethodConnect { // whose target is a host and a port
		return r.RequestURI, r.URL
	}
	return r.RequestURI, sent
}

// TrustsProxy implements Server: it trusts none.
func (NetHTTP) TrustsProxy(*http.Request) bool { return false }

// InErrorRoute implements Server.
func (NetHTTP) InErrorRoute(*http.Request) bool { return false }

// IsInclude implements Server.
func (NetHTTP) IsInclude(*http.Request) bool { return false }

// ClientIP implements Server.
func (NetHTTP) ClientIP(r *http.Request) string {
	host, _, err := net.SplitHostPort(r.RemoteAddr)
	if err != nil {
		return r.RemoteAddr
	}
	return host
}

type varsKey struct{}

// requestVars are variables of one request. Its context is also that of requests that a
// handler makes on its way, maybe several at a time; the variables are not theirs.
type requestVars struct {
	vars        map[string]any
	method, uri string
	url         *url.URL // if uri is empty, as in a request that does not come from a client
	upstream    bool     // of a request for the upstream's file, whatever it is changed to
}

// Vars implements Server.
func (NetHTTP) Vars(r *http.Request) map[string]any {
	v, _ := r.Context().Value(varsKey{}).(*requestVars)
	if v == nil || !v.upstream && (v.method != r.Method || v.uri != r.RequestURI || v.uri == "" && v.url != r.URL) {
		return nil
	}
	return v.vars
}

// withVars returns the request with variables, so that another handler of ours that it
// passes does not do the same again.
func withVars(r *http.Request) *http.Request {
	if (NetHTTP{}).Vars(r) != nil {
		return r
	}
	vars := &requestVars{vars: map[string]any{}, method: r.Method, uri: r.RequestURI, url: r.URL}
	return r.WithContext(context.WithValue(r.Context(), varsKey{}, vars))
}

// ForUpstream implements Server.
func (NetHTTP) ForUpstream(ctx context.Context, _ *url.URL, _ string) context.Context {
	upstreams := &requestVars{vars: map[string]any{}, upstream: true}
	if v, _ := ctx.Value(varsKey{}).(*requestVars); v != nil {
		maps.Copy(upstreams.vars, v.vars)
	}
	return context.WithValue(ctx, varsKey{}, upstreams)
}

// ErrorStatus implements Server.
func (NetHTTP) ErrorStatus(err error) int {
	if e, ok := errors.AsType[*Error](err); ok {
		return e.Status
	}
	return http.StatusInternalServerError
}

// Publisher implements Server. It publishes nothing.
func (NetHTTP) Publisher(*Decision) func(*http.Request) { return func(*http.Request) {} }
