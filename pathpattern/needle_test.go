// SPDX-License-Identifier: Apache-2.0

package pathpattern

import (
	"fmt"
	"math/rand/v2"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/robotspolicy/caddy-robots-policy/internal/testkit"
)

// regexpOf returns the pattern as a regular expression, which serves as an independent matcher.
func regexpOf(pattern string) *regexp.Regexp {
	body, anchored := strings.CutSuffix(pattern, "$")
	text := "^(?s:" + strings.ReplaceAll(regexp.QuoteMeta(body), `\*`, ".*") + ")"
	if anchored {
		text += "$"
	}
	return regexp.MustCompile(text)
}

// crowd returns n different patterns, and paths that consist of parts of the patterns. Nearly all patterns have
// wildcards, and many have the same literal prefix.
func crowd(r *rand.Rand, n int) (patterns []string, paths []string) {
	words := []string{"a", "ab", "aaa", "aaaa", "aaab", "baaaa", "print", "printed", "/x/", "?id=", ".pdf", ".html"}
	word := func() string {
		if r.IntN(3) == 0 {
			return fmt.Sprintf("%s%d", words[r.IntN(len(words))], r.IntN(n))
		}
		return words[r.IntN(len(words))]
	}
	have := map[string]bool{}
	for len(patterns) < n {
		text := []string{"/", "/", "/", "/a", "/aaa", "*/"}[r.IntN(6)]
		for range 1 + r.IntN(3) {
			text += []string{"*", "*", "*", ""}[r.IntN(4)] + word()
		}
		if r.IntN(3) == 0 {
			text += "$"
		}
		if text = MustParse(text).String(); !have[text] {
			have[text] = true
			patterns = append(patterns, text)
		}
	}
	for range 40 {
		path := "/"
		for range r.IntN(12) {
			if r.IntN(2) == 0 {
				parts := strings.Split(strings.TrimSuffix(patterns[r.IntN(n)], "$"), "*")
				path += parts[r.IntN(len(parts))]
			} else {
				path += word()
			}
		}
		paths = append(paths, NormalizePath(path))
	}
	return patterns, paths
}

func TestIndexOfManyWildcardsAgreesWithRegexp(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	sizes := []int{9, 20, 100, 200, 1000, 2*maxNumbers + 1000}
	rounds := testkit.Rounds(12, 60)
	if testing.Short() {
		rounds = 12
	}
	for i := range rounds {
		if i >= len(sizes) {
			sizes = append(sizes, 8+r.IntN(300))
		}
		patterns, paths := crowd(r, sizes[i])
		entries := make([]Entry[[]int], len(patterns))
		matchers := make([]*regexp.Regexp, len(patterns))
		for i, p := range patterns {
			entries[i], matchers[i] = Entry[[]int]{MustParse(p), []int{i}}, regexpOf(p)
		}
		x := NewIndex(entries, func(a, b []int) []int { return slices.Concat(a, b) })
		hits := 0
		for _, path := range paths {
			var all []int
			for i, m := range matchers {
				if m.MatchString(path) {
					all = append(all, i)
				}
			}
			hits += len(all)
			var found []int
			x.Matches(path, func(v []int) { found = append(found, v...) })
			if slices.Sort(found); !slices.Equal(found, all) {
				t.Fatalf("%d patterns: Matches(%q) = %v, want %v", len(patterns), path, found, all)
			}
		}
		if hits == 0 {
			t.Errorf("nothing of %d patterns matched", len(patterns))
		}
	}
}

// The order of the matching patterns does not depend on the places where they match the path.
func TestMatchesInTheOrderOfTheIndex(t *testing.T) {
	var entries []Entry[int]
	for i := range 100 {
		entries = append(entries, Entry[int]{MustParse(fmt.Sprintf("/*needle%02d/", i)), i})
	}
	x := NewIndex(entries, func(a, _ int) int { return a })
	order := func(path string) (found []int) {
		x.Matches(path, func(i int) { found = append(found, i) })
		return found
	}
	one, other := order("/needle17/needle42/needle99/"), order("/needle99/x/needle42/needle17/needle42/")
	if len(one) != 3 || !slices.Equal(one, other) {
		t.Errorf("%v and %v", one, other)
	}
}

