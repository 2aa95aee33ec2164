// SPDX-License-Identifier: Apache-2.0

package policyfile

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
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
	text := SummaryText(f.Summary(testNow), false)
	lines := strings.Split(text, "\n")
	if len(lines) != 11 {
		t.Fatalf("%d lines:\n%s", len(lines), text)
	}
	for i, want := range map[int]string{
		0: "a.example and b.example:",
		2: "search (",
		3: "*.staging.example:",
		4: "  may crawl:         nobody",
		6: "  may not index:     everyone",
		7: "any other host:",
		9: "  may not crawl:     ai-training (all ",
	} {
		if !strings.Contains(lines[i], want) {
			t.Errorf("line %d: %q, want %q\n%s", i, lines[i], want, text)
		}
	}
	if !strings.Contains(lines[2], "other (all 1)") || !strings.HasSuffix(lines[1], "unlisted clients") || !strings.Contains(lines[5], "everyone (") {
		t.Error(text)
	}
	// Every crawler is counted once on every host.
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

// The summary leaves out a path that every crawler may crawl after all, so that it cannot hide another path.
func TestSummaryOfPathsForNobody(t *testing.T) {
	f, ds := Load("summary.yaml", []byte(`version: 1
rules:
  - for: everyone
    allow: {crawl: "/x**yz"}
    disallow: {crawl: ["/x*yz", /secret/]}
`))
	if f == nil {
		t.Fatal(ds.Error())
	}
	if text := f.ClosedText(testNow, 1); strings.Contains(text, "for nobody") || !strings.Contains(text, "/secret/, for everyone") {
		t.Error(text)
	}
}

// TestSummaryOfManyHosts: the work does not grow with the hosts.
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
		t.Errorf("%d groups\n%s", len(all), SummaryText(all, false))
	}
}

// TestBriefSummary: however much a policy says, check says in at most 15 lines of it who may
// come in.
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
		text := SummaryText(f.Summary(testNow), true) + "all of them:\n" + f.ClosedText(testNow, 1)
		if n := strings.Count(text, "\n"); n > 15-2 { // limits, and what search shows
			t.Errorf("%s: %d lines\n%s", path, n, text)
		}
	}
}

// The summary includes the uses for AI that crawlers are asked to refrain from.
func TestSummaryOfPreferences(t *testing.T) {
	t.Parallel()
	for rule, want := range map[string]string{
		"for: everyone, disallow: {train-ai: /}":                                          "  may not train AI:  everyone\n",
		"for: everyone, disallow: {train-ai: /}}\n  - {for: GPTBot, allow: {train-ai: /}": "  may not train AI:  everyone except ai-training (1 of ",
		"for: GPTBot, disallow: {ai-use: /}":                                              "  not in AI answers: ai-training (1 of ",
		"for: Googlebot, hosts: a.example, disallow: {train-ai: /}":                       "a.example:\n  may crawl:         everyone (",
		"for: GPTBot, disallow: {train-ai: /a/}":                                          "",
	} {
		f, ds := Load("ai.yaml", []byte("version: 1\nrules:\n  - {"+rule+"}\n"))
		if f == nil {
			t.Fatal(ds.Error())
		}
		text := SummaryText(f.Summary(testNow), true)
		if !strings.Contains(text, want) || strings.Contains(text, "may not train AI:") != strings.Contains(rule, "train-ai: /}") || strings.Contains(text, "not in AI answers:") != strings.Contains(rule, "ai-use") {
			t.Errorf("%s:\n%s", rule, text)
		}
	}
}

// The lines about search come from the rules in headers, also for paths with their own rules.
func TestShown(t *testing.T) {
	t.Parallel()
	for rule, want := range map[string]string{
		"for: everyone, disallow: {crawl: /x/}":                                                    "all of a page",
		"for: everyone, robots-tag: 'noindex, indexifembedded'":                                    "no page (noindex)",
		"for: everyone, robots-tag: 'max-snippet:50'":                                              "pages with max-snippet:50",
		"for: everyone, robots-tag: [{paths: /x/, rules: noindex}]":                                "all of a page; no page of /x/ (noindex)",
		"for: everyone, robots-tag: [{paths: [/x/, /y/], rules: 'max-snippet:50'}]":                "all of a page; pages of /x/ with max-snippet:50; other rules for 1 more path",
		"for: everyone, hosts: a.example, robots-tag: ['unavailable_after: 2020-01-01T00:00:00Z']": "all of a page; no page of / on a.example (noindex)",
		"for: everyone, disallow: {index: /}, allow: {index: /x/}":                                 "no page (noindex); all of /x/",
		"for: Bingbot, robots-tag: [{paths: /x/, rules: noindex}]":                                 "all of a page",
	} {
		f, ds := LoadWith("shown.yaml", []byte("version: 1\nrules:\n  - {"+rule+"}\n"), Options{Now: testNow})
		if f == nil {
			t.Fatal(ds.Error())
		}
		if got := f.ShownText(testNow, 1); got != want {
			t.Errorf("%s: %q, want %q", rule, got, want)
		}
	}
}
