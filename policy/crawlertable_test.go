// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"slices"
	"testing"
)

// Policies can share a table of crawlers, even if their rules name further tokens.
func TestCrawlerTableIsShared(t *testing.T) {
	crawlers := []Crawler{{Token: "OneBot", Operator: "One", Category: "search"}, {Token: "OneBot-Image", Operator: "One", Follows: []string{"OneBot"}}, {Token: "ONEBOT", Operator: "Two"}}
	table := NewCrawlerTable(crawlers)
	compile := func(tokens ...string) *Policy {
		t.Helper()
		var audiences []Audience
		for _, token := range tokens {
			audiences = append(audiences, Audience{ForToken, token})
		}
		p := Compile(&Spec{Crawlers: table.Crawlers(), Table: table, Rules: []Rule{{For: audiences}}})
		return p
	}
	a, b, own := compile("OneBot"), compile("onebot-image"), compile("NewBot", "newbot", "OneBot")
	if a.table != b.table || a.table != own.table {
		t.Error("the crawlers are not shared")
	}
	for p, want := range map[*Policy][]string{a: {"OneBot", "OneBot-Image"}, own: {"OneBot", "OneBot-Image", "NewBot"}} {
		var got []string
		for id, c := range p.Crawlers {
			if p.Crawler(c.Token) != id || p.CrawlerInfo(id).Token != c.Token {
				t.Errorf("%s is number %d, and that is %s", c.Token, p.Crawler(c.Token), p.CrawlerInfo(id).Token)
			}
			got = append(got, c.Token)
		}
		if !slices.Equal(got, want) {
			t.Errorf("%q, want %q", got, want)
		}
		if image := p.Crawler("OneBot-Image"); p.Family(image) != p.Crawler("OneBot") {
			t.Errorf("the family of OneBot-Image is number %d", p.Family(image))
		}
	}
	for token, want := range map[string]Tier{"OneBot": TierToken, "OneBot-Image": TierFamily} {
		if tier, _ := a.NamedBy(&a.Spec().Rules[0], a.Crawler(token)); tier != want {
			t.Errorf("a rule for OneBot names %s in tier %v, want %v", token, tier, want)
		}
	}
	if a.CrawlerInfo(a.Crawler("OneBot")).Operator != "One" || a.Crawler("NewBot") != 0 {
		t.Error("a token that another policy names, or the wrong one of two")
	}
}
