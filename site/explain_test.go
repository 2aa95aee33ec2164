// SPDX-License-Identifier: Apache-2.0

package site_test

import (
	"net/url"
	"strings"
	"testing"

	"github.com/robotspolicy/caddy-robots-policy/policy"
	"github.com/robotspolicy/caddy-robots-policy/site"
)

// The answer of Explain is that of the edge.
func TestExplainAgreesWithEdge(t *testing.T) {
	s := load(t, `version: 1
rules:
  - for: everyone
    disallow:
      crawl: [/admin/, /robots.txt, /.well-known/]
  - for: "purpose:ai-training"
    disallow:
      crawl: /news/
`)
	for _, c := range []struct {
		agent, path string
		may         bool
		headline    string
	}{
		{"GPTBot", "/admin/", false, "It may not crawl"},
		{"GPTBot", "//admin/", false, "read as /admin/."},
		{"GPTBot", "/x", true, "It may crawl"},
		{"GPTBot", "/robots.txt", true, "It may crawl"},
		{"GPTBot", "/robots.txt?x", true, "It may crawl"},
		{"GPTBot", "/.well-known/x", false, "is not refused there"},
		{"Bingbot/2.0", "/news/", true, "It may crawl"},
		{"Bingbot/2.0 (ai-training)", "/news/", false, "It may not crawl"},
		{"Mozilla/5.0 Firefox/143.0", "/admin/", false, "is not refused"},
	} {
		u, err := url.Parse("https://www.example.com" + c.path)
		if err != nil {
			t.Fatal(err)
		}
		e := s.Explain(site.Question{Agent: c.agent, URL: u, Now: june})
		var text strings.Builder
		if err := e.WriteText(&text); err != nil {
			t.Fatal(err)
		}
		if e.MayCrawl != c.may || e.Usages == nil || !strings.Contains(text.String(), c.headline) {
			t.Errorf("%s %s: %v\n%s", c.agent, c.path, e.MayCrawl, text.String())
		}
		id := s.Recognize([]string{c.agent})
		v := s.Edge(policy.Query{Crawler: id, Purposes: s.Purposes([]string{c.agent}), Host: u.Host, Path: c.path, Now: june})
		if id != 0 && !e.Open && v.Refused() == e.MayCrawl {
			t.Errorf("%s %s: the edge says something else", c.agent, c.path)
		}
	}
}
