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

// Server gives a handler information about requests, and learns the handler's decisions. Without a Server, a handler
// only uses the information in the request, as net/http passes it.
type Server interface {
	upstream.Server

	// ClientIP returns the client's IP address without a port, or "" if it is not known. If the result is not a valid
	// IP address, the client is not verified.
	ClientIP(r *http.Request) string
	// Vars returns the variables of a request, in which a handler leaves notes for later handlers of the same
	// request. It returns nil if the server has no place for variables. All keys begin with "robots_policy.".
	Vars(r *http.Request) map[string]any
	// IsInclude reports whether the response will be inserted into a page. The handler passes such a request on without
	// applying the policy, because meta tags in the response would apply to the whole page.
	IsInclude(r *http.Request) bool
	// Publisher returns a function that is called with each request that has the decision d, for example to log it. The
	// result of one call of Publisher is used for many requests. d is nil for requests without a known crawler.
	Publisher(d *Decision) func(r *http.Request)
}

// Error is an error with an HTTP status. The server's error routes may answer it.
type Error struct {
	Status int
	Err    error
}

func (e *Error) Error() string { return e.Err.Error() }

func (e *Error) Unwrap() error { return e.Err }

// NetHTTP is the Server for programs that use only net/http. To override some of its methods, embed it.
type NetHTTP struct{}

// Original implements Server. It uses RequestURI, because earlier handlers, such as http.StripPrefix, change the
// URL.
func (NetHTTP) Original(r *http.Request) (target string, u *url.URL) {
	if path, query, _ := strings.Cut(r.RequestURI, "?"); path == r.URL.Path && query == r.URL.RawQuery {
		return r.RequestURI, r.URL
	}
	sent, err := url.ParseRequestURI(r.RequestURI)
	if err != nil || r.Method == http.MethodConnect { // the target of CONNECT is a host and a port
		return r.RequestURI, r.URL
	}
	return r.RequestURI, sent
}

// TrustsProxy implements Server. It trusts no proxy.
func (NetHTTP) TrustsProxy(*http.Request) bool { return false }

// InErrorRoute implements Server. It returns false.
func (NetHTTP) InErrorRoute(*http.Request) bool { return false }

// IsInclude implements Server. It returns false.
func (NetHTTP) IsInclude(*http.Request) bool { return false }

// ClientIP implements Server. It returns the address of the connection.
func (NetHTTP) ClientIP(r *http.Request) string {
	host, _, err := net.SplitHostPort(r.RemoteAddr)
	if err != nil {
		return r.RemoteAddr
	}
	return host
}

type varsKey struct{}

// requestVars holds the variables of one request. A handler may use the request's context for further requests. The
// variables do not apply to these requests.
type requestVars struct {
	vars        map[string]any
	method, uri string
	url         *url.URL // used if uri is empty, because the request does not come from a client
	upstream    bool     // the request is for the upstream's file, even if handlers change the request
}

// Vars implements Server.
func (NetHTTP) Vars(r *http.Request) map[string]any {
	v, _ := r.Context().Value(varsKey{}).(*requestVars)
	if v == nil || !v.upstream && (v.method != r.Method || v.uri != r.RequestURI || v.uri == "" && v.url != r.URL) {
		return nil
	}
	return v.vars
}

// withVars returns a copy of the request with variables. Other handlers of this package use the variables to detect
// what was already done for the request.
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

// Publisher implements Server. The returned function does nothing.
func (NetHTTP) Publisher(*Decision) func(*http.Request) { return func(*http.Request) {} }
