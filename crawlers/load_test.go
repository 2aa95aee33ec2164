// SPDX-License-Identifier: Apache-2.0

package crawlers

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/robotspolicy/caddy-robots-policy/internal/leaf/ascii"
)

const goodFile = `as-of: 2026-11-21
verification:
  example:
    address-lists: [https://example.com/list.json]
    reverse-dns: [.crawl.example.com, "proxy-*.example.com"]
    web-bot-auth: https://example.com
crawlers:
  ExampleBot:
    operator: Example
    category: search
    further: [seo]
    user-agents: [ExampleBot, Example Fetcher/2.0]
    follows: Googlebot
    ignores-star: true
    docs: https://example.com/bot
    honors: yes
    purposes: [search]
    verify: example
    examples: ["ExampleBot/1.0"]
    look-alikes: ["ExampleBots/1.0"]
    note: An example.
    as-of: 2025-01-02
    source: [operator]
  Example-Extended:
    {operator: Example, category: ai-training, robots-only: true, honors: no, source: operator}
  Googlebot:
    {operator: Google, category: search, honors: unknown, examples: Googlebot/2.1, source: operator}
`

func parseFile(name string, data []byte) ([]*Crawler, error) {
	p := newFileParser(name)
	rows := p.parse(data)
	return rows, errors.Join(p.errs...)
}

func TestParseFile(t *testing.T) {
	list, err := parseFile("good.yaml", []byte(goodFile))
	if err != nil {
		t.Fatal(err)
	}
	if errs := checkAll(list, nil); len(errs) > 0 {
		t.Fatal(errs)
	}
	c := list[0]
	v := c.Verification
	if c.Token != "ExampleBot" || c.Operator != "Example" || c.Category != CategorySearch || !slices.Equal(c.Further, []Category{CategorySEO}) ||
		!slices.Equal(c.UserAgents, []string{"ExampleBot", "Example Fetcher/2.0"}) || !slices.Equal(c.Follows, []string{"Googlebot"}) ||
		!c.IgnoresStar || c.RobotsOnly || c.Docs != "https://example.com/bot" || c.Honors != HonorsYes ||
		!slices.Equal(c.Purposes, []string{"search"}) ||
		len(c.Examples) != 1 || len(c.LookAlikes) != 1 || c.Note != "An example." || c.AsOf != "2025-01-02" ||
		!slices.Equal(c.Sources, []string{"operator"}) || c.FromPolicy ||
		!slices.Equal(v.AddressLists, []string{"https://example.com/list.json"}) ||
		!slices.Equal(v.ReverseDNS, []string{".crawl.example.com", "proxy-*.example.com"}) || v.WebBotAuth != "https://example.com" || v.IsEmpty() {
		t.Errorf("%+v", c)
	}
	if list[1].AsOf != "2026-11-21" || !list[1].RobotsOnly || !list[1].Verification.IsEmpty() {
		t.Errorf("%+v", list[1])
	}
}

// replaceIn returns goodFile with the only occurrence of a text replaced.
func replaceIn(t *testing.T, old, repl string) string {
	t.Helper()
	if strings.Count(goodFile, old) != 1 {
		t.Fatalf("%q is not in the file exactly once", old)
	}
	return strings.Replace(goodFile, old, repl, 1)
}

