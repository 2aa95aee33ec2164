// SPDX-License-Identifier: Apache-2.0

package policyfile

import (
	"fmt"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/robotspolicy/caddy-robots-policy/robotstxt"
)

func TestSummary(t *testing.T) {
	t.Parallel()
	f, ds := LoadWith("summary.yaml", []byte(`version: 1
crawlers:
  PartnerBot: {}
rules:
  - for: category:ai-training
    disallow: {crawl: /}
  - for: [Googlebot, PartnerBot]
    hosts: [a.example, b.example]
    disallow: {crawl: /}
    intended: true
  - for: everyone
    hosts: "*.staging.example"
    disallow: {crawl: /, index: /}
    intended: true
`), Options{Now: testNow})
	if f == nil {
		t.Fatal(ds.Error())
	}
	text := SummaryText(f.Summary(testNow), nil, false)
	for _, want := range []string{
		"a.example and b.example:\n  may crawl:         search (",
		", unlisted clients\n  may not crawl:     ai-training (all ",
		"\n*.staging.example:\n  may not crawl:     everyone (",
		"  may not index:     everyone\n  Google shows:      no content",
		"\nany other host:\n  may crawl:         search (all ",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("no %q in\n%s", want, text)
		}
	}
	// On each host, every crawler is counted exactly once.
	all := f.Catalog.Len()
	for _, s := range f.Summary(testNow) {
		n := 0
		for _, c := range slices.Concat(s.Crawl.May, s.Crawl.MayNot) {
			n += c.Count
		}
		if n != all {
			t.Errorf("%v: %d crawlers of %d", s.Hosts, n, all)
		}
	}
}

// TestSummaryOfManyHosts checks that many hosts with the same answers share one summary.
func TestSummaryOfManyHosts(t *testing.T) {
	t.Parallel()
	var b strings.Builder
	b.WriteString("version: 1\nrules:\n")
	for i := range 200 {
		fmt.Fprintf(&b, "  - for: GPTBot\n    hosts: h%d.example\n    disallow: {crawl: /}\n", i)
	}
	f, ds := Load("many.yaml", []byte(b.String()))
	if f == nil {
		t.Fatal(ds.Error())
	}
	all := f.Summary(testNow)
	if len(all) != 2 || len(all[0].Hosts) != maxSummaryHosts || all[1].More != 150 {
		t.Errorf("%d groups\n%s", len(all), SummaryText(all, nil, false))
	}
}

// TestBriefSummary checks that the command "check" prints a summary of at most 15 lines, even for a long policy.
func TestBriefSummary(t *testing.T) {
	t.Parallel()
	for _, path := range policiesOfRepository(t) {
		data, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		f, _ := LoadWith(path, data, Options{Now: testNow})
		if f == nil {
			continue
		}
		text := SummaryText(f.Summary(testNow), nil, true)
		if n := strings.Count(text, "\n"); n > 15-2 { // 2 for the rows about blocking and rate limits
			t.Errorf("%s: %d lines\n%s", path, n, text)
		}
	}
}

// The summary includes usages for AI that robots.txt asks crawlers to avoid.
func TestSummaryOfPreferences(t *testing.T) {
	t.Parallel()
	for rule, want := range map[string]string{
		"for: everyone, disallow: {train-ai: /}":                                          "  may not train AI:  everyone\n",
		"for: everyone, disallow: {train-ai: /}}\n  - {for: GPTBot, allow: {train-ai: /}": "  may not train AI:  everyone except GPTBot",
		"for: GPTBot, disallow: {ai-use: /}":                                              "  not in AI answers: ai-training (1 of ",
		"for: Googlebot, hosts: a.example, disallow: {train-ai: /}":                       "a.example:\n  may not train AI:  search (",
		"for: GPTBot, disallow: {train-ai: /a/}":                                          "  may not train AI:  /a/, for ai-training (1 of ",
	} {
		f, ds := Load("ai.yaml", []byte("version: 1\nrules:\n  - {"+rule+"}\n"))
		if f == nil {
			t.Fatal(ds.Error())
		}
		text := SummaryText(f.Summary(testNow), nil, true)
		if !strings.Contains(text, want) || strings.Contains(text, "may not train AI:") != strings.Contains(rule, "train-ai") || strings.Contains(text, "not in AI answers:") != strings.Contains(rule, "ai-use") {
			t.Errorf("%s:\n%s", rule, text)
		}
	}
}

