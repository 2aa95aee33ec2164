// SPDX-License-Identifier: Apache-2.0

package integration_test

import (
	"net/http"
	"os"
	"slices"
	"strings"
	"testing"
)

// A blocked crawler gets the answer that docs/reference/rights.md shows for the policy on that page, with and without
// an error route.
func TestPaymentRequired(t *testing.T) {
	text, err := os.ReadFile("../docs/reference/rights.md")
	if err != nil {
		t.Fatal(err)
	}
	_, section, _ := strings.Cut(string(text), "## Let AI crawlers pay")
	block := func(start string) string {
		_, rest, _ := strings.Cut(section, start)
		found, _, ok := strings.Cut(rest, "\n```")
		if !ok {
			t.Fatalf("docs/reference/rights.md has no %q", start)
		}
		return found
	}
	policy := block("```yaml\n") + "\n"
	head, body, _ := strings.Cut(block("```http\n"), "\n\n")
	want := http.Header{}
	for line := range strings.Lines(head) {
		if name, value, ok := strings.Cut(strings.TrimSpace(line), ": "); ok {
			want.Add(name, value)
		}
	}
	recipe := strings.TrimSuffix(block("```caddyfile\nexample.com {\n"), "\n}")
	recipe = strings.NewReplacer("/etc/caddy/policy.yaml", "POLICY", "localhost:8080", "UPSTREAM").Replace(recipe)
	for name, c := range map[string]struct{ site, body string }{
		"plain":          {"robots_policy POLICY\nreverse_proxy UPSTREAM", body + "\n"},
		"an error route": {recipe, "This page is for licensed crawlers."},
	} {
		t.Run(name, func(t *testing.T) {
			s := start(t, policy, htmlUpstream(page("")), c.site)
			r := s.get("/articles/1", "User-Agent", gptBot)
			if r.StatusCode != http.StatusPaymentRequired || r.body != c.body {
				t.Errorf("%s %q", r.Status, r.body)
			}
			for name := range want {
				if got := r.Header.Values(name); !slices.Equal(got, want.Values(name)) {
					t.Errorf("%s: %q, want %q", name, got, want.Values(name))
				}
			}
			for path, agent := range map[string]string{"/articles/1": "Googlebot/2.1", "/about": gptBot, "/license.xml": gptBot} {
				if r := s.get(path, "User-Agent", agent); r.StatusCode != http.StatusOK || r.Header.Get("Crawler-Price") != "" {
					t.Errorf("%s for %s: %s %v", path, agent, r.Status, r.Header)
				}
			}
		})
	}
}
