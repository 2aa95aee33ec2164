// SPDX-License-Identifier: Apache-2.0

package site_test

import (
	"net/url"
	"strings"
	"testing"

	"github.com/robotspolicy/caddy-robots-policy/policy"
	"github.com/robotspolicy/caddy-robots-policy/site"
)

const casePolicy = `version: 1
rules:
  - for: everyone
    disallow:
      crawl: [/admin/, "/wiki/Special:", "/caf%C3%A9/", "/*?session="]
      index: [/drafts/, "/Notes/"]
    allow:
      crawl: [/, /Admin/press/]
      train-ai: /drafts/Open/
    enforce: block
  - for: Googlebot
    allow:
      crawl: /ADMIN/
`

// Caddy's path matchers ignore letter case, and so do many applications. Therefore a path is disallowed in every letter
// case, unless an allow entry has exactly this letter case.
func TestEdgeInAnyCase(t *testing.T) {
	s := load(t, casePolicy)
	for _, c := range []struct {
		agent, path     string
		refused, folded bool
	}{
		{"GPTBot", "/admin/x", true, false},
		{"GPTBot", "/ADMIN/x", true, true},
		{"GPTBot", "/a%44min/x", true, true},
		{"GPTBot", "/x/..//aDmin/x", true, true},
		{"GPTBot", "/Admin/press/x", false, false}, // the policy allows this letter case
		{"GPTBot", "/admin/press/x", true, false},
		{"GPTBot", "/Admin/other", true, true},
		{"GPTBot", "/wiki/special:x", true, true}, // the policy has upper-case letters, but the path does not
		{"GPTBot", "/CAF%C3%89/x", true, true},
		{"GPTBot", "/x?SESSION=1", true, true},
		{"GPTBot", "/Administration", false, false},
		{"GPTBot", "/Robots.TXT", false, false},
		{"GPTBot", "/.Well-Known/x", false, false},
		{"Googlebot/2.1", "/ADMIN/x", false, false},
		{"Googlebot/2.1", "/admin/x", true, false},
	} {
		v := s.Edge(policy.Query{Crawler: recognize(s, c.agent), Host: "example.com", Path: c.path, Now: june})
		if v.Blocked() != c.refused || v.AnyCase != c.folded {
			t.Errorf("%s %s: %+v", c.agent, c.path, v)
		}
		u, err := url.Parse("https://example.com" + c.path)
		if err != nil {
			t.Fatal(err)
		}
		e := s.Explain(site.Question{Agent: c.agent, URL: u, Now: june})
		var text strings.Builder
		if err := e.WriteText(&text); err != nil {
			t.Fatal(err)
		}
		if e.MayCrawl == c.refused || e.AnyCase != c.folded || strings.Contains(text.String(), "letter case") != c.folded {
			t.Errorf("%s %s: %s", c.agent, c.path, text.String())
		}
		if e.Reason == nil && c.refused {
			t.Errorf("%s %s: no reason", c.agent, c.path)
		}
	}
}

// Headers and meta tags ignore letter case, just as blocking does.
func TestPagesInAnyCase(t *testing.T) {
	s := load(t, casePolicy)
	for path, want := range map[string]string{
		"/drafts/x":       "noindex",
		"/DRAFTS/x":       "noindex",
		"//x/../DRAFTS/x": "noindex",
		"/drafts/OPEN/x":  "noindex", // without train-ai=y, because train-ai is allowed only under /drafts/Open/
		"/notes/x":        "noindex",
		"/Notes/x":        "noindex",
		"/open/x":         "",
		"/OPEN/x":         "",
	} {
		for range 2 { // the second page comes from the cache
			pg := s.Page("example.com", path, june)
			got := ""
			if pg.Values != nil {
				got = strings.Join(pg.Values.XRobotsTag, ", ")
				if usage := pg.Values.Preferences[0]; usage != nil {
					t.Errorf("%s: %v", path, usage)
				}
			}
			if got != want || (pg.Elements != nil) != (want != "") {
				t.Errorf("%s: %q, want %q", path, got, want)
			}
		}
	}
	if pg := s.Page("example.com", "/drafts/Open/x", june); pg.Values.Preferences[0] == nil {
		t.Error("no train-ai=y where it is allowed")
	}
}

// If neither the policy nor the path has upper-case letters, ignoring letter case needs no extra work.
func TestLowerCaseIsFree(t *testing.T) {
	s := load(t, strings.NewReplacer("Special", "special", "Notes", "notes", "/Admin", "/admin", "/ADMIN", "/admin", "Open", "open").Replace(casePolicy))
	if s.Policy.Folded() != s.Policy {
		t.Error("a policy without letters in upper case is compiled twice")
	}
	q := policy.Query{Crawler: recognize(s, "GPTBot"), Host: "example.com", Path: "/articles/a-name.html?page=2", Now: june}
	if n := testing.AllocsPerRun(100, func() { s.Edge(q); s.Page(q.Host, q.Path, june) }); n != 0 {
		t.Errorf("%v allocations", n)
	}
}
