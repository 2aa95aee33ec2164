// SPDX-License-Identifier: Apache-2.0

package robotspolicy

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/caddyserver/caddy/v2/modules/caddyhttp"

	"github.com/robotspolicy/caddy-robots-policy/policy"
)

// A refusal is a response, whatever the server does with errors, unless it is
// configured to be an error.
func TestRefusal(t *testing.T) {
	t.Parallel()
	const text = "version: 1\nenforcement:\n  message: Ask {{env \"HOME\"}} {{{}}\n  retry-after: 60\nrules:\n  - for: GPTBot\n    disallow:\n      crawl: /\n    enforce: block\n"
	next := caddyhttp.HandlerFunc(func(http.ResponseWriter, *http.Request) error {
		t.Error("the request went on")
		return nil
	})
	refuse := func(method, how string) (*httptest.ResponseRecorder, error) {
		h := benchHandlerOf(t, text)
		h.edge.refusal.raise = how == "error"
		server := &caddyhttp.Server{Errors: &caddyhttp.HTTPErrorConfig{Routes: caddyhttp.RouteList{{}}}}
		r := benchRequest("GPTBot/1.0")
		r.Method = method
		w := httptest.NewRecorder()
		w.Header().Set("Cache-Control", "max-age=3600")
		err := h.ServeHTTP(w, r.WithContext(context.WithValue(r.Context(), caddyhttp.ServerCtxKey, server)), next)
		for name, want := range map[string]string{"Cache-Control": "no-store", "Retry-After": "60", "X-Robots-Tag": "noindex"} {
			if got := w.Header().Get(name); got != want {
				t.Errorf("%s %s: %s: %q, want %q", method, how, name, got, want)
			}
		}
		return w, err
	}
	t.Run("response", func(t *testing.T) {
		w, err := refuse(http.MethodGet, "respond")
		if err != nil || w.Code != 403 || w.Body.String() != "Ask {{env \"HOME\"}} {{{}}\n" {
			t.Errorf("%v: %d %q", err, w.Code, w.Body)
		}
		if kind := w.Header().Get("Content-Type"); !strings.EqualFold(kind, "text/plain; charset=utf-8") || strings.Contains(kind, "text/plain") {
			t.Errorf("Content-Type %q, which templates would execute", kind)
		}
	})
	t.Run("HEAD", func(t *testing.T) {
		w, err := refuse(http.MethodHead, "respond")
		if err != nil || w.Code != 403 || w.Body.Len() > 0 {
			t.Errorf("%v: %d %q", err, w.Code, w.Body)
		}
	})
	t.Run("error", func(t *testing.T) {
		w, err := refuse(http.MethodGet, "error")
		refused, ok := errors.AsType[caddyhttp.HandlerError](err)
		if !ok || refused.StatusCode != 403 || refused.ID == "" || strings.Contains(refused.Err.Error(), "{{") || !strings.HasPrefix(refused.Err.Error(), "Ask ") {
			t.Errorf("%v", err)
		}
		if w.Body.Len() > 0 || w.Header()["Content-Type"] != nil {
			t.Errorf("%v %q", w.Header(), w.Body)
		}
	})
}

// A request that reaches the handler only in an error route is refused there. One
// that was evaluated before the error is not refused again.
func TestRefusalInErrorRoutes(t *testing.T) {
	t.Parallel()
	h := benchHandler(t)
	passed := 0
	next := caddyhttp.HandlerFunc(func(http.ResponseWriter, *http.Request) error {
		passed++
		return nil
	})
	r := benchRequest("GPTBot/1.0")
	r = r.WithContext(context.WithValue(r.Context(), caddyhttp.ErrorCtxKey, errors.New("an error")))
	for i, want := range []int{403, 200} {
		w := httptest.NewRecorder()
		if err := h.ServeHTTP(w, r, next); err != nil || w.Code != want || passed != i {
			t.Errorf("request %d: status %d, %d passed, %v", i, w.Code, passed, err)
		}
	}
}

// The override of the admin API limits all handlers at once, and never does more
// than the configuration.
func TestOverride(t *testing.T) {
	one, two := benchHandler(t), benchHandler(t)
	two.edge.maxMode = policy.ModeLog
	status := func(h *Handler) int {
		w := httptest.NewRecorder()
		err := h.ServeHTTP(w, benchRequest("GPTBot/1.0"), caddyhttp.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) error { return nil }))
		if err != nil {
			t.Fatal(err)
		}
		return w.Code
	}
	defer edges.override(policy.ModeUnset)
	for _, c := range []struct {
		mode policy.Mode
		want int
	}{{policy.ModeUnset, 403}, {policy.ModeLog, 200}, {policy.ModeOff, 200}, {policy.ModeUnset, 403}} {
		if n := edges.override(c.mode); n < 2 {
			t.Errorf("%d handlers", n)
		}
		if got := status(one); got != c.want {
			t.Errorf("%s: status %d, want %d", c.mode, got, c.want)
		}
		if got := status(two); got != 200 {
			t.Errorf("%s: status %d of a handler in mode log", c.mode, got)
		}
		if c.mode != policy.ModeUnset {
			if got := counted(t, one, c.mode.String()); !strings.Contains(got, "gauge:{value:1}") {
				t.Errorf("%s: %s", c.mode, got)
			}
		}
	}
}