func FuzzIndexOfManyWildcards(f *testing.F) {
	f.Add("/*abcd /*bcde /*abcde$ /*cd*abc /*dcba*$ /*xxxx /*yyyy /*zzzz /*aaaa /*aaaab", "/abcdebcdabcde")
	f.Add("", "/other42")
	f.Fuzz(func(t *testing.T, text, path string) {
		var entries []Entry[int]
		for _, p := range strings.Fields(text) {
			if p, err := Parse(p); err == nil {
				entries = append(entries, Entry[int]{p, len(entries)})
			}
		}
		for i := range 2 * severalWilds { // the number of patterns is too large to try each of them
			entries = append(entries, Entry[int]{MustParse(fmt.Sprintf("/*other%d", i)), len(entries)}, Entry[int]{MustParse(fmt.Sprintf("/*other%d$", i)), len(entries) + 1})
		}
		x := NewIndex(entries, func(a, b int) int { return min(a, b) })
		norm := NormalizePath(path)
		var want []string
		for _, e := range entries {
			if e.Pattern.Match(norm) && !slices.Contains(want, e.Pattern.text) { // FuzzParse tests Match
				want = append(want, e.Pattern.text)
			}
		}
		var got []string
		x.Matches(norm, func(i int) { got = append(got, entries[i].Pattern.text) })
		slices.Sort(want)
		if slices.Sort(got); !slices.Equal(got, want) {
			t.Fatalf("Matches(%q) is %q, want %q", norm, got, want)
		}
	})
}

// BenchmarkWildcards finds the matching patterns among patterns with wildcards. It uses an ordinary path, and a path
// that consists of parts of the patterns.
func BenchmarkWildcards(b *testing.B) {
	for _, n := range []int{10, 1000, 10000} {
		var entries []Entry[int]
		for i := range n {
			text := fmt.Sprintf("/*/section%d/*/print%d", i%100, i)
			switch i % 4 {
			case 1:
				text = fmt.Sprintf("/*/topic-%d/", i)
			case 2:
				text = fmt.Sprintf("/*?session=%d&", i)
			case 3:
				text = fmt.Sprintf("/*-%d.pdf$", i)
			}
			entries = append(entries, Entry[int]{MustParse(text), i})
		}
		x := NewIndex(entries, func(a, b int) int { return min(a, b) })
		for _, size := range []int{64, 2 << 10, 16 << 10} {
			ordinary, full := "/", "/"
			for i := 0; len(ordinary) < size; i++ {
				ordinary += fmt.Sprintf("archive/%d/an-article-about-something/", i)
			}
			for i := 0; len(full) < size; i++ {
				full += fmt.Sprintf("topic%d/ession=%d/section%d/print%d-", i, 4*i+2, i%100+1000, i*4)
			}
			for name, path := range map[string]string{"ordinary": ordinary[:size], "full": full[:size]} {
				b.Run(fmt.Sprintf("patterns=%d/bytes=%d/%s", n, size, name), func(b *testing.B) {
					b.ReportAllocs()
					for b.Loop() {
						x.Matches(path, func(int) {})
					}
				})
			}
		}
	}
}

func TestWildcardsDoNotAllocate(t *testing.T) {
	r := rand.New(rand.NewPCG(5, 6))
	patterns, paths := crowd(r, 1000)
	var entries []Entry[int]
	for i, p := range patterns {
		entries = append(entries, Entry[int]{MustParse(p), i})
	}
	x := NewIndex(entries, func(a, b int) int { return min(a, b) })
	sum := 0
	if n := testing.AllocsPerRun(10, func() {
		for _, p := range paths {
			x.Matches(p, func(i int) { sum += i })
		}
	}); n > 0 {
		t.Errorf("%v allocations", n)
	}
}
