// SPDX-License-Identifier: Apache-2.0

package robotspolicy

import (
	"context"
	"errors"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/modules/caddyhttp"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"

	"github.com/robotspolicy/caddy-robots-policy/handler"
)

// server is Caddy's HTTP server, as handlers see it.
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

// ClientIP implements handler.Server. Caddy goes by trusted_proxies.
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

// IsInclude implements handler.Server. Caddy's templates request a part of a page
// (httpInclude) with the headers of the crawler that requested the page. A client can
// send the header too, but never a request without a target.
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

// Publisher implements handler.Server: it sets the placeholders {http.robots_policy.*}
// and the access log field robots_policy.
func (server) Publisher(d *handler.Decision) func(*http.Request) {
	if d == nil {
		return func(r *http.Request) {
			if repl, ok := r.Context().Value(caddy.ReplacerCtxKey).(*caddy.Replacer); ok {
				repl.Map(emptyPlaceholders)
			}
		}
	}
	p := published{d}
	replace, field := caddy.ReplacerFunc(p.replace), zap.Object("robots_policy", p)
	return func(r *http.Request) {
		ctx := r.Context()
		if repl, ok := ctx.Value(caddy.ReplacerCtxKey).(*caddy.Replacer); ok {
			repl.Map(replace)
		}
		if server, _ := ctx.Value(caddyhttp.ServerCtxKey).(*caddyhttp.Server); server != nil && server.Logs == nil {
			return // no access log
		}
		if extra, ok := ctx.Value(caddyhttp.ExtraLogFieldsCtxKey).(*caddyhttp.ExtraLogFields); ok {
			extra.Set(field)
		}
	}
}

const placeholderPrefix = "http.robots_policy."

var placeholderNames = []string{"crawler", "operator", "kind", "verified", "decision", "action", "rule"}

// published is a decision as Caddy's placeholders and log fields show it.
type published struct{ *handler.Decision }

func (p published) placeholder(name string) (value string, ok bool) {
	switch name {
	case "crawler":
		return p.Crawler().Token, true
	case "operator":
		return p.Crawler().Operator, true
	case "kind":
		return p.Crawler().Kind, true
	case "verified":
		return p.Identity().String(), true
	case "decision":
		return p.Verdict(), true
	case "action":
		return p.Action(), true
	case "rule":
		return p.Rule(), true
	}
	return "", false
}

func (p published) replace(key string) (any, bool) {
	name, ok := strings.CutPrefix(key, placeholderPrefix)
	if !ok {
		return nil, false
	}
	value, ok := p.placeholder(name)
	return value, ok
}

// emptyPlaceholders is a caddy.ReplacerFunc for requests by anyone but a known
// crawler. It is one function for all of them, so that it costs nothing.
func emptyPlaceholders(key string) (any, bool) {
	name, ok := strings.CutPrefix(key, placeholderPrefix)
	if !ok {
		return nil, false
	}
	if slices.Contains(placeholderNames, name) {
		return "", true
	}
	return nil, false
}

// MarshalLogObject writes the fields of an access log line.
func (p published) MarshalLogObject(e zapcore.ObjectEncoder) error {
	for _, name := range placeholderNames {
		if value, _ := p.placeholder(name); value != "" {
			e.AddString(name, value)
		}
	}
	return nil
}
