// SPDX-License-Identifier: Apache-2.0

package pathpattern

import (
	"math/rand/v2"
	"slices"
	"testing"
)

func TestProhibitionsInAllSpellings(t *testing.T) {
	for _, c := range []struct {
		text string
		want []string
	}{
		{"/shop/", []string{"/shop/"}},
		{"/collections/*%2B*", []string{"/collections/*%2B", "/collections/*+", "/collections/*%2b"}},
		{"/collections/*%2b*", []string{"/collections/*%2b", "/collections/*+", "/collections/*%2B"}},
		{"/collections/*+*", []string{"/collections/*+", "/collections/*%2B", "/collections/*%2b"}},
		{"/wiki/X%3AY", []string{"/wiki/X%3AY", "/wiki/X:Y", "/wiki/X%3aY"}},
		{"/a+b%3Ac", []string{"/a+b%3Ac", "/a+b:c", "/a%2Bb%3Ac", "/a%2bb%3ac"}},
		{"/?next=%2Fa", []string{"/?next=%2Fa", "/?next=/a", "/?next=%2fa"}},
		{"/a%2Fb", []string{"/a%2Fb"}},                       // in a path, %2F is not a slash
		{"/a%41", []string{"/a%41", "/aA"}},                  // not a reserved octet, but some readers do not decode it
		{"/caf\u00e9", []string{"/caf%C3%A9"}},               // URLs cannot contain this letter unencoded
		{"/*?s=", []string{"/*?s="}},                         // "=" is a delimiter
		{"/*?s%3D", []string{"/*?s%3D", "/*?s=", "/*?s%3d"}}, // %3D is data
		{"/a=b", []string{"/a=b", "/a%3Db", "/a%3db"}},
		{"/$*", []string{"/$*", "/%24"}},
		{"/%2A", []string{"/%2A", "/%2a"}}, // a plain "*" would match everything
		{"/x%24$", []string{"/x%24$", "/x$$"}},
		{"/a**b*$", []string{"/a*b"}},
	} {
		p := MustParse(c.text)
		s := Spell(p, Written(p, c.text))
		if got := s.Prohibition(); !slices.Equal(got, c.want) {
			t.Errorf("%s: %q, want %q", c.text, got, c.want)
		}
	}
}

// According to RFC 9309 section 2.2.2, all spellings have the same meaning, except plain "*" and "$".
func TestSpellingsMeanTheSame(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	parts := []string{"a", "%41", ":", "%3a", "%3A", "+", "%2B", "?", "%3F", "/", "%2f", "=", "%3d", "|", "%7c", "\"", "~", "%7E", "*", "\u00e9", "%", "%C3%A9"}
	for range 20000 {
		text := "/"
		for range r.IntN(8) {
			text += parts[r.IntN(len(parts))]
		}
		p := MustParse(text)
		s := Spell(p.Plain(), Written(p, text))
		for _, spelling := range s.Prohibition() {
			if q := MustParse(spelling); q.Plain() != p.Plain() {
				t.Fatalf("%q: %q means %q, and not %q", text, spelling, q, p)
			}
		}
	}
}
