// SPDX-License-Identifier: Apache-2.0

package pathpattern

import (
	"net/url"
	"regexp"
	"strings"
	"testing"
	"unicode/utf8"
)

func TestFold(t *testing.T) {
	for path, want := range map[string]string{
		"/":                   "/",
		"/admin/x":            "/admin/x",
		"/ADMIN/X?Q=A":        "/admin/x?q=a",
		"/a%2FB%2A%5C":        "/a%2Fb%2A%5C", // the digits of escapes remain in upper case
		"/caf%C3%89/":         "/caf%C3%A9/",
		"/caf%C3%A9/":         "/caf%C3%A9/",
		"/%CE%A3%CF%82%CF%83": "/%CF%83%CF%83%CF%83",
		"/boo%E2%84%AA":       "/book",            // the Kelvin sign
		"/%C5%BFecret":        "/secret",          // the long s
		"/%FF%C3":             "/%FF%C3",          // not UTF-8
		"/%F0%90%90%80%2F":    "/%F0%90%90%A8%2F", // Deseret
		"/%25C3%89":           "/%25c3%89",
	} {
		if got := Fold(NormalizePath(path)); got != want {
			t.Errorf("Fold(%q) is %q, want %q", path, got, want)
		}
	}
	if n := testing.AllocsPerRun(10, func() { Fold("/articles/2026/11/a-long-name.html?page=2") }); n != 0 {
		t.Errorf("folding a path in lower case allocates %v times", n)
	}
}

// insideEscape matches patterns with a "*" that may match the first characters of an escape. The rest of the escape
// follows the "*". Folded changes this rest to lower case, but Fold does not change the digits of escapes.
var insideEscape = regexp.MustCompile(`\*[0-9A-F]?[A-F]`)

func FuzzFold(f *testing.F) {
	for _, s := range []string{"/Admin/*", "/caf%C3%89$", "/%E2%84%AA", "/A%2fB?C=*D"} {
		f.Add(s, "/ADMIN/x")
	}
	f.Add("*A", "*")
	f.Fuzz(func(t *testing.T, pattern, path string) {
		path = NormalizePath(path)
		folded := Fold(path)
		if again := Fold(folded); again != folded {
			t.Fatalf("%q folds to %q, and that to %q", path, folded, again)
		}
		if !IsNormal(folded) {
			t.Fatalf("%q folds to %q, which is not in normal form", path, folded)
		}
		if decoded, err := url.PathUnescape(path); err == nil && utf8.ValidString(decoded) {
			if other, err := url.PathUnescape(folded); err != nil || !strings.EqualFold(decoded, other) && !hasDottedI(decoded) {
				t.Fatalf("%q folds to %q, which is another word", decoded, other)
			}
		}
		p, err := Parse(pattern)
		if err != nil || !utf8.ValidString(strings.ReplaceAll(unescaped(p.String()), "*", "")) {
			return // the pattern may end inside a character that folding changes
		}
		for part := range strings.SplitSeq(p.String(), "*") {
			if !utf8.ValidString(unescaped(part)) {
				return
			}
		}
		if insideEscape.MatchString(p.String()) {
			return
		}
		if p.Match(path) && !p.Folded().Match(folded) {
			t.Fatalf("%q matches %q, but %q does not match %q", p, path, p.Folded(), folded)
		}
	})
}

// hasDottedI reports whether s has one of the Turkish letters that strings.EqualFold distinguishes from "i".
func hasDottedI(s string) bool { return strings.ContainsAny(s, "\u0130\u0131") }

func unescaped(s string) string {
	u, err := url.PathUnescape(s)
	if err != nil {
		return s
	}
	return u
}
