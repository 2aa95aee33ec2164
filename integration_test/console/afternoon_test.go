// SPDX-License-Identifier: Apache-2.0

package console

import (
	"os"
	"strings"
	"testing"
	"time"

	"github.com/robotspolicy/caddy-robots-policy/integration_test/internal/browser"
	"github.com/robotspolicy/caddy-robots-policy/internal/testkit"
)

// reader is a person who uses a browser.
type reader struct {
	t *testing.T
	*browser.Browser
}

// sees fails the test unless the page shows the text.
func (r *reader) sees(text string) {
	r.t.Helper()
	var all string
	r.Eval("document.body.innerText", &all)
	if !strings.Contains(strings.Join(strings.Fields(all), " "), text) {
		r.t.Fatalf("%q is not on the page:\n%.4000s", text, all)
	}
}

// follows clicks the element that an expression finds, and waits for the next page.
func (r *reader) follows(element string) {
	r.t.Helper()
	var there bool
	r.Eval("(() => { window.before = true; const e = "+element+"; if (!e) return false; e.click(); return true; })()", &there)
	if !there {
		r.t.Fatalf("the page has no %s", element)
	}
	for range 200 {
		var next bool
		r.Eval("!window.before && document.readyState === 'complete'", &next)
		if next {
			return
		}
		time.Sleep(50 * time.Millisecond)
	}
	r.t.Fatalf("%s leads nowhere", element)
}

func link(text string) string {
	return `[...document.querySelectorAll("main a, nav a, button")].find((e) => e.textContent.includes("` + text + `"))`
}

// TestAfternoon plays a publisher's afternoon. The publisher sees an alert, asks for the reason, writes a draft that
// would disallow a search engine, and then publishes a better draft. Then a crawler reads the new version.
func TestAfternoon(t *testing.T) {
	testkit.Slow(t)
	b := chromium(t)
	wrongPolicy := strings.Replace(policyText, "  - name: slow down", "  - name: keep copies out\n    for: PerplexityBot\n    disallow: {crawl: [/news/, /sport/, /culture/, /opinion/]}\n    enforce: block\n\n  - name: slow down", 1)
	n := open(t, wrongPolicy, "")
	r := &reader{t, b}
	b.Screen(1280, 900, false)

	// An alert says that a search engine is being blocked.
	var title string
	b.Open(n.console, "document.title", &title)
	r.sees("PerplexityBot, a search engine, is being blocked")

	// The publisher asks why, and sees the rule and its line.
	r.follows(link("Ask why"))
	r.sees("No, and the server blocks it.")
	r.sees("keep copies out")

	// The first draft removes the rule, but adds another mistake.
	r.follows(link("What would change"))
	draft := strings.Replace(policyText, "  - name: slow down", "  - name: keep copies out\n    for: Bingbot\n    disallow: {crawl: /news/}\n    enforce: block\n\n  - name: slow down", 1)
	r.write(draft)
	r.follows(link("Check"))
	r.sees("Search engines lose")
	r.sees("blocked by line")

	// Without the mistake, the draft can be published.
	r.write(policyText)
	r.follows(link("Check"))
	r.sees("Ready to go live")
	b.Eval(`document.getElementById("note").value = "Let PerplexityBot in again"`, nil)
	r.follows(`document.querySelector("button[value=publish]")`)
	r.sees("Published")
	if text, err := os.ReadFile(n.policy); err != nil || string(text) != policyText {
		t.Fatalf("the storage has another text: %v", err)
	}

	// A crawler reads the new version.
	if status := n.visit("Mozilla/5.0 (compatible; PerplexityBot/1.0)", "www.example.com", "/robots.txt"); status != 200 {
		t.Fatalf("robots.txt: status %d", status)
	}
	settled()
	b.Open(n.console+"published", "document.title", &title)
	r.sees("Let PerplexityBot in again")
	var readers string
	b.Eval(`[...document.querySelectorAll("table tr")].map((e) => e.innerText.replace(/\s+/g, " ")).find((x) => x.startsWith("PerplexityBot Unverified"))`, &readers)
	var live string
	b.Eval(`document.querySelector(".timeline .now h3").innerText`, &live)
	if version, _, _ := strings.Cut(live, " "); version == "" || !strings.Contains(readers, version) {
		t.Errorf("in force: %q, PerplexityBot read: %q", live, readers)
	}
}

// write replaces the text in the editor.
func (r *reader) write(text string) {
	r.t.Helper()
	r.Eval("document.getElementById('text').value = `"+strings.ReplaceAll(text, "`", "\\`")+"`", nil)
}
