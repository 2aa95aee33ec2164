// SPDX-License-Identifier: Apache-2.0

package pathpattern

import (
	"fmt"
	"math/rand/v2"
	"regexp"
	"slices"
	"strings"
	"testing"
)

func TestParse_RFC9309_2_2_2_NormalForm(t *testing.T) {
	for _, c := range []struct{ in, want string }{
		{"/", "/"},
		{"/foo/bar?baz=https://foo.bar", "/foo/bar?baz=https://foo.bar"},
		{"/foo/bar?baz=https%3A%2F%2Ffoo.bar", "/foo/bar?baz=https://foo.bar"},
		{"/%3aa%40b%5b%5D%21%26%27%28%29%2b%2C%3b%3D", "/:a@b[]!&'()+,;="},
		{"/a%2fb%3Fc%23", "/a%2Fb%3Fc%23"},
		{"/a?%2Fb%3fc", "/a?/b?c"},
		{"/*%2F?%2F*%2F", "/*%2F?/*/"},
		{"/*to=%2Fx", "/*to=/x"},
		{"/*to%3D%2fx", "/*to=/x"},
		{"/to=%2F*", "/to=%2F*"},
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
		{"/a**b", "/a**b"},
		{"**b", "/*b"},
		{"**/b", "**/b"},
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
		{"/a%3Fb", "/a?b", false},
		{"/@x/", "/%40x/", true},
		{"/%40x/", "/@x/", true},
		{"/foo/bar?baz=https://foo.bar", "/foo/bar?baz=https%3A%2F%2Ffoo.bar", true},
		{"/foo/bar?baz=https%3A%2F%2Ffoo.bar", "/foo/bar?baz=https://foo.bar", true},
		{"/*?to=%2Fx", "/a?to=/x", true},
		{"/*to=%2Fx", "/a?to=%2Fx", true},
		{"/a%2A$", "/a*", true},
		{"/a%2A$", "/aa", false},
		{"/a%24", "/a$b", true},
		{"/a%24", "/a", false},
	} {
		if got := MustParse(c.pattern).Match(NormalizePath(c.path)); got != c.want {
			t.Errorf("%q matches %q: %v, want %v", c.pattern, c.path, got, c.want)
		}
	}
}

// respell returns a target in which some bytes have another spelling with the same meaning.
func respell(r *rand.Rand, target string) string {
	var b []byte
	at := inPath
	for i := 0; i < len(target); i++ {
		c := target[i]
		if c == '%' {
			if code := byte(unhex(target[i+1])<<4 | unhex(target[i+2])); r.IntN(2) == 0 && classes[code] == special {
				b = append(b, code)
			} else {
				b = append(b, strings.ToLower(target[i:i+3])...)
			}
			i += 2
			continue
		}
		if r.IntN(2) == 0 && (classes[c] == plain || classes[c] == separator && at == inQuery) {
			b = fmt.Appendf(b, []string{"%%%02x", "%%%02X"}[r.IntN(2)], c)
		} else {
			b = append(b, c)
		}
		at = at.after(c)
	}
	return string(b)
}

// If a pattern matches a target, it matches every spelling of the target.
func TestMatchDoesNotDependOnTheSpelling(t *testing.T) {
	r := rand.New(rand.NewPCG(9, 10))
	hits := 0
	for range 50_000 {
		target := NormalizePath("/" + randomText(r, "ab@:;=,/?%2F3F*$", 8))
		pattern := MustParse("/" + randomText(r, "ab@:;=,/?*$", 4))
		other := respell(r, target)
		if got := NormalizePath(other); got != target {
			t.Fatalf("%q is %q in normal form, and %q is %q", target, target, other, got)
		}
		if pattern.Match(target) {
			hits++
		}
	}
	if hits < 1000 {
		t.Errorf("only %d matches", hits)
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
		matchers := make([]*regexp.Regexp, len(entries))
		for i := range entries {
			text := "/" + randomText(r, "aab/*", 8)
			if r.IntN(5) == 0 {
				text += "$"
			}
			if r.IntN(10) == 0 {
				text = "*" + text
			}
			entries[i] = Entry[[]int]{MustParse(text), []int{i}}
			matchers[i] = regexpOf(entries[i].Pattern.String())
		}
		x := NewIndex(entries, func(a, b []int) []int { return slices.Concat(a, b) })
		for range 20 {
			path := "/" + randomText(r, "aab/", 12)
			var all []int
			for i := range entries {
				if matchers[i].MatchString(path) {
					all = append(all, i)
				}
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

func FuzzParse(f *testing.F) {
	f.Add("/a*b$", "/axb")
	f.Add("*%2a%zz\xff", "/*%")
	f.Fuzz(func(t *testing.T, text, path string) {
		norm := NormalizePath(path)
		if !IsNormal(norm) || string(AppendNormalPath(nil, norm)) != norm {
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
		n := 0
		if x.Matches(norm, func(int) { n++ }); (n > 0) != p.Match(norm) {
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

// A pattern that was made longer still matches the same paths.
func TestLonger(t *testing.T) {
	for text, want := range map[string]string{"/a": "/a**", "/a*b": "/a*b**", "/a*b$": "/a***b$", "*/b$": "***/b$", "/a$": "/a$"} {
		p := MustParse(text)
		got := p.Longer(2)
		if got.String() != want || MustParse(want) != got || !got.Covers(p) || !p.Covers(got) || got.Plain() != p.Plain() {
			t.Errorf("%s: %s, want %s", p, got, want)
		}
	}
}
