// SPDX-License-Identifier: Apache-2.0

package handler

import (
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/robotspolicy/caddy-robots-policy/policy"
)

// By default the handler itself writes the response to a blocked request, so the server's error handling does not
// change it. With RaiseRefusals, it returns an error instead.
func TestRefusal(t *testing.T) {
	t.Parallel()
	const text = "version: 1\nenforcement:\n  message: Ask {{env \"HOME\"}} {{{}}\n  retry-after: 60\nrules:\n  - for: GPTBot\n    disallow:\n      crawl: /\n    enforce: block\n"
	next := nextFunc(func(http.ResponseWriter, *http.Request) error {
		t.Error("a blocked request reached the next handler")
		return nil
	})
	refuse := func(method, how string) (*httptest.ResponseRecorder, error) {
		h := newHandlerWith(t, text, Options{RaiseRefusals: how == "error"})
		r := newRequest("GPTBot/1.0")
		r.Method = method
		w := httptest.NewRecorder()
		w.Header().Set("Cache-Control", "max-age=3600")
		err := h.Serve(w, r, next)
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
		refused, ok := errors.AsType[*Error](err)
		if !ok || refused.Status != 403 || strings.Contains(refused.Err.Error(), "{{") || !strings.HasPrefix(refused.Err.Error(), "Ask ") {
			t.Errorf("%v", err)
		}
		if w.Body.Len() > 0 || w.Header()["Content-Type"] != nil {
			t.Errorf("%v %q", w.Header(), w.Body)
		}
	})
}

// errorRoute is a Server whose requests are all in an error route.
type errorRoute struct{ NetHTTP }

func (errorRoute) InErrorRoute(*http.Request) bool { return true }

// A request that reaches the handler only in an error route is blocked there. If it was evaluated before the error, it
// is not blocked again.
func TestRefusalInErrorRoutes(t *testing.T) {
	t.Parallel()
	h := newHandlerWith(t, closedToGPTBot, Options{Server: errorRoute{}})
	passed := 0
	next := nextFunc(func(http.ResponseWriter, *http.Request) error {
		passed++
		return nil
	})
	r := newRequest("GPTBot/1.0")
	for i, want := range []int{403, 200} {
		w := httptest.NewRecorder()
		if err := h.Serve(w, r, next); err != nil || w.Code != want || passed != i {
			t.Errorf("request %d: status %d, %d passed, %v", i, w.Code, passed, err)
		}
	}
}

// SetOverride can make a handler less strict than its option MaxMode, but not stricter. The metrics count the handlers
// that have such an override.
func TestSetOverride(t *testing.T) {
	t.Parallel()
	h := newHandlerWith(t, closedToGPTBot, Options{MaxMode: policy.ModeLog})
	h.SetOverride(policy.ModeOff)
	if got := counted(t, h, "off"); h.mode() != policy.ModeOff || !strings.Contains(got, "gauge:{value:1}") {
		t.Errorf("%s: %s", h.mode(), got)
	}
	h.SetOverride(policy.ModeBlock)
	if h.mode() != policy.ModeLog {
		t.Errorf("%s", h.mode())
	}
	h.SetOverride(policy.ModeUnset)
	if got := counted(t, h, "block"); h.mode() != policy.ModeLog || !strings.Contains(got, "gauge:{value:0}") {
		t.Errorf("%s: %s", h.mode(), got)
	}
}
