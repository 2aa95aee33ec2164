// SPDX-License-Identifier: Apache-2.0

package pathpattern

import (
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
)

func TestWithin(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		inner, outer string
		want         bool
	}{
		{"/reports/2026/", "/reports/", true},
		{"/reports", "/reports/", false},
		{"/", "/reports/", false},
		{"/reports/*.pdf$", "/reports/", true},
		{"/rep*", "/reports/", false},
		{"*/x", "/", true},
		{"/a$", "/a", true},
		{"/reports/*.pdf$", "/*.pdf$", true},
		{"/reports/", "/*.pdf$", false},
		{"/reports/*.pdf", "/*.pdf$", false},
		{"/a.pdf$", "/*.pdf$", true},
		{"/a/x", "*/x", true},
		{"/x", "*/x", true},
		{"/x", "/*/x", false},
		{"*/x", "/*/x", false},
		{"/", "/*", true},
		{"/a", "/a$", false},
		{"/a$", "/a$", true},
	} {
		if got := MustParse(c.inner).Within(MustParse(c.outer)); got != c.want {
			t.Errorf("%s within %s: %v", c.inner, c.outer, got)
		}
	}
}

// A pattern with "*" or "$" covers another pattern if and only if it matches that pattern's samples.
func TestSamplesAgreeWithWithin(t *testing.T) {
	t.Parallel()
	r := rand.New(rand.NewPCG(1, 2))
	text := func() string {
		s := []string{"/", "/", "*"}[r.IntN(3)]
		for range r.IntN(6) {
			s += string("ab/*"[r.IntN(4)])
		}
		if r.IntN(4) == 0 {
			s += "$"
		}
		return s
	}
	pairs := 0
	for range 300 {
		var inner, outer []Pattern
		for range 20 {
			inner = append(inner, MustParse(text()))
			if q := MustParse(text()); !q.IsPlain() {
				outer = append(outer, q)
			}
		}
		for _, p := range inner {
			for _, q := range outer {
				got := !slices.ContainsFunc(p.Rooted(), func(rooted Pattern) bool { return !q.Match(rooted.Sample()) })
				if got != p.Within(q) {
					t.Fatalf("%v within %v: %v", p, q, got)
				}
				if got {
					pairs++
				}
			}
		}
	}
	if pairs < 1000 {
		t.Errorf("only %d pairs", pairs)
	}
}

// Most comparisons need no copy of a pattern, because its start decides.
func TestCoversWithoutCopies(t *testing.T) {
	long := MustParse("/shop/*" + strings.Repeat("/a", 1000))
	for _, p := range []string{"/shop/", "/other/", "/other/*a"} {
		outer := MustParse(p)
		if n := testing.AllocsPerRun(10, func() { outer.Covers(long) }); n != 0 {
			t.Errorf("%s: %v allocations", p, n)
		}
	}
}