func TestParseFileErrors(t *testing.T) {
	tests := []struct{ name, old, repl, want string }{
		{"unknown key", "    note: An example.", "    notes: An example.", `f.yaml:21: unknown key "notes"`},
		{"unknown key of the file", "as-of: 2026-11-21", "asof: 2026-11-21", `f.yaml:1: unknown key "asof"`},
		{"unknown key of a verification", "    web-bot-auth:", "    signatures:", `f.yaml:6: unknown key "signatures"`},
		{"repeated key", "    note: An example.", "    category: seo", `f.yaml:21: the key "category" occurs twice; remove one`},
		{"repeated crawler", "  Googlebot:\n", "  ExampleBot:\n", `the key "ExampleBot" occurs twice; remove one`},
		{"unknown category", "    category: search\n", "    category: serach\n", `f.yaml:8: ExampleBot: there is no category "serach"`},
		{"unknown further category", "[seo]", "[ai-inputs]", `there is no category "ai-inputs"`},
		{"primary category repeated", "[seo]", "[search]", `category "search" is listed twice`},
		{"honors", "honors: yes", "honors: maybe", `honors is "maybe"`},
		{"no operator", "    operator: Example\n", "", "operator is missing"},
		{"no source", "    source: [operator]\n", "", "source is missing"},
		{"no examples", "    examples: [\"ExampleBot/1.0\"]\n", "", "examples are missing"},
		{"date", "2025-01-02", "2025-13-02", `as-of is "2025-13-02"`},
		{"docs", "docs: https://example.com/bot", "docs: example.com", `invalid docs "example.com": must be a web address`},
		{"truth", "ignores-star: true", "ignores-star: yes", "f.yaml:14: expected true or false"},
		{"null", "    note: An example.", "    note:", "f.yaml:21: expected a text"},
		{"mapping for text", "    note: An example.", "    note: {a: b}", "f.yaml:21: expected a text"},
		{"row is no mapping", "  Googlebot:\n    {operator: Google, category: search, honors: unknown, examples: Googlebot/2.1, source: operator}", "  Googlebot: x", "expected a mapping"},
		{"verification name", "verify: example", "verify: exampel", `f.yaml:18: verification has no entry "exampel"`},
		{"reverse DNS without dot", ".crawl.example.com", "crawl.example.com", "must begin with a dot"},
		{"reverse DNS of a whole domain", ".crawl.example.com", ".com", "must be below a registered domain"},
		{"reverse DNS star", "proxy-*.example.com", "proxy-*", "must be below a registered domain"},
		{"reverse DNS two stars", "proxy-*.example.com", "*-*.example.com", "more than one *"},
		{"reverse DNS letters", ".crawl.example.com", ".Crawl.example.com", "lower-case"},
		{"list", "https://example.com/list.json", "ftp://example.com/list.json", "must begin with https://"},
		{"purpose", "purposes: [search]", "purposes: [1search]", `purposes contains "1search"`},
		{"pattern", "Example Fetcher/2.0", "(Example", `user-agent "(Example" begins with "("`},
		{"follows itself", "follows: Googlebot", "follows: examplebot", "follows must not name the crawler itself"},
		{"robots-only with examples", "robots-only: true,", "robots-only: true, examples: x,", "cannot have examples"},
		{"robots-only with user-agents", "robots-only: true,", "robots-only: true, user-agents: x,", "cannot have user-agents"},
		{"syntax", "[seo]", "[ai-input", "f.yaml: yaml:"},
		{"second document", "crawlers:\n", "---\ncrawlers:\n", "more than one YAML document"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			_, err := parseFile("f.yaml", []byte(replaceIn(t, tt.old, tt.repl)))
			if err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("got %v, want an error that contains %q", err, tt.want)
			}
		})
	}
	for _, text := range []string{"", "# nothing\n", "- a\n", "x", "as-of: &a {b: c}\nverification: *a\n", "<<: {as-of: x}\n", "\xff\xfe", strings.Repeat(" ", MaxFile+1)} {
		if _, err := parseFile("f.yaml", []byte(text)); err == nil {
			t.Errorf("%.20q: no error", text)
		}
	}
}

func TestLoadChecksTheWhole(t *testing.T) {
	row := func(token, more string) string {
		return "as-of: 2026-11-21\ncrawlers:\n  " + token + ": {operator: X, category: seo, honors: yes, source: x, examples: x" + more + "}\n"
	}
	control := func(fields string) string {
		return "controls:\n  X: {operator: X, takes: [train-ai], docs: https://example.com/bot, " + fields + "}\n"
	}
	tests := []struct{ name, one, two, want string }{
		{"fine", row("A", ""), row("B", ", follows: a"), ""},
		{"same token", row("Bot", ""), row("bOT", ""), "Bot and bOT are the same token"},
		{"follows nobody", row("A", ""), row("B", ", follows: C"), "B: the key \"follows\" names C, which is not in the catalog"},
		{"control token is a crawler", row("A", ""), row("B", "") + control("crawlers: [B], kind: token, value: A"), "A must be a token that has robots-only in the catalog"},
		{"control of an unknown crawler", row("A", ""), row("B", "") + control("crawlers: [C], kind: rule, value: noarchive"), "the crawler C, named in a control of X, is not in the catalog"},
		{"control of an odd kind", row("A", ""), row("B", "") + control("crawlers: [A], kind: wish, value: x"), `kind is "wish"`},
		{"one string for two", row("A", ", user-agents: [Same]"), row("B", ", user-agents: [same]"), `A and B are both recognized by "same"`},
	}
	for _, tt := range tests {
		_, err := load(fstest.MapFS{
			"catalog/1.yaml": {Data: []byte(tt.one)},
			"catalog/2.yaml": {Data: []byte(tt.two)},
			"catalog/x.txt":  {Data: []byte("not read")},
		})
		if tt.want == "" && err != nil || tt.want != "" && (err == nil || !strings.Contains(err.Error(), tt.want)) {
			t.Errorf("%s: got %v, want %q", tt.name, err, tt.want)
		}
	}
}

