// SPDX-License-Identifier: Apache-2.0

package policyfile

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/robotspolicy/caddy-robots-policy/internal/testkit"
	"github.com/robotspolicy/caddy-robots-policy/policy"
)

// grammar generates random policy files that together use every key.
type grammar struct {
	*rand.Rand
	used map[string]bool // the keys that were used
	n    int             // a counter that makes names different
}

// object returns a map made from pairs of a key and a value. The argument "always" is the number of pairs at the
// beginning that are in every map. Each of the other pairs is added at random.
func (g *grammar) object(always int, pairs ...any) map[string]any {
	m := map[string]any{}
	for i := 0; i < len(pairs); i += 2 {
		if i/2 >= always && g.IntN(3) > 0 {
			continue
		}
		key := pairs[i].(string)
		value := pairs[i+1].(func() any)()
		if value == nil {
			continue
		}
		g.used[key] = true
		m[key] = value
	}
	if len(m) == 0 {
		return g.object(1, pairs...)
	}
	return m
}

// pick returns a function that returns one of the values at random.
func (g *grammar) pick(values ...any) func() any {
	return func() any { return values[g.IntN(len(values))] }
}

func (g *grammar) some(values ...any) func() any {
	return func() any {
		if g.IntN(2) == 0 {
			return values[g.IntN(len(values))]
		}
		list := []any{}
		for _, i := range g.Perm(len(values))[:1+g.IntN(len(values))] {
			list = append(list, values[i])
		}
		return list
	}
}

// paths returns paths for allow or disallow. The two sections have different paths, because a rule must not allow and
// disallow the same path.
func (g *grammar) paths(section string) func() any {
	return g.some("/"+section+"/", "/"+section+"/*.jpg$", "*."+section, "/"+section+"?q=1&r=%23x", "/"+section+"/ä%2f:y,'\"z", section+"-set")
}

// qualifiers returns a map with at least one qualifier of a usage. more has keys that are always added, each followed
// by its value.
func (g *grammar) qualifiers(u policy.Usage, more ...any) map[string]any {
	always := len(more)/2 + 1
	values := map[string]func() any{
		"time-limit": g.pick("3-days", "until-2099-01-31", "until-recrawled"), "max-length": g.pick("250-chars", "20-words"),
		"must-use-resource": g.pick("/abstract.txt"), "must-include-resource": g.pick("the-acap:credit:/credit.html"),
		"prohibited-modification": g.some("format", "style", "translation"),
		"prohibited-context":      g.pick("within-user-frame"), "required-context": g.pick("within-original-frame"),
	}
	for _, name := range policy.QualifiersOf(u) {
		more = append(more, string(name), values[string(name)])
	}
	return g.object(always, more...)
}

func (g *grammar) statements(section string) func() any {
	return func() any {
		var pairs []any
		for _, u := range policy.Usages() {
			if u == policy.Other && section == "allow" {
				continue
			}
			pairs = append(pairs, u.String(), func() any {
				paths := g.paths(section)
				switch k := g.IntN(3); {
				case k == 0 && section == "allow" && u != policy.TrainAI && u != policy.AIUse && u != policy.Search:
					return []any{g.qualifiers(u, "paths", paths)}
				case k == 1:
					g.used["paths"] = true
					return map[string]any{"paths": paths()}
				}
				return paths()
			})
		}
		if section == "allow" {
			pairs = append(pairs, "short", g.paths(section), "both", g.paths(section))
		}
		return g.object(1, pairs...)
	}
}

func (g *grammar) rule() any {
	g.n++
	if g.IntN(10) == 0 {
		return g.object(2, "for", g.pick(fmt.Sprintf("PaperBot%c", 'a'+g.n%26)), "permissions-reference", g.pick("/paper.txt", "https://www.example.com/p.txt"))
	}
	if g.IntN(10) == 0 {
		return g.object(2, "for", g.pick("everyone"), "allow", func() any {
			return map[string]any{"index": g.object(1, "paths", g.paths("allow"), "over-site", g.pick(true), "time-limit", g.pick("3-days"))}
		}, "intended", g.pick(true))
	}
	if g.IntN(10) == 0 {
		return g.object(2, "for", g.some("everyone", "HouseBot"), "requests", func() any {
			return g.object(1, "take-down", g.some("/bad.html", "/b%C3%A4d/"), "re-crawl", g.some("/new.html", "/neu/"))
		})
	}
	name := g.pick("plain", "with: colon # and \"quotes\"", "it's", "ünï", "- x", "0")
	return g.object(2,
		"for", g.some("everyone", "HouseBot", "category:search", "category:ai", "operator:The House", "purpose:news"),
		[2]string{"disallow", "allow"}[g.IntN(2)], func() any { return nil },
		"disallow", g.statements("disallow"), "allow", g.statements("allow"),
		"name", name, "hosts", g.some("www.example.com", "*.example.org", "bücher.example", "[2001:db8::1]"),
		"identity", g.pick("any", "not-impostor", "verified"), "usage-purposes", g.some("news", "http://news.search.*/*"),
		"app-directives", func() any {
			return []any{"a;b=1", g.object(2, "paths", g.paths("allow"), "directives", g.some("c;d=?1", `e;f="x y"`))}
		},
		"robots-tag", func() any {
			return []any{"notranslate", g.object(2, "paths", g.paths("allow"), "rules", g.some("max-snippet:20", "noimageindex"))}
		},
		"crawl-delay", g.pick(0.125, 2, 86400, "none"),
		"limit", func() any {
			if g.IntN(2) == 0 {
				return g.pick("none", "60/m", "1/d")()
			}
			return g.object(2, "rate", g.pick("600/h", "5/s"), "burst", g.pick(1, 20, 600))
		},
		"enforce", g.pick("off", "log", "block"),
		"intended", g.pick(true, []any{"blocks-search", "site-not-indexed"}, "includes-www"),
	)
}

