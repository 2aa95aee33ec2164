// SPDX-License-Identifier: Apache-2.0

package handler

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

// A block with status 402 contains the license offers for this crawler and page. Blocks with other statuses contain no
// offers.
func TestOffers(t *testing.T) {
	t.Parallel()
	const (
		crawl  = "    - {usage: train-ai, payment: crawl, amount: 0.01, currency: USD, url: https://x.example/crawl}\n"
		yearly = "    - {usage: train-ai, payment: subscription, amount: 900, currency: EUR, url: https://x.example/year, users: [education, personal]}\n"
		input  = "    - {usage: ai-use, payment: crawl, amount: 0.02, currency: USD, url: https://x.example/input}\n"
	)
	for _, c := range []struct {
		name, status, more, offers, path string
		price, links, body               string
	}{
		{"a price per crawl", "402", "", crawl, "/a", "USD 0.01", `<https://x.example/crawl>; rel="license"`, "License for train-ai, payment per crawl, USD 0.01: https://x.example/crawl\n"},
		{
			"no price per crawl", "402", "", yearly, "/a", "", `<https://x.example/year>; rel="license"`,
			"License for train-ai, payment by subscription, EUR 900, for education and personal users: https://x.example/year\n",
		},
		{"another usage", "402", "", input, "/a", "", "", ""},
		{"the first of two that apply", "402", "", input + yearly + crawl, "/a", "USD 0.01", `<https://x.example/year>; rel="license" | <https://x.example/crawl>; rel="license"`, "License for train-ai, payment by subscription, EUR 900, for education and personal users: https://x.example/year\nLicense for train-ai, payment per crawl, USD 0.01: https://x.example/crawl\n"},
		{"with a message", "402", "  message: Pay.\n", crawl, "/a", "USD 0.01", `<https://x.example/crawl>; rel="license"`, "Pay.\nLicense for train-ai, payment per crawl, USD 0.01: https://x.example/crawl\n"},
		{"another path", "402", "", crawl, "/b", "", "", ""},
		{"an encoded path", "402", "", crawl, "/%61", "USD 0.01", `<https://x.example/crawl>; rel="license"`, "License for train-ai, payment per crawl, USD 0.01: https://x.example/crawl\n"},
		{"another status", "403", "", crawl, "/a", "", "", ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			text := "version: 1\nenforcement:\n  status: " + c.status + "\n" + c.more + "rules:\n  - for: GPTBot\n    disallow: {crawl: /, train-ai: /a}\n    enforce: block\nrights:\n  offers:\n" + c.offers
			h := newHandlerWith(t, text, Options{})
			r := httptest.NewRequest(http.MethodGet, "http://www.example.com"+c.path, nil)
			r.Header.Set("User-Agent", "GPTBot/1.0")
			w := httptest.NewRecorder()
			if err := h.Serve(w, r, nextFunc(func(http.ResponseWriter, *http.Request) error { t.Error("not blocked"); return nil })); err != nil {
				t.Fatal(err)
			}
			if got := w.Header().Get("Crawler-Price"); got != c.price {
				t.Errorf("price %q, want %q", got, c.price)
			}
			if got := strings.Join(w.Header().Values("Link"), " | "); got != c.links {
				t.Errorf("links %q, want %q", got, c.links)
			}
			if w.Body.String() != c.body {
				t.Errorf("body %q, want %q", w.Body, c.body)
			}
		})
	}
}
