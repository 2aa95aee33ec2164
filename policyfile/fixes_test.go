// SPDX-License-Identifier: Apache-2.0

package policyfile

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/robotspolicy/caddy-robots-policy/policy"
)

// fix is a problem, together with the change that its message suggests.
type fix struct {
	name     string
	file     string
	code     string // the code of the problem, which must disappear after the fix
	says     string // a part of the message
	old, new string // the text to replace, and its replacement according to the message
	opens    string // "CRAWLER PLACE", the only access that the fix must add; empty if the fix must not add access
}

// fixes has an entry for each fix that warnings and hints about rules suggest.
var fixes = []fix{
	{
		"open what everyone may not crawl", `
  - for: everyone
    disallow: {crawl: [/members/, /admin/]}
  - for: category:search
    allow: {crawl: [/]}
expect: [Googlebot may not crawl /admin/]`,
		"still-disallowed", `add "/members/" to this allow`, "[/]}", "[/, /members/]}", "search /members/",
	},
	{
		"open what both paths match", `
  - for: everyone
    disallow: {crawl: "/*.pdf$"}
  - for: Googlebot
    allow: {crawl: /reports/}`,
		"partly-disallowed", `allow "/reports/*.pdf$" here`, "/reports/}", `[/reports/, "/reports/*.pdf$"]}`, "Googlebot /reports/a.pdf",
	},
	{
		"let one crawler in", `
  - for: category:ai-training
    disallow: {crawl: /, train-ai: /}
  - for: operator:OpenAI
    allow: {crawl: /}`,
		"neither-narrower", `write a rule "for: GPTBot" that allows "crawl: /"`, "allow: {crawl: /}", "allow: {crawl: /}\n  - for: GPTBot\n    allow: {crawl: /}", "GPTBot *",
	},
	{
		"open a host", `
  - for: category:search
    allow: {crawl: /}
  - for: everyone
    hosts: staging.example.com
    disallow: {crawl: /}
    intended: true`,
		"disallowed-on-host", `write this entry in a rule with "hosts: staging.example.com"`, "    allow: {crawl: /}", "    hosts: staging.example.com\n    allow: {crawl: /}", "search https://staging.example.com",
	},
	{
		"open a path on a host", `
  - for: category:search
    allow: {crawl: /}
  - for: everyone
    hosts: staging.example.com
    disallow: {crawl: /drafts/}
sitemaps: /sitemap.xml`,
		"disallowed-on-host", `allow that path in a rule with "hosts: staging.example.com"`, "sitemaps: /sitemap.xml", "  - for: category:search\n    hosts: staging.example.com\n    allow: {crawl: /drafts/}", "search https://staging.example.com/drafts/",
	},
	{
		"keep a limit", `
  - for: everyone
    allow: {present-snippet: {paths: /, max-length: 100-chars}}
  - for: Googlebot
    allow: {present-snippet: /news/}`,
		"limit-dropped", `write present-snippet: {paths: /news/, max-length: 100-chars} here`, "present-snippet: /news/", "present-snippet: {paths: /news/, max-length: 100-chars}", "",
	},
	{
		"let a named crawler in", `
  - for: everyone-else
    disallow: {crawl: /}
    intended: true
  - for: GPTBot
    disallow: {crawl: /private/}`,
		"only-disallowed", `add "allow: {crawl: /}" here`, "disallow: {crawl: /private/}", "disallow: {crawl: /private/}\n    allow: {crawl: /}", "GPTBot *",
	},
	{
		"delete what changes nothing", `
  - for: everyone
    disallow: {crawl: /a/}
  - for: GPTBot
    disallow: {crawl: /a/b/}`,
		"changes-nothing", "delete this entry", "  - for: GPTBot\n    disallow: {crawl: /a/b/}", "", "",
	},
	{
		"delete one of two opposites", `
  - for: everyone
    disallow: {crawl: /a/}
  - for: everyone
    allow: {crawl: /a/}`,
		"tie", "Delete the disallow entry in line 4, which has no effect", "  - for: everyone\n    disallow: {crawl: /a/}\n", "", "",
	},
	{
		"let search engines in", `
  - for: everyone
    disallow: {crawl: /}`,
		"disallows-search", `allow "crawl: /" in a rule with "for: [category:search, category:preview]"`, "disallow: {crawl: /}",
		"disallow: {crawl: /}\n  - for: [category:search, category:preview]\n    allow: {crawl: /}", "search *",
	},
	{
		"let search engines into a host", `
  - for: everyone
    hosts: "*.example.com"
    disallow: {crawl: /}`,
		"disallows-search", `and "hosts: '*.example.com'"`, "disallow: {crawl: /}",
		"disallow: {crawl: /}\n  - for: [category:search, category:preview]\n    hosts: '*.example.com'\n    allow: {crawl: /}", "search https://",
	},
	{
		"let a search engine in that is blocked", `
  - for: Bingbot
    disallow: {crawl: /}
    enforce: block
sitemaps: /sitemap.xml`,
		"blocks-search", "delete this line", "    disallow: {crawl: /}\n    enforce: block\n", "    disallow: {crawl: /b/}\n", "Bingbot *",
	},
	{
		"mean it on a staging host", `
  - for: everyone
    hosts: staging.example.com
    disallow: {crawl: /}`,
		"disallows-search", `If that is what you want, write "intended: true" in this rule; to keep the host out of search results`, "disallow: {crawl: /}", "disallow: {crawl: /}\n    intended: true", "",
	},
	{
		"open a host that two lines close", `
  - for: category:search
    allow: {crawl: [/, /members/]}
  - for: everyone
    hosts: staging.example.com
    disallow: {crawl: [/, /members/]}
    intended: true`,
		"disallowed-on-host", `This allow entry has no effect on staging.example.com, because crawl is disallowed for everyone there (line 7). To allow it there, write this entry in a rule with "hosts: staging.example.com"`,
		"    allow: {crawl: [/, /members/]}", "    hosts: staging.example.com\n    allow: {crawl: [/, /members/]}", "search https://staging.example.com",
	},
	{
		"hide one host", `
  - for: everyone
    disallow: {index: /}`,
		"site-not-indexed", `write the hosts that you mean under "hosts"`, "disallow: {index: /}", "hosts: staging.example.com\n    disallow: {index: /}", "all *",
	},
	{
		"a date that has passed, and a later one", `
  - for: everyone
    allow: {index: {paths: /drafts/, time-limit: until-2020-01-31}}`,
		"time-limit-passed", "choose a later date", "until-2020-01-31", "until-2035-01-31", "all /drafts/",
	},
	{
		"a date that has passed for good", `
  - for: everyone
    allow: {index: {paths: /drafts/, time-limit: until-2020-01-31}}`,
		"time-limit-passed", "write the usage under disallow without time-limit", "allow: {index: {paths: /drafts/, time-limit: until-2020-01-31}}", "disallow: {index: /drafts/}", "",
	},
	{
		"publish a reference", `
  - for: everyone
    permissions-reference: /terms.txt
publish: {acap: off}`,
		"not-published", `write "acap: auto" under publish`, "acap: off", "acap: auto", "",
	},
	{
		"publish a condition", `
  - for: everyone
    allow: {preserve: {paths: /, time-limit: 10-days}}
publish: {acap: off}`,
		"qualifier-dropped", "or delete the qualifier", "{paths: /, time-limit: 10-days}", "/", "",
	},
	{
		"an empty rule", `
  - for: everyone
    disallow: {crawl: /x/}
  - for: Googlebot`,
		"empty-rule", "or delete it", "\n  - for: Googlebot", "", "",
	},
	{
		"mean it", `
  - for: everyone
    disallow: {crawl: /}`,
		"disallows-search", `write "intended: true" in this rule`, "disallow: {crawl: /}", "disallow: {crawl: /}\n    intended: true", "",
	},
	{
		"mean two things", `
  - for: everyone
    disallow: {crawl: /, index: /}`,
		"disallows-search", `write "intended: [disallows-search, site-not-indexed]" in this rule`, "index: /}", "index: /}\n    intended: [disallows-search, site-not-indexed]", "",
	},
	{
		"index www", `
  - for: everyone
    hosts: "*.example.com"
    disallow: {index: /}`,
		"includes-www", `allow "index: /" in a rule with "hosts: www.example.com"`, "disallow: {index: /}", "disallow: {index: /}\n  - for: everyone\n    hosts: www.example.com\n    allow: {index: /}", "all https://www.example.com",
	},
	{
		"wildcards", `
  - for: everyone
    disallow: {crawl: "/news/.*"}`,
		"looks-like-regexp", `write "/news/*"`, "/news/.*", "/news/*", "",
	},
	{
		"training crawlers", `
  - for: everyone
    disallow: {train-ai: /}`,
		"training-may-crawl", `add a rule "for: category:ai-training" that disallows "crawl: /"`, "disallow: {train-ai: /}", "disallow: {train-ai: /}\n  - for: category:ai-training\n    disallow: {crawl: /}", "",
	},
	{
		"AI answers", `
  - for: everyone
    disallow: {ai-use: [/news/, /reports/]}`,
		"ai-may-crawl", `add a rule "for: [category:ai-input, category:ai-assistant]" that disallows "crawl: [/news/, /reports/]"`, "/reports/]}", "/reports/]}\n  - for: [category:ai-input, category:ai-assistant]\n    disallow: {crawl: [/news/, /reports/]}", "",
	},
	{
		"crawlers that train among other things", `
  - for: category:ai-training
    disallow: {crawl: /}
  - for: everyone
    disallow: {index: /x/}`,
		"dual-use-crawler", `disallow "train-ai: /" for everyone`, "{index: /x/}", "{index: /x/, train-ai: /}", "",
	},
	{
		"a purpose", `
  - for: purpose:news-2
    disallow: {crawl: /x/}`,
		"unknown-purpose", `write "user-agent-purpose: on" under publish`, "disallow: {crawl: /x/}", "disallow: {crawl: /x/}\npublish: {user-agent-purpose: on}", "",
	},
	{
		"noindex that can be read", `
  - for: everyone
    disallow: {crawl: /x/, index: /x/}`,
		"hidden-noindex", "or delete index here", ", index: /x/", "", "",
	},
	{
		"noindex on a staging host that is meant to be disallowed", `
  - for: everyone
    hosts: staging.example.com
    disallow: {crawl: /, index: /}
    intended: true`,
		"hidden-noindex", "disallow index and follow instead of crawl", "{crawl: /, index: /}", "{index: /, follow: /}", "all https://staging.example.com",
	},
	{
		"keep a staging host out of search results", `
  - for: everyone
    hosts: staging.example.com
    disallow: {crawl: /}`,
		"disallows-search", "to keep the host out of search results, disallow index and follow instead of crawl", "{crawl: /}", "{index: /, follow: /}", "all https://staging.example.com",
	},
	{
		"enforcement of nothing", `
  - for: everyone
    disallow: {index: /x/}
enforcement: block`,
		"nothing-to-enforce", "or delete enforcement", "enforcement: block", "", "",
	},
}

