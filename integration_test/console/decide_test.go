// SPDX-License-Identifier: Apache-2.0

package console

import (
	"os"
	"strings"
	"testing"
	"time"

	"github.com/robotspolicy/caddy-robots-policy/internal/testkit"
)

// TestRefuseACrawler uses the console in a browser without JavaScript. Four clicks, beginning on the overview, must be
// enough to block a crawler. The test checks that the server then blocks a request of the crawler, and that robots.txt
// has changed. It then undoes the change.
func TestRefuseACrawler(t *testing.T) {
	testkit.Slow(t)
	b := chromium(t)
	n := open(t, policyText, "")
	r := &reader{t, b}
	b.Screen(1280, 900, false)
	const agent = "Mozilla/5.0 (compatible; SemrushBot/7~bl; +http://www.semrush.com/bot.html)"
	if status := n.visit(agent, "www.example.com", "/news/"); status != 200 {
		t.Fatalf("before: status %d", status)
	}

	var title string
	for recorded, i := false, 0; !recorded && i < 50; i++ { // the database stores requests about once a second
		b.Open(n.console, "document.title", &title)
		r.Eval("!!"+link("SemrushBot"), &recorded)
	}
	r.follows(link("SemrushBot"))
	r.sees("Draft a change:")
	r.follows(link("Block it"))
	r.sees("may no longer crawl the whole site")
	save(t, b, "decide-desktop")
	r.follows(`document.querySelector("button[value=publish]")`)
	r.sees("has been in force since")
	r.sees("Undo: back to v1")
	save(t, b, "published-desktop")

	text, err := os.ReadFile(n.policy)
	want := policyText[:strings.Index(policyText, "\nenforcement")] + "\n  - for: SemrushBot\n    disallow:\n      crawl: /\n    enforce: block\n" + policyText[strings.Index(policyText, "\nenforcement"):]
	if err != nil || string(text) != want {
		t.Fatalf("the storage has\n%s\nnot\n%s (%v)", text, want, err)
	}
	n.waits(agent, 403)

	r.follows(link("Undo: back to v1"))
	r.sees("may now crawl the whole site")
	save(t, b, "undo-desktop")
	r.follows(`document.querySelector("button[value=publish]")`)
	n.waits(agent, 200)
	if text, err := os.ReadFile(n.policy); err != nil || string(text) != policyText {
		t.Fatalf("the storage has another text: %v", err)
	}

	// On a phone: a decision that a safety check stops, and a decision in a cell of the page Who may.
	b.Screen(390, 844, false)
	b.Open(n.console+"change?who=Googlebot&choose=block", "document.title", &title)
	r.sees("Not added to the draft:")
	r.sees("drop out of search results")
	save(t, b, "decide-phone")
	b.Open(n.console+"who-may?crawler=PerplexityBot&section=www.example.com%2Fpremium%2F", "document.title", &title)
	r.sees("All crawlers in category:search:")
	r.follows(`document.querySelector("#cell a[href*='choose=allow']")`)
	r.sees("PerplexityBot may now crawl /premium/")
}

// waits sends requests of a crawler for /news/ until the answer has a certain status.
func (n *newsroom) waits(agent string, status int) {
	n.t.Helper()
	got := 0
	for range 100 {
		if got = n.visit(agent, "www.example.com", "/news/"); got == status {
			return
		}
		time.Sleep(100 * time.Millisecond)
	}
	n.t.Fatalf("status %d, not %d", got, status)
}
