// SPDX-License-Identifier: Apache-2.0

package site

import (
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"
)

// A rule for a token is published in every channel that the operator documents for this token.
func TestTokensOfPages(t *testing.T) {
	s, ds := Load("policy.yaml", []byte("version: 1\nrules:\n  - {for: Googlebot-News, disallow: {index: /opinion/}}\n  - {for: Yandex, disallow: {index: /ru/}}\n"))
	if s == nil || len(ds) > 0 {
		t.Fatal(ds)
	}
	for path, token := range map[string]string{"/opinion/a": "googlebot-news", "/ru/a": "yandex"} {
		page := s.Page("www.example.com", path, time.Now())
		if got := page.header()["X-Robots-Tag"]; !slices.Contains(got, token+": noindex") {
			t.Errorf("%s: X-Robots-Tag %q", path, got)
		}
		if got := strings.ToLower(page.Elements.HTML()); !strings.Contains(got, `<meta name="`+token+`" content="noindex">`) {
			t.Errorf("%s: %s", path, got)
		}
	}
	for _, path := range []string{"/opinion/a", "/" + strings.Repeat("a%2f", 9000)} {
		target := NewTarget("www.example.com", path)
		tailored := s.Tailored(s.Policy.Crawler("Googlebot"), &target, time.Now())
		if got := tailored.header()["X-Robots-Tag"]; !slices.Equal(got, []string{"googlebot-news: noindex"}) {
			t.Errorf("tailored to Googlebot: %q", got)
		}
	}
	u, err := url.Parse("https://www.example.com/opinion/a")
	if err != nil {
		t.Fatal(err)
	}
	var text strings.Builder
	if err := s.Explain(Question{Agent: "Googlebot-News", URL: u}).WriteText(&text); err != nil || !strings.Contains(text.String(), "the rules for this crawler are noindex") {
		t.Error(err, text.String())
	}
}