// TestClosedHostIsHintedOnce has a rule that allows several paths, and a rule that disallows a whole host. The first
// rule must get one hint that its paths stay disallowed on this host, not one hint for each path.
func TestClosedHostIsHintedOnce(t *testing.T) {
	t.Parallel()
	_, ds := Load("policy.yaml", []byte(`version: 1
rules:
  - for: category:search
    allow: {crawl: [/news/, /sport/]}
  - for: everyone
    hosts: staging.example.com
    disallow: {crawl: /}
    intended: true
`))
	n := 0
	for _, d := range ds {
		if d.Code == "disallowed-on-host" {
			n++
		}
	}
	if n != 1 {
		t.Errorf("%d hints:\n%s", n, ds.Text())
	}
}

// TestFixesWork makes the change that a message suggests. Then the message must be gone, and the change must not allow
// more than the field "opens" says.
func TestFixesWork(t *testing.T) {
	t.Parallel()
	for _, fix := range fixes {
		t.Run(fix.name, func(t *testing.T) {
			t.Parallel()
			before := "version: 1\nrules:" + fix.file + "\n"
			if n := strings.Count(before, fix.old); n != 1 {
				t.Fatalf("%q is %d times in the file", fix.old, n)
			}
			after := strings.Replace(before, fix.old, fix.new, 1)
			old := problemOf(t, before, fix.code)
			if old == nil || !strings.Contains(old.Message, fix.says) {
				t.Fatalf("the message is %v, which does not say %q", old, fix.says)
			}
			if still := problemOf(t, after, fix.code); still != nil {
				t.Errorf("after the fix there still is: %s\n%s", still, after)
			}
			opened, closed := compareAnswers(t, withoutErrors(before), withoutErrors(after))
			if fix.opens == "" && len(opened) > 0 {
				t.Errorf("the fix opens %q", opened[:min(len(opened), 5)])
			}
			if fix.opens != "" {
				if len(opened) == 0 {
					t.Error("the fix allows nothing")
				}
				for _, o := range opened {
					if !isMeant(fix.opens, o) {
						t.Errorf("the fix opens %q too", o)
					}
				}
			}
			if len(closed) > 0 && !slices.Contains([]string{"training-may-crawl", "ai-may-crawl", "looks-like-regexp", "blocks-search"}, fix.code) && !strings.Contains(fix.new, "follow: /") {
				t.Errorf("the fix closes %q", closed)
			}
		})
	}
	seen := map[string]bool{}
	for _, fix := range fixes {
		seen[fix.code] = true
	}
	for _, code := range []string{"still-disallowed", "partly-disallowed", "neither-narrower", "disallowed-on-host", "limit-dropped"} {
		if !seen[code] {
			t.Errorf("no fix of %s is tested", code)
		}
	}
}

