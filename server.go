// SPDX-License-Identifier: Apache-2.0

package robotspolicy

import (
	"context"
	"errors"
	"maps"
	"net/http"
	"net/url"
	"strings"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/modules/caddyhttp"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"

	"github.com/robotspolicy/caddy-robots-policy/handler"
)

// server implements handler.Server for Caddy's HTTP server.
type server struct{}

func (server) Original(r *http.Request) (target string, u *url.URL) {
	if first, ok := r.Context().Value(caddyhttp.OriginalRequestCtxKey).(http.Request); ok {
		return first.RequestURI, first.URL
	}
	return r.RequestURI, r.URL
}

func (server) Vars(r *http.Request) map[string]any {
	vars, _ := r.Context().Value(caddyhttp.VarsCtxKey).(map[string]any)
	return vars
}

// ClientIP implements handler.Server. It returns the address that Caddy determines from trusted_proxies.
func (s server) ClientIP(r *http.Request) string {
	address, _ := s.Vars(r)[caddyhttp.ClientIPVarKey].(string)
	return address
}

func (s server) TrustsProxy(r *http.Request) bool {
	trusted, _ := s.Vars(r)[caddyhttp.TrustedProxyVarKey].(bool)
	return trusted
}

func (server) InErrorRoute(r *http.Request) bool {
	return r.Context().Value(caddyhttp.ErrorCtxKey) != nil
}

// IsInclude implements handler.Server. If a page uses httpInclude of Caddy's "templates" directive, Caddy sends itself
// a request for the included part, with the header of the crawler that requested the page. IsInclude recognizes such a
// request because the request has no target. A client can send the same header, but cannot send a request without a
// target.
func (server) IsInclude(r *http.Request) bool {
	if r.Header["Caddy-Templates-Include"] == nil {
		return false
	}
	first, ok := r.Context().Value(caddyhttp.OriginalRequestCtxKey).(http.Request)
	return ok && first.RequestURI == ""
}

func (server) ForUpstream(ctx context.Context, u *url.URL, target string) context.Context {
	if vars, ok := ctx.Value(caddyhttp.VarsCtxKey).(map[string]any); ok {
		ctx = context.WithValue(ctx, caddyhttp.VarsCtxKey, maps.Clone(vars))
	}
	ctx = context.WithValue(ctx, caddyhttp.ExtraLogFieldsCtxKey, new(caddyhttp.ExtraLogFields))
	if first, ok := ctx.Value(caddyhttp.OriginalRequestCtxKey).(http.Request); ok {
		first.Method, first.URL, first.RequestURI = http.MethodGet, u, target
		ctx = context.WithValue(ctx, caddyhttp.OriginalRequestCtxKey, first)
	}
	return ctx
}

func (server) ErrorStatus(err error) int {
	if raised, ok := errors.AsType[*handler.Error](err); ok {
		return raised.Status
	}
	if failed, ok := errors.AsType[caddyhttp.HandlerError](err); ok && failed.StatusCode != 0 {
		return failed.StatusCode
	}
	return http.StatusInternalServerError
}

// Publisher implements handler.Server. The function that it returns sets the placeholders {http.robots_policy.*} of a
// request and the field "robots_policy" in its access log line.
func (server) Publisher(d *handler.Decision) func(*http.Request) {
	if d == nil {
		return func(r *http.Request) {
			if repl, ok := r.Context().Value(caddy.ReplacerCtxKey).(*caddy.Replacer); ok {
				repl.Map(emptyPlaceholders)
			}
		}
	}
	replace := func(key string) (any, bool) { return placeholder(d, key) }
	field := zap.Object("robots_policy", fields{d})
	return func(r *http.Request) {
		ctx := r.Context()
		if repl, ok := ctx.Value(caddy.ReplacerCtxKey).(*caddy.Replacer); ok {
			repl.Map(replace)
		}
		if server, _ := ctx.Value(caddyhttp.ServerCtxKey).(*caddyhttp.Server); server != nil && server.Logs == nil {
			return // there is no access log
		}
		if extra, ok := ctx.Value(caddyhttp.ExtraLogFieldsCtxKey).(*caddyhttp.ExtraLogFields); ok {
			extra.Set(field)
		}
	}
}

const placeholderPrefix = "http.robots_policy."

var placeholders = []struct {
	name string
	of   func(*handler.Decision) string
}{
	{"crawler", func(d *handler.Decision) string { return d.Crawler().Token }},
	{"operator", func(d *handler.Decision) string { return d.Crawler().Operator }},
	{"category", func(d *handler.Decision) string { return d.Crawler().Category }},
	{"identity", func(d *handler.Decision) string { return d.Identity().String() }},
	{"decision", (*handler.Decision).Verdict},
	{"action", (*handler.Decision).Action},
	{"rule", (*handler.Decision).Rule},
}

// placeholder returns the value of a placeholder for a decision. If d is nil, the value is empty.
func placeholder(d *handler.Decision, key string) (value any, ok bool) {
	name, ok := strings.CutPrefix(key, placeholderPrefix)
	for _, p := range placeholders {
		if ok && p.name == name && d != nil {
			return p.of(d), true
		} else if ok && p.name == name {
			return "", true
		}
	}
	return nil, false
}

// emptyPlaceholders returns the value of a placeholder for a request that is not from a known crawler. It is a function
// without captured variables, so that no memory is allocated for such requests.
func emptyPlaceholders(key string) (any, bool) { return placeholder(nil, key) }

// fields writes a decision to an access log line.
type fields struct{ *handler.Decision }

func (f fields) MarshalLogObject(e zapcore.ObjectEncoder) error {
	for _, p := range placeholders {
		if value := p.of(f.Decision); value != "" {
			e.AddString(p.name, value)
		}
	}
	return nil
}
