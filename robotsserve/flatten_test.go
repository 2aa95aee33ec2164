// SPDX-License-Identifier: Apache-2.0

package robotsserve

import (
	"slices"
	"testing"

	"github.com/robotspolicy/caddy-robots-policy/policy"
)

// TestFlattening lists rules and the robots.txt that they result in.
func TestFlattening(t *testing.T) {
	const everyone, alpha, search = "everyone", "AlphaBot", "category:search"
	for _, c := range []struct {
		name  string
		rules []policy.Rule
		want  string
		codes []string
	}{
		{
			"an Allow that allows nothing is left out",
			[]policy.Rule{crawlRule(1, everyone, false, "/members/", "/*?sort="), crawlRule(10, search, true, "/")},
			"User-agent: *\nDisallow: /members/\nDisallow: /*?sort=\n", nil,
		},
		{
			"an Allow within what is disallowed opens it",
			[]policy.Rule{crawlRule(1, everyone, false, "/members/"), crawlRule(10, search, true, "/members/free/")},
			"User-agent: *\nDisallow: /members/\n\nUser-agent: AlphaBot\nAllow: /members/free/\nDisallow: /members/\n", nil,
		},
		{
			"a Disallow that an Allow covers is left out",
			[]policy.Rule{crawlRule(1, everyone, false, "/a/b/", "/c/"), crawlRule(10, alpha, true, "/a/b/")},
			"User-agent: *\nDisallow: /a/b/\nDisallow: /c/\n\nUser-agent: AlphaBot\nDisallow: /c/\n", nil,
		},
		{
			"an intersection is written out",
			[]policy.Rule{crawlRule(1, everyone, false, "/*?"), crawlRule(10, alpha, false, "/"), crawlRule(20, alpha, true, "/shop/")},
			"User-agent: *\nDisallow: /*?\n\nUser-agent: AlphaBot\nDisallow: /shop/*?\nAllow: /shop/\nDisallow: /\n", nil,
		},
		{
			"a tie allows",
			[]policy.Rule{crawlRule(1, everyone, false, "/*.g*f$"), crawlRule(10, alpha, true, "/x.gif$")},
			"User-agent: *\nDisallow: /*.g*f$\n\nUser-agent: AlphaBot\nAllow: /x.gif$\nDisallow: /*.g*f$\n", nil,
		},
		{
			"an Allow that is too short",
			[]policy.Rule{crawlRule(1, everyone, false, "/*x*.*gif$"), crawlRule(10, alpha, true, "/x.gif$")},
			"User-agent: *\nDisallow: /*x*.*gif$\n",
			[]string{"warning not-flattenable 11"},
		},
		{
			"paths that two permissions open together, each a prohibition of its own",
			[]policy.Rule{crawlRule(1, everyone, false, "/a*a*a"), crawlRule(10, alpha, false, "/"), crawlRule(20, alpha, true, "/aa"), crawlRule(30, search, true, "/aaa")},
			"User-agent: *\nDisallow: /a*a*a\n\nUser-agent: AlphaBot\nDisallow: /a*a*a\nAllow: /aa\nDisallow: /\n",
			[]string{"warning not-flattenable 21"},
		},
		{
			"two groups of which none is narrower",
			[]policy.Rule{crawlRule(1, search, true, "/a*b"), crawlRule(10, "operator:alpha", false, "/*ab")},
			"User-agent: *\nDisallow:\n\nUser-agent: AlphaBot\nDisallow: /*ab\n", nil,
		},
		{
			"everyone else",
			[]policy.Rule{crawlRule(1, "everyone-else", false, "/"), crawlRule(10, alpha, true, "/"), crawlRule(20, alpha, false, "/search")},
			"User-agent: *\nDisallow: /\n\nUser-agent: AlphaBot\nDisallow: /search\n", nil,
		},
		{
			"a group that exists to disallow nothing",
			[]policy.Rule{crawlRule(1, everyone, false, "/a/"), crawlRule(10, alpha, true, "/a/")},
			"User-agent: *\nDisallow: /a/\n\nUser-agent: AlphaBot\nDisallow:\n", nil,
		},
		{
			"the directory of an index page stays disallowed",
			[]policy.Rule{crawlRule(1, everyone, false, "/"), crawlRule(10, everyone, true, "/app/index.html")},
			"User-agent: *\nAllow: /app/index.html\nDisallow: /\nDisallow: /*app/$\n", nil,
		},
		{
			"an index page whose directory nothing can keep closed",
			[]policy.Rule{crawlRule(1, everyone, false, "/app/"), crawlRule(10, everyone, true, "/app/index.html")},
			"User-agent: *\nDisallow: /app/\n",
			[]string{"warning not-flattenable 11"},
		},
		{
			"index.htm is an index page, too",
			[]policy.Rule{crawlRule(1, everyone, false, "/"), crawlRule(10, everyone, true, "/app/index.htm")},
			"User-agent: *\nAllow: /app/index.htm\nDisallow: /\nDisallow: /*app/$\n", nil,
		},
		{
			"an index page whose directory alone is disallowed",
			[]policy.Rule{crawlRule(1, everyone, false, "/app/$", "/app/i"), crawlRule(10, everyone, true, "/app/index.html")},
			"User-agent: *\nDisallow: /app/$\nDisallow: /app/i\n",
			[]string{"warning not-flattenable 11"},
		},
		{
			"an index page in any directory",
			[]policy.Rule{crawlRule(1, everyone, false, "/"), crawlRule(10, everyone, true, "/a*/index.html")},
			"User-agent: *\nDisallow: /\n",
			[]string{"warning not-flattenable 11"},
		},
		{
			"what keeps a directory closed closes nothing else",
			[]policy.Rule{crawlRule(1, everyone, false, "/"), crawlRule(10, everyone, true, "/app/index.html", "/my")},
			"User-agent: *\nAllow: /app/index.html\nAllow: /my*app/$\nDisallow: /*app/$\nAllow: /my\nDisallow: /\n", nil,
		},
		{
			"an index page whose directory is allowed",
			[]policy.Rule{crawlRule(1, everyone, false, "/app/i"), crawlRule(10, everyone, true, "/app/index.html")},
			"User-agent: *\nAllow: /app/index.html\nDisallow: /app/i\n", nil,
		},
		{
			"a literal dollar sign, encoded and plain",
			[]policy.Rule{crawlRule(1, everyone, false, "/*$subscribe", "/a%24")},
			"User-agent: *\nDisallow: /*%24subscribe\nDisallow: /*$subscribe\nDisallow: /a%24\nDisallow: /a$*\n",
			[]string{"hint other-spelling 2", "hint other-spelling 3"},
		},
		{
			"a literal asterisk is not printed plain, as any text",
			[]policy.Rule{crawlRule(1, everyone, false, "/a%2Ab")},
			"User-agent: *\nDisallow: /a%2Ab\nDisallow: /a%2ab\n",
			[]string{"hint other-spelling 2"},
		},
		{
			"bytes that not all readers encode alike, but for a plain = in a query",
			[]policy.Rule{crawlRule(1, everyone, false, "/~joe/", "/a[1]", "/a|b", "/s?q=~a", "/a=b")},
			"User-agent: *\nDisallow: /~joe/\nDisallow: /%7Ejoe/\nDisallow: /%7ejoe/\nDisallow: /a[1]\nDisallow: /a%5B1%5D\nDisallow: /a%5b1%5d\nDisallow: /a%7Cb\nDisallow: /a|b\nDisallow: /a%7cb\n" +
				"Disallow: /s?q=~a\nDisallow: /s?q=%7Ea\nDisallow: /s?q=%7ea\nDisallow: /a=b\nDisallow: /a%3Db\nDisallow: /a%3db\n",
			[]string{"hint other-spelling 3"},
		},
		{
			"every byte that some reader does not encode",
			[]policy.Rule{crawlRule(1, everyone, false, "/q\"<>", "/r\\^`", "/s{}")},
			"User-agent: *\nDisallow: /q%22%3C%3E\nDisallow: /q\"<>\nDisallow: /q%22%3c%3e\nDisallow: /r%5C%5E%60\nDisallow: /r\\^`\nDisallow: /r%5c%5e%60\nDisallow: /s%7B%7D\nDisallow: /s{}\nDisallow: /s%7b%7d\n",
			[]string{"hint other-spelling 2"},
		},
		{
			"a spelling that ends in a dollar sign keeps its end",
			[]policy.Rule{crawlRule(1, everyone, false, "/a%2A$", "/b%24$", "/c%2A*d", "/~e$")},
			"User-agent: *\nDisallow: /a%2A$\nDisallow: /a%2a$\nDisallow: /b%24$\nDisallow: /b$$\nDisallow: /c%2A*d\nDisallow: /c%2a*d\nDisallow: /~e$\nDisallow: /%7Ee$\nDisallow: /%7ee$\n",
			[]string{"hint other-spelling 2", "hint other-spelling 3", "hint other-spelling 4"},
		},
		{
			"no spelling disallows the whole site",
			[]policy.Rule{crawlRule(1, everyone, false, "/%2A$", "/%2A")},
			"User-agent: *\nDisallow: /%2A\nDisallow: /%2a\n",
			[]string{"hint other-spelling 3"},
		},
		{
			"an Allow that is shorter than another spelling of what it opens",
			[]policy.Rule{crawlRule(1, everyone, false, "/~a/"), crawlRule(10, alpha, true, "/~a/b")},
			"User-agent: *\nDisallow: /~a/\nDisallow: /%7Ea/\nDisallow: /%7ea/\n\nUser-agent: AlphaBot\nAllow: /~a/b\nDisallow: /~a/\nDisallow: /%7Ea/\nDisallow: /%7ea/\n",
			[]string{"hint other-spelling 11"},
		},
		{
			"a spelling that is shorter than an Allow",
			[]policy.Rule{crawlRule(1, everyone, false, "/", "/c|"), crawlRule(10, everyone, true, "/c*d")},
			"User-agent: *\nDisallow: /c%7C*d\nDisallow: /c|*d\nDisallow: /c%7c*d\nAllow: /c*d\nDisallow: /\n", nil,
		},
		{
			"an Allow has one spelling",
			[]policy.Rule{crawlRule(1, everyone, false, "/"), crawlRule(10, everyone, true, "/~joe/")},
			"User-agent: *\nAllow: /~joe/\nDisallow: /\n",
			[]string{"hint other-spelling 11"},
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			spec := &policy.Spec{Crawlers: []policy.Crawler{{Token: "AlphaBot", Operator: "Alpha", Category: "search"}}, Rules: c.rules}
			f, problems := Render(compile(t, spec), "", Options{})
			if string(f.Body) != c.want || !slices.Equal(codes(problems), c.codes) {
				t.Errorf("%q\n%s\nwant %q\n%s", codes(problems), f.Body, c.codes, c.want)
			}
		})
	}
}

// Explain shows the line that disallows a path for readers that do not decode percent-encoded URLs.
func TestExplainSecondSpelling(t *testing.T) {
	p := compile(t, &policy.Spec{Rules: []policy.Rule{crawlRule(1, "everyone", false, "/a%7Eb")}})
	f, _ := Render(p, "", Options{})
	if e := f.Explain(p, policy.Query{Path: "/a~b"}); len(e.Lines) != 1 || e.Lines[0].Text != "Disallow: /a~b" {
		t.Errorf("%+v", e)
	}
}