// TestNoindexThatCanBeRead checks that the warning hidden-noindex appears only if search engines may not fetch the
// page. It must not appear if a whole host is disallowed, because the safety check disallows-search already reports
// this.
func TestNoindexThatCanBeRead(t *testing.T) {
	t.Parallel()
	for name, file := range map[string]string{
		"training crawlers stay out": `
  - for: [Googlebot, GPTBot]
    disallow: {index: /x/}
  - for: GPTBot
    disallow: {crawl: /}`,
		"search engines are let in": `
  - for: everyone
    disallow: {index: /x/}
  - for: everyone-else
    disallow: {crawl: /}
  - for: [category:search, category:preview]
    allow: {crawl: /}`,
		"a host, about which disallows-search says it": `
  - for: everyone
    hosts: staging.example.com
    disallow: {crawl: /, index: /}`,
	} {
		if d := problemOf(t, "version: 1\nrules:"+file+"\n", "hidden-noindex"); d != nil {
			t.Errorf("%s: %s", name, d)
		}
	}
}

// withoutErrors changes a file that blocks search engines, so that the file loads.
func withoutErrors(file string) string {
	return strings.ReplaceAll(file, "enforce: block", "enforce: log")
}

func problemOf(t *testing.T, file, code string) *Diagnostic {
	t.Helper()
	_, ds := LoadWith("fix.yaml", []byte(file), Options{Now: testNow})
	for i := range ds {
		if ds[i].Code == code {
			return &ds[i]
		}
		if ds[i].Severity == policy.Error && ds[i].Code != "blocks-search" {
			t.Fatalf("%s\n%s", ds[i], file)
		}
	}
	return nil
}

