// SPDX-License-Identifier: Apache-2.0

package site

import (
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/robotspolicy/caddy-robots-policy/internal/testkit"
	"github.com/robotspolicy/caddy-robots-policy/policy"
)

// costly returns policies of up to 550 KB for which decisions are expensive. Each key is a word for the reason why the
// decisions of its policy are expensive.
func costly() map[string]string {
	const head = "version: 1\npublish: {acap: off}\nrules:\n  - for: everyone\n    enforce: block\n    intended: true\n    disallow:\n      crawl:\n"
	fill := func(format string) string {
		var b strings.Builder
		for i := 0; b.Len() < 520_000; i++ {
			fmt.Fprintf(&b, format, i)
		}
		return b.String()
	}
	half := func(format string) string { return firstLines(fill(format), 260_000) }
	return map[string]string{
		"short needles":      head + fill("        - \"/*a*a*%d*b\"\n"),
		"needles":            head + fill("        - \"/*aaaa*%d\"\n"),
		"run":                head + fill("        - \"/*a*a*a*a*a*a*a*%d\"\n"),
		"anchored":           head + fill("        - \"/*%d*a$\"\n"),
		"all match":          head + fill("        - \"/*a*a*a\"\n        - \"/%d*\"\n"),
		"all end":            head + fill("        - \"/*a%d$\"\n"),
		"nested wildcards":   head + nested(300, "        - \"/%s*b\"\n"),
		"nested both":        head + nested(150, "        - \"/%s*\"\n") + "    allow:\n      crawl:\n" + nested(150, "        - \"/%s*a\"\n"),
		"allow and disallow": head + half("        - \"/*a*%d*b\"\n") + "  - for: GPTBot\n    allow:\n      crawl:\n" + half("        - \"/*a*%d*b\"\n"),
		"matching letters":   head + letters("        - \"/*%s\"\n"),
		"rules":              "version: 1\nrules:\n" + fill("  - {for: GPTBot, disallow: {crawl: \"/*a*%d*b\"}}\n"),
	}
}

func firstLines(s string, n int) string { return s[:strings.LastIndexByte(s[:n], '\n')+1] }

// nested returns lines with patterns. Each pattern begins with the previous pattern.
func nested(n int, format string) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, format, strings.Repeat("a", i))
	}
	return b.String()
}

// letters returns lines with words of different lengths. The words consist of the letters a, b and c.
func letters(format string) string {
	var b strings.Builder
	for i := range 20_000 {
		s := ""
		for n := i + 1; n > 0; n /= 3 {
			s += string("abc"[n%3])
		}
		fmt.Fprintf(&b, format, s)
	}
	return b.String()
}

// costlyPaths returns targets of 16 KB. The keys describe their content.
func costlyPaths() map[string]string {
	const size = 16_000
	full := func(s string) string { return "/" + strings.Repeat(s, size/len(s)) }
	var numbers strings.Builder
	for i := 0; numbers.Len() < size; i++ {
		fmt.Fprintf(&numbers, "a%d", i)
	}
	return map[string]string{
		"a":       full("a"),
		"ab":      full("ab"),
		"aab1":    full("a0a1a2a3a4a5a6a7a8a9b"),
		"numbers": "/" + numbers.String(),
		"abc":     full("abcaabbccabacbcab"),
		"dots":    full("a/../b/./"),
		"escaped": full("%61"),
		"upper":   full("A0A1a2B3c4d5"),
		"semi":    full("a;b/"),
	}
}

// Deciding about a path of 16 KB takes at most fifty times as long with an expensive policy as with the example policy.
// This is possible because a path that needs too much work is disallowed without comparing it with patterns.
func TestCostOfAPath(t *testing.T) {
	testkit.Slow(t)
	if testing.Short() {
		t.Skip("loads large policies")
	}
	example, err := os.ReadFile("../examples/site-policy.yaml")
	if err != nil {
		t.Fatal(err)
	}
	usual, ds := Load("p.yaml", example)
	if usual == nil {
		t.Fatal(ds)
	}
	policies := costly()
	for _, name := range slices.Sorted(maps.Keys(policies)) {
		if !testkit.Long() && !strings.HasPrefix(name, "needles") && !strings.HasPrefix(name, "matching") {
			continue
		}
		s, ds := Load("p.yaml", []byte(policies[name]))
		if s == nil {
			t.Fatalf("%s: %.300s", name, ds.Error())
		}
		pages, ds := Load("p.yaml", []byte(strings.NewReplacer("crawl:", "index:", "    enforce: block\n", "").Replace(policies[name])))
		if pages == nil {
			t.Fatalf("%s: %.300s", name, ds.Error())
		}
		most, closed := 0.0, 0
		for kind, path := range costlyPaths() {
			q := policy.Query{Crawler: s.Policy.Crawler("GPTBot"), Host: "www.example.com", Path: path}
			of := q
			of.Crawler = usual.Policy.Crawler("GPTBot")
			edge := func(s *Site, q policy.Query) func() { return func() { s.Edge(q) } }
			page := func(s *Site) func() { return func() { s.Page(q.Host, path, time.Time{}) } }
			for what, times := range map[string]float64{
				"blocking": ratio(edge(s, q), edge(usual, of)), "page": ratio(page(pages), page(usual)),
			} {
				if most = max(most, times); times > 50 {
					t.Errorf("%s, %s, %s: %.0f times as much as usual", name, kind, what, times)
				}
			}
			if s.Policy.Decide(q).Verdict == policy.Disallowed {
				if closed++; !s.Edge(q).Blocked() {
					t.Errorf("%s, %s: a disallowed path is allowed", name, kind)
				}
			}
		}
		t.Logf("%-20s at most %.0f times; %d paths are disallowed", name, most, closed)
	}
}

// ratio returns the time that a takes, divided by the time that b takes. It runs both several times, and uses the best
// times.
func ratio(a, b func()) float64 {
	least := func(f func()) time.Duration {
		var all []time.Duration
		for range 7 {
			began := time.Now()
			f()
			all = append(all, time.Since(began))
		}
		return slices.Min(all)
	}
	return float64(least(a)) / float64(least(b))
}