// The row "may crawl" does not list its exceptions. It refers to the row "may not crawl", which comes next and lists them.
func TestSummaryNamesTheExceptions(t *testing.T) {
	f, ds := Load("p.yaml", []byte("version: 1\nrules:\n  - for: GPTBot\n    disallow: {crawl: /}\n"))
	if f == nil {
		t.Fatal(ds)
	}
	const want = "  may crawl:         everyone except the crawlers after \"may not crawl:\"\n"
	if got := SummaryText(f.Summary(testNow), nil, true); !strings.Contains(got, want) {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}

// The test replaces the numbers of crawlers in a summary with N, because they change with the catalog.
func TestSummaryText(t *testing.T) {
	t.Parallel()
	number := regexp.MustCompile(`\d+`)
	const (
		everyone   = "  may crawl:         everyone (N known crawlers, and unlisted clients)\n"
		exceptions = "  may crawl:         everyone (N known crawlers, and unlisted clients), except for some paths\n"
		closed     = "  may not crawl:     everyone (N known crawlers, and unlisted clients), except for some paths\n"
	)
	for _, c := range []struct{ name, rules, want string }{
		{"nothing", "{for: everyone, allow: {crawl: /}}", "every host:\n" + everyone + "  Google shows:      all of a page\n"},
		{
			"paths", "{for: everyone, disallow: {crawl: [/premium/, /archive/]}}",
			"every host:\n" + exceptions + "  may not crawl:     /premium/, for everyone\n                     /archive/, for everyone\n  Google shows:      all of a page\n",
		},
		{
			"a path for a category", "{for: category:archive, disallow: {crawl: /x/}}",
			"every host:\n" + exceptions + "  may not crawl:     /x/, for archive (all N)\n  Google shows:      all of a page\n",
		},
		{
			"a path for everyone but one", "{for: everyone, disallow: {crawl: /x/}}\n  - {for: GPTBot, allow: {crawl: /x/}}",
			"every host:\n" + exceptions + "  may not crawl:     /x/, for everyone except GPTBot\n  Google shows:      all of a page\n",
		},
		{
			"a path that every crawler may crawl after all", `{for: everyone, allow: {crawl: "/x**yz"}, disallow: {crawl: ["/x*yz", /secret/]}}`,
			"every host:\n" + exceptions + "  may not crawl:     /secret/, for everyone\n  Google shows:      all of a page\n",
		},
		{
			"a path that is allowed in spite of a disallow entry",
			"{for: everyone, disallow: {crawl: /}, allow: {crawl: /pub/}, intended: true}\n  - {for: GPTBot, disallow: {crawl: /pub/}}\n  - {for: GPTBot, allow: {crawl: /pub/}}",
			"every host:\n  may crawl:         /pub/, for everyone\n" + closed +
				"  Google shows:      no content of a page, because Googlebot may not crawl it\n  AI search:         PerplexityBot, OAI-SearchBot and N more may not crawl, so their answers do not show the pages\n",
		},
		{
			"an allowed path in a disallowed site", "{for: everyone, disallow: {crawl: /}, allow: {crawl: /open/}, intended: true}",
			"every host:\n  may crawl:         /open/, for everyone\n" + closed +
				"  Google shows:      no content of a page, because Googlebot may not crawl it\n  AI search:         PerplexityBot, OAI-SearchBot and N more may not crawl, so their answers do not show the pages\n",
		},
		{
			"an index rule for a path and for the site", "{for: everyone, disallow: {index: [/, /drafts/]}, allow: {index: /news/}, intended: true}",
			"every host:\n" + everyone + "  may not index:     everyone, except for some paths\n  may index:         /news/, for everyone\n  Google shows:      no page (noindex)\n                     all of /news/\n",
		},
		{
			"noindex on one host", "{for: everyone, disallow: {index: /tag/}}\n  - {for: everyone, hosts: [a.example, b.example], disallow: {index: /}, intended: true}",
			"a.example and b.example:\n  may not index:     everyone\n  Google shows:      no page (noindex)\n" +
				"any other host:\n  may not index:     /tag/, for everyone\n  Google shows:      all of a page\n                     no page of /tag/ (noindex)\nevery host:\n" + everyone,
		},
		{
			"a rule for one host, and no other difference", "{for: everyone, hosts: a.example, disallow: {crawl: /x/}}",
			"a.example:\n  may not crawl:     /x/, for everyone\nevery host:\n" + exceptions + "  Google shows:      all of a page\n",
		},
		{
			"a path on the second host only", "{for: everyone, hosts: a.example, disallow: {train-ai: /}}\n  - {for: everyone, hosts: b.example, disallow: {crawl: /x/}}",
			"a.example:\n  may not train AI:  everyone\nb.example:\n  may not crawl:     /x/, for everyone\nevery host:\n" + exceptions + "  Google shows:      all of a page\n",
		},
		{
			"an allow entry whose date has passed", "{for: everyone, allow: {index: {paths: /events/, time-limit: until-2020-01-31}}}",
			"every host:\n" + everyone + "  may not index:     /events/, for everyone\n  Google shows:      all of a page\n                     no page of /events/ (noindex)\n",
		},
		{
			"a path that some crawlers lose and others gain", "{for: category:archive, disallow: {crawl: /}, allow: {crawl: /x/}}\n  - {for: category:feed, disallow: {crawl: /x/}}",
			"every host:\n  may crawl:         search (all N), monitoring (all N), crawlers without a category (all N), seo (all N), preview (all N), ads (all N), feed (all N), " +
				"security (all N), ai-input (all N), academic (all N), ai-assistant (all N), ai-training (all N), ai-agent (all N), unlisted clients, except for some paths\n" +
				"                     /x/, for everyone except feed (all N)\n" +
				"  may not crawl:     archive (all N), except for some paths\n                     /x/, for feed (all N)\n  Google shows:      all of a page\n" +
				"  no category:       GoogleOther, NacN Crawler and N more remain allowed, because no source states their purpose; list them with \"caddy robots-policy crawlers none\"\n",
		},
		{
			"the home page alone", `{for: everyone, disallow: {crawl: "/$"}}`,
			"every host:\n" + exceptions + "  may not crawl:     /$, for everyone\n  Google shows:      all of a page\n",
		},
		{
			"a path on one host, and the same path for one crawler", "{for: everyone, hosts: a.example, disallow: {crawl: /x/}}\n  - {for: GPTBot, disallow: {crawl: /x/}}",
			"a.example:\n  may not crawl:     /x/, for everyone\nany other host:\n  may not crawl:     /x/, for ai-training (N of N: GPTBot)\nevery host:\n" + exceptions + "  Google shows:      all of a page\n",
		},
		{"a host without a difference", "{for: GPTBot, hosts: a.example, limit: 10/m}", "every host:\n" + everyone + "  Google shows:      all of a page\n"},
		{
			"a page that Google cannot crawl has no noindex", "{for: everyone, disallow: {crawl: /x/, index: /x/}}",
			"every host:\n" + exceptions + "  may not crawl:     /x/, for everyone\n  may not index:     /x/, for everyone\n" +
				"  Google shows:      all of a page\n                     no content of /x/, because Googlebot may not crawl it\n",
		},
		{
			"robots-tag", "{for: everyone, robots-tag: [{paths: [/x/, /y/], rules: 'max-snippet:50'}]}\n  - {for: Bingbot, robots-tag: [{paths: /z/, rules: noindex}]}",
			"every host:\n" + everyone + "  Google shows:      all of a page\n                     pages of /x/ with max-snippet:N\n                     pages of /y/ with max-snippet:N\n",
		},
		{
			"a date that has passed", "{for: everyone, robots-tag: 'unavailable_after: 2020-01-01T00:00:00Z'}",
			"every host:\n  may crawl:         everyone (N known crawlers, and unlisted clients)\n  may not index:     everyone\n  Google shows:      no page (noindex)\n",
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			f, ds := LoadWith("p.yaml", []byte("version: 1\nrules:\n  - "+c.rules+"\n"), Options{Now: testNow})
			if f == nil {
				t.Fatal(ds.Text())
			}
			if got := number.ReplaceAllString(SummaryText(f.Summary(testNow), nil, false), "N"); got != c.want {
				t.Errorf("got\n%s\nwant\n%s", got, c.want)
			}
		})
	}
}

