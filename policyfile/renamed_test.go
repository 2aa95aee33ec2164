// SPDX-License-Identifier: Apache-2.0

package policyfile

import (
	"strings"
	"testing"
)

// earlierNames is a policy as testers wrote it before the names changed.
const earlierNames = `version: 1
catalogue: 2026-11-24
crawlers:
  PartnerBot: {kind: search, intended: [refuses-search, shuts-out-search]}
rules:
  - for: PartnerBot
    identity: claimed
    disallow: {crawl: /}
    intended: refuses-search
  - for: Bingbot
    identity: claimed
    allow: {crawl: /}
publish: {control-tokens: on}
expect:
  - claimed PartnerBot may not crawl /
`

func TestEarlierNames(t *testing.T) {
	t.Run("in a new text", func(t *testing.T) {
		f, ds := Load("p.yaml", []byte(earlierNames))
		if f != nil {
			t.Fatal("it loads")
		}
		text := ds.Text()
		for _, want := range []string{
			`p.yaml:2:1: error: "catalogue" is now called "catalog"`, `p.yaml:4:16: error: "kind" is now called "category"`,
			`intended "refuses-search" is now called "blocks-search"`, `intended "shuts-out-search" is now called "disallows-search"`,
			`p.yaml:7:15: error: identity "claimed" is now called "any"`, `"claimed" at the beginning of a test is now called "unverified"`,
			`"control-tokens" is now called "controls"`,
		} {
			if !strings.Contains(text, want) {
				t.Errorf("no %q in\n%s", want, text)
			}
		}
	})
	t.Run("in a text that was served before", func(t *testing.T) {
		f, ds := LoadWith("p.yaml", []byte(earlierNames), Options{Stored: true})
		if f == nil {
			t.Fatal(ds.Text())
		}
		if c := f.Policy.CrawlerInfo(f.Policy.Crawler("PartnerBot")); c.Category != "search" || len(c.IntendedChecks) != 2 {
			t.Errorf("%+v", c)
		}
		if len(f.Spec.Expect) != 1 || f.Spec.Expect[0].Anyone {
			t.Errorf("%+v", f.Spec.Expect)
		}
	})
	t.Run("in a single test", func(t *testing.T) {
		for _, test := range []string{"claimed GPTBot may crawl /", "Claimed  GPTBot may crawl /", " CLAIMED GPTBot may crawl /"} {
			if f, ds := LoadWith("p.yaml", []byte("version: 1\nexpect: "+test+"\n"), Options{Stored: true}); f == nil || len(f.Spec.Expect) != 1 {
				t.Errorf("%q: %s", test, ds.Text())
			}
			if _, ds := Load("p.yaml", []byte("version: 1\nexpect: "+test+"\n")); !strings.Contains(ds.Text(), `is now called "unverified"`) {
				t.Errorf("%q: %s", test, ds.Text())
			}
		}
	})
	t.Run("odd texts", func(t *testing.T) {
		for _, text := range []string{"crawlers: [a]\n", "rules: {a: b}\n", "crawlers: {A: b}\nrules:\n  - x\nexpect: claimed\n", "crawlers: {A: {intended: {a: {b: claimed}}}}\n"} {
			LoadWith("p.yaml", []byte("version: 1\n"+text), Options{Stored: true})
		}
	})
}
