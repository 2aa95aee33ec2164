// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"fmt"
	"runtime"
	"slices"
	"testing"
	"time"
)

// Policies with the same crawlers share them, whatever tokens their rules add, and do
// not keep them alive.
func TestCrawlerTableIsShared(t *testing.T) {
	crawlers := []Crawler{{Token: "OneBot", Operator: "One", Kind: "search"}, {Token: "OneBot-Image", Operator: "One", Follows: []string{"OneBot"}}, {Token: "ONEBOT", Operator: "Two"}}
	compile := func(tokens ...string) *Policy {
		t.Helper()
		var audiences []Audience
		for _, token := range tokens {
			audiences = append(audiences, Audience{ForToken, token})
		}
		p, err := Compile(&Spec{Crawlers: crawlers, Rules: []Rule{{For: audiences}}})
		if err != nil {
			t.Fatal(err)
		}
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
	if a.CrawlerInfo(a.Crawler("OneBot")).Operator != "One" || a.Crawler("NewBot") != 0 {
		t.Error("a token that another policy names, or the wrong one of two")
	}
	runtime.KeepAlive(own)
}

func TestCrawlerTablesAreForgotten(t *testing.T) {
	held := func() int {
		crawlerTables.mu.Lock()
		defer crawlerTables.mu.Unlock()
		return len(crawlerTables.of)
	}
	before := held()
	for i := range 100 {
		if _, err := Compile(&Spec{Crawlers: []Crawler{{Token: fmt.Sprint("Bot", i)}}}); err != nil {
			t.Fatal(err)
		}
	}
	for range 100 {
		runtime.GC()
		if held() <= before {
			return
		}
		time.Sleep(10 * time.Millisecond) // cleanups run on their own
	}
	t.Errorf("%d crawlerTables are held, %d before", held(), before)
}