// isMeant reports whether the fix should allow the access in answer, which has the form "CRAWLER HOST PATH".
func isMeant(opens, answer string) bool {
	who, place, _ := strings.Cut(opens, " ")
	parts := strings.SplitN(answer, " ", 3)
	if search := slices.Contains([]string{"Googlebot", "Bingbot", "facebookexternalhit"}, parts[0]); who == "search" && !search || who != "search" && who != "all" && who != parts[0] {
		return false
	}
	return place == "*" || strings.HasPrefix(parts[2], place) || strings.HasPrefix("https://"+parts[1]+parts[2], place)
}

// compareAnswers compares what two versions of a file allow. opened is the access that only the version "after" allows,
// and closed is the access that only the version "before" allows.
func compareAnswers(t *testing.T, before, after string) (opened, closed []string) {
	t.Helper()
	load := func(file string) *policy.Policy {
		f, ds := LoadWith("fix.yaml", []byte(file), Options{Now: testNow})
		if f == nil {
			t.Fatalf("%s\n%s", ds.Error(), file)
		}
		return f.Policy
	}
	a, b := load(before), load(after)
	for _, token := range []string{"", "Googlebot", "Bingbot", "facebookexternalhit", "GPTBot", "CCBot", "ClaudeBot", "AhrefsBot", "ChatGPT-User"} {
		for _, host := range []string{"www.example.com", "staging.example.com", "other.example"} {
			for _, path := range []string{"/", "/x", "/members/a", "/admin/", "/reports/a.pdf", "/reports/a", "/a.pdf", "/drafts/x", "/private/x", "/a/b/c", "/a/c", "/news/1", "/news/.*"} {
				for _, u := range []policy.Usage{policy.Crawl, policy.Index, policy.PresentSnippet} {
					ask := func(p *policy.Policy) bool {
						return p.Decide(policy.Query{Crawler: p.Crawler(token), Host: host, Path: path, Usage: u, Now: testNow}).Verdict != policy.Disallowed
					}
					name := token
					if name == "" {
						name = "unknown"
					}
					answer := fmt.Sprintf("%s %s %s", name, host, path)
					switch was, is := ask(a), ask(b); {
					case !was && is:
						opened = append(opened, answer)
					case was && !is:
						closed = append(closed, answer)
					}
				}
			}
		}
	}
	return opened, closed
}
