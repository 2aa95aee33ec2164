// SPDX-License-Identifier: Apache-2.0

package pathpattern

import (
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/robotspolicy/caddy-robots-policy/internal/testkit"
)

// words returns every path that consists of a slash and at most n bytes of alphabet.
func words(alphabet string, n int) []string {
	all := []string{"/"}
	for from := 0; n > 0; n-- {
		to := len(all)
		for _, w := range all[from:to] {
			for _, c := range alphabet {
				all = append(all, w+string(c))
			}
		}
		from = to
	}
	return all
}

func randomPattern(r *rand.Rand, n int) Pattern {
	text := "/" + randomText(r, "ab/**", n)
	if r.IntN(4) == 0 {
		text += "$"
	}
	if r.IntN(8) == 0 {
		text = "*" + text
	}
	return MustParse(text)
}

// The patterns in this test are short. If two of them overlap, they both match at least one short path, so the test can
// try all short paths. "c" is a byte that no pattern contains.
func TestAlgebraAgreesWithAllShortPaths(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	all := words("abc/", 6)
	counts := map[string]int{}
	rounds := 500
	if testkit.Long() {
		rounds *= 10
	}
	for range rounds {
		p, q := randomPattern(r, 2), randomPattern(r, 2)
		if r.IntN(20) == 0 {
			q = MustParse([]string{"/*$", "/*", "/", "/$", p.Plain().String()}[r.IntN(5)])
		}
		meet, ok := Intersect(p, q, 200)
		if !ok {
			t.Fatalf("%q and %q: too many", p, q)
		}
		covers, overlaps := true, false
		for _, w := range all {
			inP, inQ := p.Match(w), q.Match(w)
			covers = covers && (inP || !inQ)
			overlaps = overlaps || inP && inQ
			in := slices.ContainsFunc(meet, func(m Pattern) bool { return m.Match(w) })
			if in != (inP && inQ) {
				t.Fatalf("Intersect(%q, %q) = %q; %q is in it: %v", p, q, meet, w, in)
			}
			if slices.ContainsFunc(p.Rooted(), func(r Pattern) bool { return r.text[0] == '/' && r.Match(w) }) != inP {
				t.Fatalf("%q is rooted as %q, but not for %q", p, p.Rooted(), w)
			}
			if p.Plain().Match(w) != inP {
				t.Fatalf("%q is plainly %q, but not for %q", p, p.Plain(), w)
			}
		}
		if got := p.Covers(q); got != covers {
			t.Fatalf("%q covers %q: %v, want %v", p, q, got, covers)
		}
		if got := p.Overlaps(q); got != overlaps {
			t.Fatalf("%q overlaps %q: %v, want %v", p, q, got, overlaps)
		}
		for _, m := range meet {
			if again, err := Parse(m.text); err != nil || again != m {
				t.Fatalf("Intersect(%q, %q) has %q, in normal form %q (%v)", p, q, m, again, err)
			}
		}
		if covers {
			counts["covers"]++
		}
		if overlaps {
			counts["overlaps"]++
		}
		if len(meet) > 1 {
			counts["meet in several"]++
		}
	}
	t.Log(counts)
	for _, c := range []string{"covers", "overlaps", "meet in several"} {
		if counts[c] == 0 {
			t.Errorf("no pair %s: the generator is too narrow", c)
		}
	}
}

func TestIntersect(t *testing.T) {
	for _, c := range []struct{ p, q, want string }{
		{"/images/", "/*.gif$", "/images/*.gif$"},
		{"/a*", "/*b", "/a*b"},
		{"/*a", "/*b", "/*a*b /*b*a"},
		{"/*ab", "/*ba", "/*ab*ba /*aba /*ba*ab /*bab"},
		{"/a", "/b", ""},
		{"/a/", "/a/b$", "/a/b$"},
		{"*/x", "/a", "/a*/x"},
	} {
		got, ok := Intersect(MustParse(c.p), MustParse(c.q), 10)
		var texts []string
		for _, p := range got {
			texts = append(texts, p.text)
		}
		if !ok || strings.Join(texts, " ") != c.want {
			t.Errorf("Intersect(%q, %q) = %q, want %q", c.p, c.q, texts, c.want)
		}
	}
	if got, ok := Intersect(MustParse("/*a*b*c*d*e"), MustParse("/*v*w*x*y*z"), 50); ok {
		t.Errorf("more than 50 ways to meet, got %q", got)
	}
}

func TestIndexCoveringAndOverlapping(t *testing.T) {
	r := rand.New(rand.NewPCG(5, 6))
	for range 2000 {
		entries := make([]Entry[[]int], 1+r.IntN(20))
		for i := range entries {
			entries[i] = Entry[[]int]{randomPattern(r, 5), []int{i}}
		}
		x := NewIndex(entries, func(a, b []int) []int { return slices.Concat(a, b) })
		p := randomPattern(r, 5)
		var covering, overlapping, wantCovering, wantOverlapping []int
		x.Covering(p, func(v []int) { covering = append(covering, v...) })
		x.Overlapping(p, func(v []int) { overlapping = append(overlapping, v...) })
		for i, e := range entries {
			if e.Pattern.Covers(p) {
				wantCovering = append(wantCovering, i)
			}
			if e.Pattern.Overlaps(p) {
				wantOverlapping = append(wantOverlapping, i)
			}
		}
		slices.Sort(covering)
		slices.Sort(overlapping)
		if !slices.Equal(covering, wantCovering) {
			t.Fatalf("%q is covered by %v, want %v of %v", p, covering, wantCovering, entries)
		}
		if !slices.Equal(overlapping, wantOverlapping) {
			t.Fatalf("%q overlaps %v, want %v of %v", p, overlapping, wantOverlapping, entries)
		}
	}
}

// The patterns of a hostile policy need only a limited amount of memory and time.
func TestIntersectBounds(t *testing.T) {
	long := strings.Repeat("a", 1<<16)
	if _, ok := Intersect(MustParse("/"+long+"*b"), MustParse("/"+long+"*c"), 8); ok {
		t.Error("patterns of 64 KiB were intersected")
	}
	if got, ok := Intersect(MustParse("/*a*b*c*d*e*f*g*h"), MustParse("/*1*2*3*4*5*6*7*8"), 4); ok {
		t.Errorf("more than the limit, and no failure: %v", got)
	}
}

// A pattern q matches the example of a pattern p if and only if q covers p. Patterns are an exception if they contain
// the text that replaces a "*" in examples.
func TestExample(t *testing.T) {
	t.Parallel()
	var all []Pattern
	for _, text := range []string{"/", "/a", "/a$", "/a*", "/a*$", "/a/", "/a/b", "/*b", "/a*b", "/a*b$", "*/b", "/a?b=*", "/*.gif$"} {
		all = append(all, MustParse(text))
	}
	for _, p := range all {
		for _, q := range all {
			if got, want := q.Match(NormalizePath(p.Example())), q.Covers(p); got != want {
				t.Errorf("%s matches %s, an example of %s: %t, want %t", q, p.Example(), p, got, want)
			}
		}
	}
}
