// SPDX-License-Identifier: Apache-2.0

package handler

import (
	"context"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/robotspolicy/caddy-robots-policy/source"
)

// nextFunc is a function that serves as the next handler.
type nextFunc func(http.ResponseWriter, *http.Request) error

func (f nextFunc) ServeHTTP(w http.ResponseWriter, r *http.Request) error { return f(w, r) }

// closedToGPTBot is a policy that disallows and blocks the whole site for AI training crawlers, such as GPTBot.
const closedToGPTBot = "version: 1\nrules:\n  - for: category:ai-training\n    disallow:\n      crawl: /\n    enforce: block\n"

// newHandler returns a handler with a policy.
func newHandler(tb testing.TB, text string) *Handler {
	tb.Helper()
	return newHandlerWith(tb, text, Options{})
}

func newHandlerWith(tb testing.TB, text string, o Options) *Handler {
	tb.Helper()
	s, err := source.Compile("policy.yaml", []byte(text))
	if err != nil {
		tb.Fatal(err)
	}
	o.Policies = source.Static(s)
	return New(o)
}

// snapshotOf returns the policy that a handler serves.
func snapshotOf(tb testing.TB, h *Handler) *source.Snapshot {
	tb.Helper()
	s, err := h.Policies.Get(context.Background(), "")
	if s == nil || err != nil {
		tb.Fatal(s, err)
	}
	return s
}

// newRequest returns a request with a User-Agent, prepared in the same way as Wrap prepares requests.
func newRequest(agent string) *http.Request {
	r := httptest.NewRequest(http.MethodGet, "/news/bridge.html", nil)
	r.Header.Set("User-Agent", agent)
	return withVars(r)
}
