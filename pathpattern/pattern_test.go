// SPDX-License-Identifier: Apache-2.0

package pathpattern

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
)

func TestParse_RFC9309_2_2_2_NormalForm(t *testing.T) {
	for _, c := range []struct{ in, want string }{
		{"/", "/"},
		{"/foo/bar?baz=https://foo.bar", "/foo/bar?baz=https://foo.bar"},
		{"/foo/bar?baz=https%3A%2F%2Ffoo.bar", "/foo/bar?baz=https%3A%2F%2Ffoo.bar"},
		{"/foo/bar/\u30C4", "/foo/bar/%E3%83%84"},
		{"/foo/bar/%e3%83%84", "/foo/bar/%E3%83%84"},
		{"/foo/bar/%62%61%7A", "/foo/bar/baz"},
		{"/a%7eb", "/a~b"},
		{"/a%2Ab", "/a%2Ab"},
		{"/a%2ab%24", "/a%2Ab%24"},
		{"/100%", "/100%25"},
		{"/x%zz", "/x%25zz"},
		{"/x{y}", "/x%7By%7D"},
		{"/a$b", "/a%24b"},
		{"/a$", "/a$"},
		{"/*.gif$", "/*.gif$"},
		{"*.gif$", "/*.gif$"},
		{"*/print", "*/print"},
		{"/a**b", "/a*b"},
		{"/a*", "/a*"},
		{"*", "/*"},
		{"**", "/*"},
		{"*$", "/*$"},
		{"/$", "/$"},
	} {
		p, err := Parse(c.in)
		if err != nil || p.String() != c.want {
			t.Errorf("Parse(%q) = %q, %v; want %q", c.in, p, err, c.want)
		}
	}
	for _, bad := range []string{"", "foo", "$", " /x", "/a b", "/a\tb", "/a#b", "/a\n"} {
		if p, err := Parse(bad); err == nil {
			t.Errorf("Parse(%q) = %q, want an error", bad, p)
		}
	}
}

func TestMatch_RFC9309_2_2_3_SpecialCharacters(t *testing.T) {
	for _, c := range []struct {
		pattern, path string
		want          bool
	}{
		{"/path/file-with-a-%2A.html", "/path/file-with-a-*.html", true},
		{"/path/file-with-a-%2A.html", "/path/file-with-a-x.html", false},
		{"/path/foo-%24", "/path/foo-$", true},
		{"/foo/bar/\u30C4", "/foo/bar/%E3%83%84", true},
		{"/foo/bar/%E3%83%84", "/foo/bar/\u30C4", true},
		{"/foo/bar/%62%61%7A", "/foo/bar/baz", true},
		{"/foo?bar", "/foo?bar=1", true},
		{"/Foo", "/foo", false},
		{"/fish", "/fish.html", true},
		{"/fish*", "/fishheads", true},
		{"/fish/", "/fish", false},
		{"/*.php", "/index.php", true},
		{"/*.php", "/folder/any.php.file.html", true},
		{"/*.php$", "/filename.php?parameters", false},
		{"/*.php$", "/a.php/b.php", true},
		{"/fish*.php", "/fishheads/catfish.php?p", true},
		{"/a*b*c$", "/abcabc", true},
		{"/a*b*c$", "/abcab", false},
		{"/$", "/", true},
		{"/$", "/x", false},
		{"*/print", "/print", true},
		{"*/print", "/a/print/b", true},
		{"*.gif", "/x.gif", true},
		{"/a%2Fb", "/a/b", false},
	} {
		if got := MustParse(c.pattern).Match(NormalizePath(c.path)); got != c.want {
			t.Errorf("%q matches %q: %v, want %v", c.pattern, c.path, got, c.want)
		}
	}
}

func randomText(r *rand.Rand, alphabet string, n int) string {
	b := make([]byte, r.IntN(n+1))
	for i := range b {
		b[i] = alphabet[r.IntN(len(alphabet))]
	}
	return string(b)
}

func TestIndexAgreesWithRegexp(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for range 2000 {
		entries := make([]Entry[[]int], 1+r.IntN(40))
		for i := range entries {
			text := "/" + randomText(r, "aab/*", 8)
			if r.IntN(5) == 0 {
				text += "$"
			}
			if r.IntN(10) == 0 {
				text = "*" + text
			}
			entries[i] = Entry[[]int]{MustParse(text), []int{i}}
		}
		x := NewIndex(entries, func(a, b []int) []int { return slices.Concat(a, b) })
		for range 20 {
			path := "/" + randomText(r, "aab/", 12)
			var all, longest []int
			best := 0
			for i, e := range entries {
				if !regexpOf(e.Pattern.String()).MatchString(path) {
					continue
				}
				all = append(all, i)
				if n := e.Pattern.Len(); n > best {
					best, longest = n, nil
				}
				if e.Pattern.Len() == best {
					longest = append(longest, i)
				}
			}
			n, got := x.Longest(path)
			slices.Sort(got)
			if n != best || !slices.Equal(got, longest) {
				t.Fatalf("Longest(%q) = %d %v, want %d %v of %v", path, n, got, best, longest, entries)
			}
			if n, got := x.longestDeep(path); n != best || len(got) != len(longest) {
				t.Fatalf("longestDeep(%q) = %d %v, want %d %v", path, n, got, best, longest)
			}
			var found []int
			x.Matches(path, func(v []int) { found = append(found, v...) })
			slices.Sort(found)
			if !slices.Equal(found, all) {
				t.Fatalf("Matches(%q) = %v, want %v of %v", path, found, all, entries)
			}
		}
	}
}

func TestLongestThroughManyWildcardNodes(t *testing.T) {
	var entries []Entry[int]
	for i := range 3 * maxDepth {
		entries = append(entries, Entry[int]{MustParse("/" + strings.Repeat("a", i) + "*z"), i})
	}
	x := NewIndex(entries, func(a, b int) int { return max(a, b) })
	if n, v := x.Longest("/" + strings.Repeat("a", 200) + "z"); n != 3*maxDepth+2 || v != 3*maxDepth-1 {
		t.Errorf("got pattern %d of length %d", v, n)
	}
}

func FuzzParse(f *testing.F) {
	f.Add("/a*b$", "/axb")
	f.Add("*%2a%zz\xff", "/*%")
	f.Fuzz(func(t *testing.T, text, path string) {
		norm := NormalizePath(path)
		if !IsNormal(norm) && norm != NormalizePath(norm) {
			t.Fatalf("the normal form of %q is not its own: %q, %q", path, norm, NormalizePath(norm))
		}
		p, err := Parse(text)
		if err != nil {
			return
		}
		again, err := Parse(p.String())
		if err != nil || again != p {
			t.Fatalf("%q parses to %q, which parses to %q (%v)", text, p, again, err)
		}
		if got := p.Match(norm); got != regexpOf(p.String()).MatchString(norm) {
			t.Fatalf("%q matches %q: %v", p, norm, got)
		}
		x := NewIndex([]Entry[int]{{p, 1}}, func(a, b int) int { return a | b })
		if n, _ := x.Longest(norm); (n > 0) != p.Match(norm) {
			t.Fatalf("the index has %q for %q: %d", p, norm, n)
		}
	})
}

func BenchmarkMatchHostile(b *testing.B) {
	p := MustParse("/*a*a*a*a*a*a*b")
	for _, n := range []int{256, 2048} {
		path := "/" + strings.Repeat("a", n)
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if p.Match(path) {
					b.Fatal("matched")
				}
			}
		})
	}
}
