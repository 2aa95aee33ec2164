// SPDX-License-Identifier: Apache-2.0

package crawlers

import (
	"fmt"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// BenchmarkLoad measures the cost of the first call of Default at a program's start.
func BenchmarkLoad(b *testing.B) {
	b.ReportAllocs()
	for b.Loop() {
		if _, err := load(embedded); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkCatalog compares the complete catalog with a smaller one, without the crawlers that are only known from
// public lists of crawlers. More crawlers must not make the recognition of browsers slower. ROBOTSPOLICY_OLD_CATALOG
// names a directory with an older catalog, which is then measured as well:
//
//	git archive a3862ef crawlers/catalog | tar x -C /tmp
//	ROBOTSPOLICY_OLD_CATALOG=/tmp/crawlers go test ./crawlers -run - -bench Catalog -count 6
func BenchmarkCatalog(b *testing.B) {
	all, err := Default()
	if err != nil {
		b.Fatal(err)
	}
	reviewed := newCatalog(slices.DeleteFunc(all.All(), func(c *Crawler) bool {
		return !slices.Contains(c.Sources, "operator") && !slices.Contains(c.Sources, "operator-unread") && c.AsOf == "2026-11-22"
	}), all.Controls(), all.AsOf())
	browsers := browserStrings()
	type named struct {
		name string
		*Catalog
	}
	compared := []named{{"reviewed", reviewed}, {"all", all}}
	if dir := os.Getenv("ROBOTSPOLICY_OLD_CATALOG"); dir != "" {
		old, err := load(os.DirFS(dir))
		if err != nil {
			b.Fatal(err)
		}
		compared = append([]named{{"old", old}}, compared...)
	}
	for _, c := range compared {
		r := NewRecognizer(c.Patterns())
		b.Run(fmt.Sprintf("%s=%d", c.name, c.Len()), func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				for _, ua := range browsers {
					if _, ok := r.Recognize(ua); ok {
						b.Fatal(ua)
					}
				}
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*len(browsers)), "ns/header")
		})
	}
}

// tokensForBench returns n tokens: GPTBot, Googlebot, the other tokens of the catalog, and invented tokens with a
// similar form.
func tokensForBench(tb testing.TB, n int) []Pattern {
	tb.Helper()
	c, err := Default()
	if err != nil {
		tb.Fatal(err)
	}
	patterns := []Pattern{{"GPTBot", 0}, {"Googlebot", 1}}
	for _, p := range c.Patterns() {
		if p.Token != "GPTBot" && p.Token != "Googlebot" {
			patterns = append(patterns, Pattern{p.Token, len(patterns)})
		}
	}
	shapes := []string{"ExampleData%dBot", "ExampleVendor%d-User", "ExampleIndex%dCrawler", "Example%d-SearchBot", "ExampleLabs %d Spider"}
	for i := len(patterns); i < n; i++ {
		patterns = append(patterns, Pattern{Token: fmt.Sprintf(shapes[i%len(shapes)], i), Index: i})
	}
	return patterns[:n]
}

// BenchmarkRecognize compares the recognizer with a regular expression of all tokens, and with a loop of
// strings.Contains over all tokens.
func BenchmarkRecognize(b *testing.B) {
	uas := []struct{ name, ua string }{
		{"browser", "Mozilla/5.0 (Macintosh; Intel Mac OS X 10_15_7) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/126.0.0.0 Safari/537.36"},
		{"app", "Mozilla/5.0 (iPhone; CPU iPhone OS 17_5_1 like Mac OS X) AppleWebKit/605.1.15 (KHTML, like Gecko) Mobile/15E148 Safari/604.1 [FBAN/FBIOS;FBAV/470.0.0.40.106;FBBV/612345678;FBDV/iPhone14,5;FBMD/iPhone;FBSN/iOS;FBSV/17.5.1;FBSS/3;FBID/phone;FBLC/en_US;FBOP/5;FBRV/0]"},
		{"crawler", "Mozilla/5.0 AppleWebKit/537.36 (KHTML, like Gecko; compatible; GPTBot/1.2; +https://openai.com/gptbot)"},
	}
	for _, n := range []int{150, 1500} {
		patterns := tokensForBench(b, n)
		r := NewRecognizer(patterns)
		lower, quoted := make([]string, n), make([]string, n)
		for i, p := range patterns {
			lower[i], quoted[i] = strings.ToLower(p.Token), regexp.QuoteMeta(p.Token)
		}
		re := regexp.MustCompile(`(?i)\b(?:` + strings.Join(quoted, "|") + `)\b`)
		methods := []struct {
			name string
			find func(ua string) bool
		}{
			{"recognizer", func(ua string) bool { _, ok := r.Recognize(ua); return ok }},
			{"regexp", re.MatchString},
			{"contains", func(ua string) bool {
				ua = strings.ToLower(ua)
				for _, t := range lower {
					if strings.Contains(ua, t) {
						return true
					}
				}
				return false
			}},
		}
		for _, m := range methods {
			for _, u := range uas {
				b.Run(fmt.Sprintf("tokens=%d/%s/%s", n, m.name, u.name), func(b *testing.B) {
					if m.name == "recognizer" && m.find(u.ua) != (u.name == "crawler") {
						b.Fatal("wrong answer")
					}
					b.ReportAllocs()
					for b.Loop() {
						m.find(u.ua)
					}
				})
			}
		}
	}
}