func (g *grammar) row() any {
	return g.object(1,
		"operator", g.pick("The House", "A: B #c"), "category", g.pick("feed", "monitoring"), "follows", g.some("Applebot", "DuckDuckBot"),
		"ignores-star", g.pick(true, false), "reads-meta", g.pick(true, false), "intended", g.some("blocks-search", "disallows-search"), "purposes", g.some("news", "weather"),
		"address-lists", g.some("https://list.example/a.json", "https://list.example/b.json?x=1"),
		"reverse-dns", g.some(".crawl.example", "proxy-*.crawl.example"), "signature-directory", g.pick("https://sign.example", "https://sign.example/keys.json"))
}

func (g *grammar) file() map[string]any {
	rules := func() any {
		list := []any{}
		for range 1 + g.IntN(4) {
			list = append(list, g.rule())
		}
		return list
	}
	return g.object(5,
		"version", g.pick(1), "rules", rules,
		"resources", func() any {
			return map[string]any{"allow-set": []any{"/allowed/", "*.allowed$"}, "disallow-set": g.some("/disallowed/", "/d/*x")()}
		},
		"usages", func() any {
			return map[string]any{
				"short": g.qualifiers(policy.PresentSnippet, "usage", g.pick("present-snippet")), "both": []any{"preserve", "short"},
			}
		},
		"crawlers", func() any {
			rows := map[string]any{"HouseBot": g.row(), "Googlebot": g.row(), "GPTBot": map[string]any{}, "DuckDuckBot": g.object(0, "results", g.pick("ai"))}
			fetcher := g.row().(map[string]any)
			fetcher["user-agent"] = "HouseFetcher"
			rows["FetchBot"] = fetcher
			rows["ControlBot"] = map[string]any{"robots-only": true}
			if g.IntN(2) == 0 {
				rows["Bingbot"] = map[string]any{"address-lists": []any{}, "reverse-dns": []any{}, "follows": []any{}}
			}
			g.used["user-agent"], g.used["robots-only"] = true, true
			return rows
		},
		"expect", g.some("everyone may crawl /robots.txt", "verified Googlebot may crawl https://www.example.com/robots.txt", "unverified category:search may crawl /robots.txt"),
		"catalog", g.pick("2026-11-24"),
		"sitemaps", func() any {
			all := g.some("/sitemap.xml", "https://www.example.com/s.xml")
			if g.IntN(2) == 0 {
				return all()
			}
			return g.object(1, "www.example.com", all, "*.example.com", all, "*", all)
		},
		"enforcement", func() any {
			if g.IntN(3) == 0 {
				return g.object(1, "action", g.pick("close"), "mode", g.pick("log"), "impostors", g.pick("log", "block"))
			}
			return g.object(1, "mode", g.pick("off", "log", "block"), "status", g.pick(402, 429), "message", g.pick("Ask: us # now"),
				"retry-after", g.pick(1, 3600), "impostors", g.pick("off", "log", "block"))
		},
		"publish", func() any {
			license := [2]string{"license", "rsl"}[g.IntN(2)] // a file can have only one of the two
			return g.object(1, "preamble", func() any {
				text := g.pick("All rights reserved.", "§ 44b UrhG: reserved\n\n  \"indented\" # and: so on\n", "  first\nsecond")
				if g.IntN(2) == 0 {
					return text()
				}
				return g.object(1, "www.example.com", text, "*.example.com", text, "*", text)
			}, "lines", g.some("Clean-param: ref&sid /a/", "Host: www.example.com", "Clean-param: x: y 'z'"), "acap", g.pick("full", "off", "auto"), "everyone", g.pick("plain", "named"), "groups", g.pick("short", "all"), "user-agent-purpose", g.pick("on", "off"), "content-usage", g.pick("on", "off"), "noai", g.pick("on", "off"),
				"content-signal", g.pick("on", "off", "immediate", "reference", "full"), "action-requests", g.pick("on", "off"), license, g.pick(licenses[license]...),
				"controls", func() any {
					if word := g.pick("auto", "off", "")(); word != "" {
						return word
					}
					return g.object(1, "Google-Extended", g.pick("off"), "Bingbot", g.pick("noarchive", "off"), "Amazonbot", g.pick("noarchive", "off"))
				}, "tdmrep", g.pick("on", "off"), "usage-tokens", func() any {
					return g.object(1, "train-ai", g.pick("No-Training"), "ai-use", g.pick("No_Answers"), "search", g.pick("No-Search"))
				})
		},
		"rights", g.rights)
}

