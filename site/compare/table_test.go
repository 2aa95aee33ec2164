// SPDX-License-Identifier: Apache-2.0

package compare_test

import (
	"strings"
	"testing"

	"github.com/robotspolicy/caddy-robots-policy/effect"
	"github.com/robotspolicy/caddy-robots-policy/site/compare"
)

// The comparison reports a loss of search engines only if some channel takes something away from them. It does not
// matter which part of the policy causes this.
func TestLossesByTheTable(t *testing.T) {
	t.Parallel()
	const (
		everyone = "rules:\n  - for: everyone\n"
		scraper  = "crawlers:\n  Scraper: {user-agent: \"Googlebot/2.1\"}\n"
		scrapes  = "rules:\n  - for: Scraper\n    disallow: {crawl: /news/}\n    enforce: block\n"
		silent   = "publish: {content-usage: off, controls: off}\n"
		gone     = everyone + "    robots-tag: ['unavailable_after: "
	)
	for _, c := range []struct {
		name, old, new string
		want           effect.Loss
		who            string
	}{
		{"an index after search", everyone + "    disallow: {search: /}\n", everyone + "    disallow: {index: /}\n", effect.LossIndex, "Googlebot"},
		{"search after an index", everyone + "    disallow: {index: /}\n", everyone + "    disallow: {index: /, search: /}\n", effect.LossSearch, "Bingbot"},
		{"search that nothing publishes", everyone + "    disallow: {index: /}\n" + silent, everyone + "    disallow: {index: /, search: /}\n" + silent, 0, ""},
		{"a user-agent that catches an engine", everyone + "    allow: {crawl: /}\n", scraper + scrapes, effect.LossBlocked, "Googlebot"},
		{"a user-agent that is changed", scrapes, scraper + scrapes, effect.LossBlocked, "Googlebot"},
		{"a user-agent of its own", scrapes, "crawlers:\n  Scraper: {user-agent: ScrapeIt}\n" + scrapes, 0, ""},
		{"the group that another crawler follows", everyone + "    allow: {crawl: /}\n", "rules:\n  - for: Googlebot\n    disallow: {crawl: /news/}\n", effect.LossCrawl, "Applebot"},
		{"a shorter snippet", everyone + "    robots-tag: ['max-snippet:300']\n", everyone + "    robots-tag: ['max-snippet:50']\n", effect.LossSnippet, "Googlebot"},
		{"a longer snippet", everyone + "    robots-tag: ['max-snippet:50']\n", everyone + "    robots-tag: ['max-snippet:300']\n", 0, ""},
		{"an earlier date", gone + "2999-01-31T00:00:00Z']\n", gone + "2998-01-31T00:00:00Z']\n", effect.LossUnavailable, "Googlebot"},
		{"a later date", gone + "2998-01-31T00:00:00Z']\n", gone + "2999-01-31T00:00:00Z']\n", 0, ""},
		{"a crawler that nothing tells", "rules:\n  - for: everyone-else\n    disallow: {crawl: /a/}\n  - for: YandexMobileBot\n    allow: {crawl: /}\n", everyone + "    disallow: {crawl: /a/}\n", 0, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			d := compare.Sites(load(t, c.old), load(t, c.new), compare.Options{})
			var found, said effect.Loss
			who := false
			for _, f := range d.Losses.Found {
				found |= f.Loss
				who = who || f.Crawler == c.who
			}
			for _, change := range d.Changes {
				said |= change.Lost & effect.Counted
			}
			if found != c.want || said != c.want || who != (c.want != 0) {
				t.Errorf("lost %q, said to be lost %q, want %q of %s: %s", found, said, c.want, c.who, strings.Join(d.Words(), "\n"))
			}
		})
	}
}

// If a policy publishes and blocks the same as before, there is no change, even if its rules differ.
func TestRulesThatNobodyReadsChangeNothing(t *testing.T) {
	t.Parallel()
	old := load(t, "publish: {acap: off, content-usage: off, controls: off}\nrules:\n  - for: everyone-else\n    disallow: {crawl: /a/}\n  - for: [YandexMobileBot, AdsBot-Google]\n    allow: {crawl: /}\n")
	now := load(t, "rules:\n  - for: everyone\n    disallow: {crawl: /a/}\n")
	for _, s := range []string{"loss", "gain"} {
		d := compare.Sites(old, now, compare.Options{})
		if s == "gain" {
			d = compare.Sites(now, old, compare.Options{})
		}
		for _, c := range d.Changes {
			t.Errorf("%s: %s", s, c.String())
		}
	}
}
