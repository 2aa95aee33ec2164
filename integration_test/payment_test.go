// SPDX-License-Identifier: Apache-2.0

package integration_test

import (
	"net/http"
	"os"
	"strings"
	"testing"
)

const paidPolicy = `version: 1
rules:
  - for: GPTBot
    disallow: {crawl: /articles/, train-ai: /}
    enforce: block
enforcement: {status: 402}
publish: {rsl: on}
rights:
  offers: {usage: train-ai, payment: use, url: https://www.example.com/licence}
`

// A refusal with status 402 names the licence, and the recipe of docs/rights.md adds a
// price to it.
func TestPaymentRequired(t *testing.T) {
	const licence = `</license.xml>; rel="license"; type="application/rsl+xml"`
	doc, err := os.ReadFile("../docs/rights.md")
	if err != nil {
		t.Fatal(err)
	}
	_, recipe, _ := strings.Cut(string(doc), "```caddyfile\nexample.com {\n")
	recipe, _, ok := strings.Cut(recipe, "\n}\n```")
	if !ok {
		t.Fatal("docs/rights.md has no recipe")
	}
	recipe = strings.NewReplacer("/etc/caddy/policy.yaml", "POLICY", "localhost:8080", "UPSTREAM").Replace(recipe)
	for name, c := range map[string]struct{ site, price, body string }{
		"plain":  {"robots_policy POLICY\nreverse_proxy UPSTREAM", "", ""},
		"recipe": {recipe, "USD 0.01", "This page is for licensed crawlers."},
	} {
		t.Run(name, func(t *testing.T) {
			s := start(t, paidPolicy, htmlUpstream(page("")), c.site)
			r := s.get("/articles/1", "User-Agent", gptBot)
			if r.StatusCode != http.StatusPaymentRequired || r.Header.Get("Crawler-Price") != c.price || r.body != c.body ||
				strings.Join(r.Header.Values("Link"), " | ") != licence {
				t.Errorf("%s %v %q", r.Status, r.Header, r.body)
			}
			for path, agent := range map[string]string{"/articles/1": "Googlebot/2.1", "/about": gptBot, "/license.xml": gptBot} {
				if r := s.get(path, "User-Agent", agent); r.StatusCode != http.StatusOK || r.Header.Get("Crawler-Price") != "" {
					t.Errorf("%s for %s: %s %v", path, agent, r.Status, r.Header)
				}
			}
		})
	}
}