var licenses = map[string][]any{
	"license": {"off", "https://www.example.com/l.xml"},
	"rsl":     {"off", "on", "/licenses/site.xml"},
}

func (g *grammar) rights() any {
	web := g.pick("https://www.example.com/a?b=c&d=%23", "http://example.com/")
	return g.object(1, "copyright", g.pick("Example: Ltd # \"quoted\"", "it's"), "contact", g.pick("mailto:a@example.com", "https://example.com/contact"),
		"terms", web, "tdm-policy", web, "offers", func() any {
			list := []any{}
			for range 1 + g.IntN(3) {
				offer := g.object(3, "usage", g.pick("train-ai", "ai-use", "search"), "payment", g.pick("purchase", "subscription", "training", "crawl", "use", "contribution"),
					"url", web, "users", g.some("commercial", "education"))
				if g.IntN(2) == 0 {
					g.used["amount"], g.used["currency"] = true, true
					offer["amount"], offer["currency"] = "0.015", "EUR"
				}
				list = append(list, offer)
			}
			return list
		})
}

// Printing a file and parsing it again does not change the meaning of any key. This includes the data for recognizing
// and verifying the file's own crawlers.
func TestPrintKeepsTheWholeGrammar(t *testing.T) {
	const seed = 11
	t.Logf("seed %d", seed)
	g := &grammar{Rand: rand.New(rand.NewPCG(seed, 0)), used: map[string]bool{}}
	files, loaded := testkit.Rounds(60, 100), 0
	if testkit.Long() {
		files = 500
	}
	for range files {
		text, err := json.Marshal(g.file())
		if err != nil {
			t.Fatal(err)
		}
		f, ds := LoadWith("random.yaml", text, Options{Now: testNow})
		if f == nil {
			if onlyErrors(ds, "contradiction") {
				continue
			}
			t.Fatalf("%s\n%s", ds.Text(), text)
		}
		loaded++
		checkPrinted(t, f)
	}
	if loaded < files*4/5 {
		t.Errorf("only %d files loaded", loaded)
	}
	for key := range schemaKeys(t) {
		if !g.used[key] {
			t.Errorf("no file has the key %s", key)
		}
	}
}

// schemaKeys returns all keys in the schema.
func schemaKeys(t *testing.T) map[string]bool {
	t.Helper()
	var schema any
	if err := json.Unmarshal(Schema(), &schema); err != nil {
		t.Fatal(err)
	}
	keys := map[string]bool{}
	var walk func(v any)
	walk = func(v any) {
		switch v := v.(type) {
		case map[string]any:
			if properties, ok := v["properties"].(map[string]any); ok {
				for key := range properties {
					keys[key] = true
				}
			}
			for _, inner := range v {
				walk(inner)
			}
		case []any:
			for _, inner := range v {
				walk(inner)
			}
		}
	}
	walk(schema)
	if len(keys) < 50 || !keys["signature-directory"] {
		t.Fatalf("%d keys", len(keys))
	}
	return keys
}

// Print includes the verification data of the file's own crawlers.
func TestPrintVerification(t *testing.T) {
	f, ds := Load("policy.yaml", []byte(`version: 1
crawlers:
  HouseBot: {category: feed, address-lists: ["https://l.example/a.json", "https://l.example/b.json"], reverse-dns: .crawl.example, signature-directory: https://s.example}
  Bingbot: {address-lists: [], reverse-dns: []}
rules:
  - for: HouseBot
    disallow:
      crawl: /x/
`))
	if f == nil {
		t.Fatal(ds)
	}
	for _, want := range []string{
		"address-lists:\n      - \"https://l.example/a.json\"", "reverse-dns: .crawl.example", "signature-directory: https://s.example",
		"Bingbot:\n    address-lists: []\n    reverse-dns: []\n",
	} {
		if text := string(f.Print()); !strings.Contains(strings.ReplaceAll(text, `- https://l.example/a.json`, `- "https://l.example/a.json"`), want) {
			t.Errorf("%s is not in:\n%s", want, text)
		}
	}
}
