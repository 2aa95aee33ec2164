// SPDX-License-Identifier: Apache-2.0

package robotspolicy

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/modules/caddyhttp"
	"go.uber.org/zap"

	"github.com/robotspolicy/caddy-robots-policy/source"
)

// benchHandler is a handler with a policy that closes the site to GPTBot, and
// benchRequest what Caddy's server makes of a request before handlers see it.
func benchHandler(tb testing.TB) *Handler {
	tb.Helper()
	return benchHandlerOf(tb, "version: 1\nrules:\n  - for: category:ai-training\n    disallow:\n      crawl: /\n    enforce: block\n")
}

func benchHandlerOf(tb testing.TB, text string) *Handler {
	tb.Helper()
	l, err := source.Compile("policy.yaml", []byte(text))
	if err != nil {
		tb.Fatal(err)
	}
	h := &Handler{policies: source.Static(l)}
	if err := errors.Join(h.applyDefaults(), h.provisionChannels(zap.NewNop())); err != nil {
		tb.Fatal(err)
	}
	h.edge.metrics = newVisitMetrics()
	tb.Cleanup(h.edge.close)
	return h
}

// snapshotOf is the policy that a handler serves.
func snapshotOf(tb testing.TB, h *Handler) *source.Snapshot {
	tb.Helper()
	s, err := h.policies.Get(context.Background(), "")
	if s == nil || err != nil {
		tb.Fatal(s, err)
	}
	return s
}

func benchRequest(agent string) *http.Request {
	r := httptest.NewRequest(http.MethodGet, "/news/bridge.html", nil)
	r.Header.Set("User-Agent", agent)
	ctx := context.WithValue(r.Context(), caddy.ReplacerCtxKey, caddy.NewReplacer())
	ctx = context.WithValue(ctx, caddyhttp.ExtraLogFieldsCtxKey, new(caddyhttp.ExtraLogFields))
	ctx = context.WithValue(ctx, caddyhttp.ServerCtxKey, new(caddyhttp.Server))
	ctx = context.WithValue(ctx, caddyhttp.VarsCtxKey, map[string]any{caddyhttp.ClientIPVarKey: "20.171.206.1"})
	return r.WithContext(ctx)
}

func BenchmarkEdge(b *testing.B) {
	passing := caddyhttp.HandlerFunc(func(http.ResponseWriter, *http.Request) error { return nil })
	for name, agent := range map[string]string{
		"refused": "Mozilla/5.0 AppleWebKit/537.36 (KHTML, like Gecko; compatible; GPTBot/1.2; +https://openai.com/gptbot)",
		"allowed": "Mozilla/5.0 (compatible; Googlebot/2.1; +http://www.google.com/bot.html)",
		"browser": "Mozilla/5.0 (Macintosh; Intel Mac OS X 10_15_7) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/126.0.0.0 Safari/537.36",
	} {
		b.Run(name, func(b *testing.B) {
			h, w := benchHandler(b), httptest.NewRecorder()
			b.ReportAllocs()
			for b.Loop() {
				b.StopTimer()
				r := benchRequest(agent)
				b.StartTimer()
				if err := h.ServeHTTP(w, r, passing); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// headersPolicy has all headers for every page.
const headersPolicy = "version: 1\nrules:\n  - for: everyone\n    disallow:\n      preserve: /\n      train-ai: /\n"

// BenchmarkHeaders is a browser's request for what is no page, and gets the headers.
func BenchmarkHeaders(b *testing.B) {
	h := benchHandlerOf(b, headersPolicy)
	w := &headWriter{http.Header{}}
	answer := caddyhttp.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) error {
		w.WriteHeader(http.StatusOK)
		return nil
	})
	r := benchRequest(benchBrowser)
	// A replacer to which placeholders are added for ever would grow.
	r = r.WithContext(context.WithValue(r.Context(), caddy.ReplacerCtxKey, nil))
	b.ReportAllocs()
	for b.Loop() {
		clear(w.header)
		if err := h.ServeHTTP(w, r, answer); err != nil {
			b.Fatal(err)
		}
	}
}

const benchBrowser = "Mozilla/5.0 (Macintosh; Intel Mac OS X 10_15_7) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/126.0.0.0 Safari/537.36"

type headWriter struct{ header http.Header }

func (w *headWriter) Header() http.Header         { return w.header }
func (w *headWriter) WriteHeader(int)             {}
func (w *headWriter) Write(b []byte) (int, error) { return len(b), nil }