// A brief summary has at most one path for each label. The rows that all hosts have in common come last.
func TestBriefSummaryText(t *testing.T) {
	t.Parallel()
	f, ds := Load("p.yaml", []byte(`version: 1
rules:
  - {for: everyone, disallow: {crawl: [/x/, /y/]}}
  - {for: everyone, hosts: a.example, disallow: {crawl: [/z/], index: /}, intended: true}
  - {for: everyone, hosts: b.example, disallow: {train-ai: /}}
  - {for: everyone, hosts: c.example, disallow: {ai-use: /}}
`))
	if f == nil {
		t.Fatal(ds.Text())
	}
	want := `a.example:
  may not crawl:     /z/, for everyone
  may not index:     everyone
  Google shows:      no page (noindex)
b.example:
  may not train AI:  everyone
  Google shows:      all of a page
and 2 more host groups with other rules (--explain lists them)
every host:
  may not crawl:     /x/, for everyone (and 1 more path)
  blocked:           no client
`
	got := SummaryText(f.Summary(testNow), []SummaryRow{{Label: "blocked:", Text: "no client"}}, true)
	if got = regexp.MustCompile(`  may crawl: .*\n`).ReplaceAllString(got, ""); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}

// A brief summary shows the shortest path, because it covers the most pages. Crawlers outside the catalog are named.
func TestSummaryShowsTheBroadestPath(t *testing.T) {
	t.Parallel()
	f, ds := Load("p.yaml", []byte("version: 1\ncrawlers: {everyone else: {}}\nrules:\n  - for: [everyone else]\n    disallow: {crawl: [/long/path/, /a/, /b/c/]}\n"))
	if f == nil {
		t.Fatal(ds.Text())
	}
	const want = "  may not crawl:     /a/, for crawlers outside the catalog (1: \"everyone else\") (and 2 more paths)\n"
	if text := SummaryText(f.Summary(testNow), nil, true); !strings.Contains(text, want) {
		t.Errorf("no %q in\n%s", want, text)
	}
}

