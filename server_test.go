// SPDX-License-Identifier: Apache-2.0

package robotspolicy

import (
	"context"
	"net/http"
	"net/http/httptest"
	"reflect"
	"testing"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/modules/caddyhttp"
	"go.uber.org/zap"

	"github.com/robotspolicy/caddy-robots-policy/handler"
	"github.com/robotspolicy/caddy-robots-policy/policy"
	"github.com/robotspolicy/caddy-robots-policy/source"
)

// testHandler returns a handler with the setting enforce, and with a policy that blocks GPTBot on the whole site.
func testHandler(tb testing.TB, enforce string) *Handler {
	tb.Helper()
	l, err := source.Compile("policy.yaml", []byte("version: 1\nrules:\n  - for: category:ai-training\n    disallow:\n      crawl: /\n    enforce: block\n"))
	if err != nil {
		tb.Fatal(err)
	}
	h := &Handler{policies: source.Static(l), Enforce: enforce}
	if err := h.applyDefaults(); err != nil {
		tb.Fatal(err)
	}
	h.handler = handler.New(h.options(zap.NewNop()))
	running.Store(h.handler, nil)
	tb.Cleanup(func() { stopRunning(h.handler) })
	return h
}

// testRequest returns a request in the form in which Caddy's server passes requests to handlers.
func testRequest(agent string) *http.Request {
	r := httptest.NewRequest(http.MethodGet, "/news/bridge.html", nil)
	r.Header.Set("User-Agent", agent)
	ctx := context.WithValue(r.Context(), caddy.ReplacerCtxKey, caddy.NewReplacer())
	ctx = context.WithValue(ctx, caddyhttp.ExtraLogFieldsCtxKey, new(caddyhttp.ExtraLogFields))
	ctx = context.WithValue(ctx, caddyhttp.ServerCtxKey, new(caddyhttp.Server))
	ctx = context.WithValue(ctx, caddyhttp.VarsCtxKey, map[string]any{caddyhttp.ClientIPVarKey: "20.171.206.1"})
	return r.WithContext(ctx)
}

// Placeholders are always set. Log fields are only set on servers with an access log.
func TestPublish(t *testing.T) {
	for name, c := range map[string]struct {
		server *caddyhttp.Server
		fields bool
	}{
		"no access log": {&caddyhttp.Server{}, false},
		"access log":    {&caddyhttp.Server{Logs: &caddyhttp.ServerLogConfig{}}, true},
		"no server":     {nil, true},
	} {
		r := testRequest("GPTBot/1.0")
		repl, extra := caddy.NewReplacer(), new(caddyhttp.ExtraLogFields)
		ctx := context.WithValue(r.Context(), caddyhttp.ServerCtxKey, c.server)
		ctx = context.WithValue(ctx, caddyhttp.ExtraLogFieldsCtxKey, extra)
		r = r.WithContext(context.WithValue(ctx, caddy.ReplacerCtxKey, repl))
		_ = testHandler(t, "block").ServeHTTP(httptest.NewRecorder(), r, nil) // without a server, the result is an error
		if got := repl.ReplaceAll("{http.robots_policy.crawler} {http.robots_policy.action}", ""); got != "GPTBot block" {
			t.Errorf("%s: %q", name, got)
		}
		if got := reflect.ValueOf(extra).Elem().FieldByName("fields").Len() > 0; got != c.fields {
			t.Errorf("%s: fields: %v", name, got)
		}
	}
}

// The override of the admin API limits all handlers at once. It never makes a handler stricter than its configuration.
func TestOverride(t *testing.T) {
	one, two := testHandler(t, "block"), testHandler(t, "log")
	status := func(h *Handler) int {
		w := httptest.NewRecorder()
		err := h.ServeHTTP(w, testRequest("GPTBot/1.0"), caddyhttp.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) error { return nil }))
		if err != nil {
			t.Fatal(err)
		}
		return w.Code
	}
	defer override(policy.ModeUnset)
	for _, c := range []struct {
		mode policy.Mode
		want int
	}{{policy.ModeUnset, 403}, {policy.ModeLog, 200}, {policy.ModeOff, 200}, {policy.ModeUnset, 403}} {
		if n := override(c.mode); n < 2 {
			t.Errorf("%d handlers", n)
		}
		if got := status(one); got != c.want {
			t.Errorf("%s: status %d, want %d", c.mode, got, c.want)
		}
		if got := status(two); got != 200 {
			t.Errorf("%s: status %d of a handler in mode log", c.mode, got)
		}
	}
}
