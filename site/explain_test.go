// SPDX-License-Identifier: Apache-2.0

package site_test

import (
	"fmt"
	"net/url"
	"slices"
	"strings"
	"testing"

	"github.com/robotspolicy/caddy-robots-policy/crawlers"
	"github.com/robotspolicy/caddy-robots-policy/policy"
	"github.com/robotspolicy/caddy-robots-policy/site"
)

// Explain states the same decision about a request as the server makes.
func TestExplainAgreesWithEdge(t *testing.T) {
	s := load(t, `version: 1
rules:
  - for: everyone
    disallow:
      crawl: [/admin/, /robots.txt, /.well-known/, "/empty$", "/a%2F"]
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
		{"GPTBot", "/a%2F\u00e9", false, "It may not crawl"},
		{"GPTBot", "/a/\u00e9", true, "It may crawl"},
		{"GPTBot", "/empty", false, "It may not crawl"},
		{"GPTBot", "/empty?", true, "It may crawl"},
		{"GPTBot", "/robots.txt", true, "It may crawl"},
		{"GPTBot", "/robots.txt?x", true, "It may crawl"},
		{"GPTBot", "/.well-known/x", false, "is not blocked there"},
		{"Bingbot/2.0", "/news/", true, "It may crawl"},
		{"Bingbot/2.0 (ai-training)", "/news/", false, "It may not crawl"},
		{"Mozilla/5.0 Firefox/143.0", "/admin/", false, "are not blocked"},
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
		id := recognize(s, c.agent)
		v := s.Edge(policy.Query{Crawler: id, Purposes: s.Purposes([]string{c.agent}), Host: u.Host, Path: c.path, Now: june})
		if id != 0 && !e.Open && v.Blocked() == e.MayCrawl {
			t.Errorf("%s %s: the edge says something else", c.agent, c.path)
		}
	}
}

// A crawler with two purposes combines the groups of both purposes, and waits for the longer crawl-delay.
func TestExplainCrawlDelayOfTwoPurposes(t *testing.T) {
	for _, delays := range [][2]string{{"1", "10"}, {"10", "1"}} {
		s := load(t, "version: 1\nrules:\n  - for: 'purpose:news'\n    crawl-delay: "+delays[0]+"\n"+
			"  - for: 'purpose:research'\n    crawl-delay: "+delays[1]+"\npublish:\n  user-agent-purpose: on\n")
		u, err := url.Parse("https://www.example.com/")
		if err != nil {
			t.Fatal(err)
		}
		e := s.Explain(site.Question{Agent: "AhrefsBot/1.0; news; research", URL: u, Now: june})
		var text strings.Builder
		if err := e.WriteText(&text); err != nil {
			t.Fatal(err)
		}
		if !strings.Contains(text.String(), "Crawl-delay: 10\n") || strings.Contains(text.String(), "Crawl-delay: 1\n") {
			t.Errorf("delays %v:\n%s", delays, text.String())
		}
	}
}

// The explanation lists the identities that the policy asks for, and the result for each identity.
func TestExplainIdentity(t *testing.T) {
	s := load(t, `version: 1
enforcement: {impostors: block}
rules:
  - for: everyone
    disallow:
      crawl: /members/
    enforce: block
  - name: the real one
    for: Googlebot
    identity: verified
    allow:
      crawl: /members/
`)
	u, err := url.Parse("https://www.example.com/members/")
	if err != nil {
		t.Fatal(err)
	}
	refused, passes := "the request is blocked with 403 Forbidden", "the request passes"
	verified := func(crawlers.Verification) (policy.Identity, string) { return policy.Verified, "it showed its papers" }
	for _, c := range []struct {
		agent    string
		verify   func(crawlers.Verification) (policy.Identity, string)
		may      bool
		outcomes []string
		text     string
	}{
		{"Googlebot", nil, false, []string{passes, refused, refused}, `policy.yaml:12, rule "the real one", for identity verified, allows crawl of /members/`},
		{"Googlebot", verified, true, []string{passes, refused, refused}, "by address lists and reverse DNS; this client is verified: it showed its papers"},
		{"GPTBot", nil, false, []string{refused, refused, refused}, "by address lists; the identity makes no difference for this request"},
		{"Bytespider", nil, false, []string{refused}, "does not publish a way to verify this crawler"},
		{"Google-Extended", nil, false, nil, ""},
		{"Firefox/143.0", nil, false, nil, ""},
	} {
		e := s.Explain(site.Question{Agent: c.agent, URL: u, Now: june, Verify: c.verify})
		var text strings.Builder
		if err := e.WriteText(&text); err != nil {
			t.Fatal(err)
		}
		var got []string
		if e.Identity != nil {
			for _, o := range e.Identity.Outcomes {
				got = append(got, o.Summary)
				if o.Blocked != (o.Summary == refused) {
					t.Errorf("%s: %+v", c.agent, o)
				}
			}
		}
		if !slices.Equal(got, c.outcomes) || e.MayCrawl != c.may || !strings.Contains(text.String(), c.text) || (e.Identity == nil) == strings.Contains(text.String(), "Identity:") {
			t.Errorf("%s: %q %v\n%s", c.agent, got, e.MayCrawl, text.String())
		}
	}
}

// The explanation names allow entries that do not override the disallow entry, and the reason.
func TestExplainDespite(t *testing.T) {
	const head = "version: 1\nrules:\n  - for: %s\n    disallow: {crawl: %s}\n  - for: %s\n    allow: {crawl: %s}\n"
	for _, c := range []struct{ disallow, closed, allow, open, path, why string }{
		{"everyone", "/members/", "category:search", "/", "/members/", "/ also covers paths outside /members/"},
		{"everyone", `"/*.pdf$"`, "Googlebot", "/reports/", "/reports/a.pdf", "/reports/ also covers paths outside /*.pdf$"},
		{"operator:Google", "/", "category:search", "/news/", "/news/", "neither category:search nor operator:Google is narrower than the other"},
		{"Googlebot", "/", "everyone", "/news/", "/news/", "line 4 is for fewer crawlers (Googlebot)"},
		{"everyone\n    hosts: www.example.com", "/", "Googlebot", "/news/", "/news/", "line 5 is for fewer hosts"},
		{"everyone", "/news/", "everyone-else", "/news/today/", "/news/today/", "a rule for everyone-else cannot allow a path that is disallowed for everyone"},
		{"everyone", "/news/", "everyone", "/", "/news/", "the pattern of line 4 is longer"},
	} {
		t.Run(c.why, func(t *testing.T) {
			s := load(t, fmt.Sprintf(head, c.disallow, c.closed, c.allow, c.open))
			u, err := url.Parse("https://www.example.com" + c.path)
			if err != nil {
				t.Fatal(err)
			}
			e := s.Explain(site.Question{Agent: "Googlebot", URL: u, Now: june})
			var text strings.Builder
			if err := e.WriteText(&text); err != nil {
				t.Fatal(err)
			}
			if e.MayCrawl || len(e.Despite) != 1 || e.Despite[0].Why != c.why || !strings.Contains(text.String(), "; this has no effect here, because "+c.why) {
				t.Errorf("%+v\n%s", e.Despite, text.String())
			}
			if !strings.Contains(e.Expect, "Googlebot may not crawl ") || !strings.HasSuffix(e.Expect, c.path) {
				t.Errorf("expect: %q", e.Expect)
			}
		})
	}
}

// If robots.txt has a line about the page, the explanation names the rule that produced this line, even if another rule
// decides.
func TestExplainNamesTheRuleOfTheLine(t *testing.T) {
	s := load(t, `version: 1
rules:
  - name: house
    for: everyone
    disallow:
      crawl: ["/*.jpg", /members/]
  - name: pictures
    for: GPTBot
    allow:
      crawl: ["/a$", /a.jpg]
  - name: members
    for: Googlebot
    identity: verified
    allow:
      crawl: /members/open
`)
	for _, c := range []struct{ agent, path, line, rule string }{
		{"GPTBot", "/a.jpg", "Allow: /a.jpg", "pictures"},
		{"GPTBot", "/b.jpg", "Disallow: /*.jpg", "house"},
		{"GPTBot", "/a", "", ""}, // no rule disallows this path, so robots.txt does not need a line about it
		{"Googlebot", "/members/x", "Disallow: /members/", "house"},
		{"Googlebot", "/members/open", "Allow: /members/open", "members"},
		{"Googlebot", "/other", "", ""},
	} {
		u, err := url.Parse("https://www.example.com" + c.path)
		if err != nil {
			t.Fatal(err)
		}
		robots := s.Explain(site.Question{Agent: c.agent, URL: u, Now: june}).Channels[0]
		line, rule := "", ""
		if len(robots.Sends) > 1 {
			line = strings.TrimRight(strings.ReplaceAll(robots.Sends[1], "**", "*"), "*")
		}
		if len(robots.Reasons) > 0 {
			rule = robots.Reasons[0].Rule
		}
		if line != c.line || rule != c.rule {
			t.Errorf("%s %s: %q by %q; want %q by %q", c.agent, c.path, robots.Sends, rule, c.line, c.rule)
		}
	}
}

// For an unknown name, the explanation suggests a crawler with a similar name. It does not suggest anything for
// browsers. It prints the URL in its original spelling.
func TestExplainUnknownAgent(t *testing.T) {
	s := load(t, "version: 1\nrules:\n  - for: HouseBot\n    disallow:\n      crawl: /x/\n")
	for agent, meant := range map[string]string{
		"GPTBoot": "GPTBot", "gogglebot/2.1": "Googlebot", "HouseBott": "HouseBot", "Mozilla/5.0 (compatible; Googglebot/2.1)": "Googlebot",
		"Firefox/143.0": "", "Mozilla/5.0 (Linux; Android 12; CUBOT P60) AppleWebKit/537.36": "", "curl/8.7.1": "", "GPTBot": "",
	} {
		u, err := url.Parse("https://user:pw@münchen.example:8443/ä?q=ö")
		if err != nil {
			t.Fatal(err)
		}
		e := s.Explain(site.Question{Agent: agent, URL: u, Now: june})
		if e.Meant != meant || e.URL != "https://münchen.example:8443/ä?q=ö" {
			t.Errorf("%s: %q %s", agent, e.Meant, e.URL)
		}
	}
}

// If a crawler may fetch a page but not index it, the explanation says so, whatever part of the policy disallows
// indexing.
func TestExplainSaysWhatMayNotBeIndexed(t *testing.T) {
	t.Parallel()
	for rule, line := range map[string]string{
		"disallow: {index: /a/}":                                   "policy.yaml:4",
		"robots-tag: [{paths: /a/, rules: noindex}]":               "policy.yaml:4",
		"robots-tag: 'noindex, indexifembedded'":                   "policy.yaml:4",
		"robots-tag: 'unavailable_after: 1 Jan 2020 00:00:00 GMT'": "policy.yaml:4",
		"disallow: {index: /b/}":                                   "",
		"robots-tag: nosnippet":                                    "",
	} {
		s, ds := site.Load("policy.yaml", []byte("version: 1\nrules:\n  - for: everyone\n    "+rule+"\n"))
		if s == nil {
			t.Fatal(ds.Error())
		}
		u, _ := url.Parse("https://www.example.com/a/b")
		e := s.Explain(site.Question{Agent: "Googlebot", URL: u, Now: june})
		if got := e.MayNotIndex; !e.MayCrawl || (got != nil) != (line != "") || got != nil && got.Place != line {
			t.Errorf("%s: may crawl %v, may not index %+v", rule, e.MayCrawl, got)
		}
	}
}