// The lines of the site's own robots.txt are part of the summary.
func TestSummaryOfMergedRobotsTxt(t *testing.T) {
	t.Parallel()
	f, ds := LoadWith("p.yaml", []byte("version: 1\n"), Options{Now: testNow, Below: robotstxt.Parse([]byte("User-agent: *\nDisallow: /theirs/\n"))})
	if f == nil {
		t.Fatal(ds.Text())
	}
	if text := SummaryText(f.Summary(testNow), nil, false); !strings.Contains(text, "  may not crawl:     /theirs/, for everyone except ") {
		t.Error(text)
	}
}

// A row about a path does not name crawlers that may not crawl any page, because another row names them. The exceptions
// of a row are listed by name. The row does not tell how many crawlers the categories of the exceptions have.
func TestSummaryOfPathsOfFewCrawlers(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"  - {for: GPTBot, disallow: {crawl: /}}\n  - {for: [GPTBot, CCBot], disallow: {crawl: /x/}}\n":                                    "/x/, for ai-training (1 of ",
		"  - {for: everyone, disallow: {crawl: /x/}}\n  - {for: [Bingbot, GPTBot], allow: {crawl: /x/}}\n":                                 "/x/, for everyone except GPTBot and Bingbot\n",
		"  - {for: everyone, disallow: {crawl: /x/}}\n  - {for: [GPTBot, CCBot, ClaudeBot, Bytespider, Amazonbot], allow: {crawl: /x/}}\n": "/x/, for everyone except Amazonbot, Bytespider, CCBot and 2 more crawlers\n",
		"  - {for: everyone, disallow: {crawl: /x/}}\n  - {for: [category:ads, Bingbot], allow: {crawl: /x/}}\n":                           ") and Bingbot\n",
	} {
		f, ds := LoadWith("p.yaml", []byte("version: 1\nrules:\n"+text), Options{Now: testNow})
		if f == nil {
			t.Fatal(ds.Text())
		}
		if got := SummaryText(f.Summary(testNow), nil, false); !strings.Contains(got, want) {
			t.Errorf("no %q in\n%s", want, got)
		}
	}
}

// If there are too many hosts to summarize, the text contains the number of the remaining hosts. This is true even if
// all summarized hosts have the same rows.
func TestSummaryOfHostsThatAreNotLookedAt(t *testing.T) {
	t.Parallel()
	var b strings.Builder
	for i := range maxSummaryHosts + 10 {
		fmt.Fprintf(&b, "  - {for: GPTBot, hosts: h%d.example, limit: 10/m}\n", i)
	}
	f, ds := Load("p.yaml", []byte("version: 1\nrules:\n"+b.String()))
	if f == nil {
		t.Fatal(ds.Text())
	}
	if text := SummaryText(f.Summary(testNow), nil, true); !strings.HasPrefix(text, "10 more hosts of the policy: not looked at\nevery host looked at:\n  may crawl: ") {
		t.Error(text)
	}
}

// The summary of a large policy says what it leaves out.
func TestSummaryIsBounded(t *testing.T) {
	t.Parallel()
	var rules, named strings.Builder
	for i := range 1500 {
		fmt.Fprintf(&rules, "  - {for: Bot%[1]c%[2]c%[3]c, disallow: {crawl: [/%[4]d/, /x%[4]d/]}}\n", 'a'+i%26, 'a'+i/26%26, 'a'+i/676, i)
		fmt.Fprintf(&named, "  Bot%c%c%c: {}\n", 'a'+i%26, 'a'+i/26%26, 'a'+i/676)
	}
	f, ds := Load("p.yaml", []byte("version: 1\ncrawlers:\n"+named.String()+"rules:\n"+rules.String()))
	if f == nil {
		t.Fatal(ds.Text())
	}
	s := f.Summary(testNow)
	if text := SummaryText(s, nil, true); len(s) != 1 || len(s[0].Paths)+s[0].MorePaths != 3000 || s[0].MorePaths == 0 || !strings.Contains(text, "not compared:") {
		t.Errorf("%d paths, and %d more\n%s", len(s[0].Paths), s[0].MorePaths, text)
	}
}