// FuzzParseFile checks that the crawlers of each accepted file pass checkCrawler, that their tokens are distinct, and
// that the tokens can be recognized.
func FuzzParseFile(f *testing.F) {
	f.Add([]byte(goodFile))
	f.Add([]byte("as-of: 2026-11-21\ncrawlers:\n  A: {operator: X, category: seo, honors: yes, source: x, examples: A}\n"))
	f.Add([]byte("crawlers: &a\n  <<: *a\n"))
	f.Add([]byte("verification: {a: {reverse-dns: [.a.b]}}\ncrawlers: {}\n"))
	f.Fuzz(func(t *testing.T, data []byte) {
		list, err := parseFile("f.yaml", data)
		if err != nil {
			if !strings.HasPrefix(err.Error(), "f.yaml:") {
				t.Errorf("the error does not name the file: %v", err)
			}
			return
		}
		seen := map[string]bool{}
		for _, c := range list {
			if errs := checkCrawler(c); len(errs) > 0 {
				t.Errorf("the file was accepted in spite of %v", errs)
			}
			if seen[c.Token] {
				t.Errorf("%q twice", c.Token)
			}
			seen[c.Token] = true
			r := NewRecognizer(patternsOf(c.Patterns()...))
			for i, p := range c.Patterns() {
				if got, ok := r.Recognize(p); !ok || ascii.Lower(c.Patterns()[got]) != ascii.Lower(p) && len(c.Patterns()[got]) < len(p) {
					t.Errorf("%q (%d) is not recognized in a header that equals it: %d %v", p, i, got, ok)
				}
			}
		}
	})
}

// A purpose may contain digits, as in the examples of draft-illyes-rep-purpose-00 section 2.1.
func TestPurposesMayHaveDigits(t *testing.T) {
	c := Crawler{Token: "FooBot", Purposes: []string{"EXAMPLE-PURPOSE-1"}}
	checkFacts(&c, func(field string, err error) { t.Errorf("%s %v", field, err) })
}

// TestResultsOfSearchEngines checks the key "results" of crawlers in a catalog file. keys are a crawler's keys. ai
// means that category:ai includes the crawler, and want is a part of the expected error.
func TestResultsOfSearchEngines(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		keys string
		ai   bool
		want string
	}{
		{"category: search", false, ""},
		{"category: search, further: [seo]", false, ""},
		{"category: search, further: [ai-input]", false, "expected web or ai"},
		{"category: search, further: [ai-input], results: web, docs: https://a.example/bot", false, ""},
		{"category: search, further: [ai-input], results: ai, docs: https://a.example/bot", true, ""},
		{"category: search, results: ai", true, "docs is missing"},
		{"category: search, results: maybe", false, "expected web or ai"},
		{"category: seo, results: web", false, "only for crawlers of category search"},
		{"category: seo, further: [ai-agent]", true, ""},
		{"category: ai-assistant", true, ""},
		{"category: preview, further: [search]", false, ""},
		{"category: none, further: [ai-training]", true, ""},
		{"category: none", false, ""},
	} {
		rows, err := parseFile("f.yaml", []byte("version: 1\nas-of: 2026-01-01\ncrawlers:\n  ABot: {operator: A, honors: yes, examples: ABot/1.0, source: field, "+tt.keys+"}\n"))
		if got := fmt.Sprint(err); tt.want == "" && err != nil || !strings.Contains(got, tt.want) {
			t.Errorf("%s: %v, want %q", tt.keys, err, tt.want)
		}
		if len(rows) != 1 || rows[0].IsAI() != tt.ai {
			t.Errorf("%s: AI is not %v", tt.keys, tt.ai)
		}
	}
}
