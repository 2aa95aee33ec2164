// SPDX-License-Identifier: Apache-2.0

package robotsrule

import (
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/robotspolicy/caddy-robots-policy/internal/testkit"
)

func TestCut(t *testing.T) {
	for _, c := range []struct {
		in   string
		want []string
	}{
		{"", nil},
		{"noindex", []string{"noindex"}},
		{"noindex,", []string{"noindex"}},
		{" noindex , nofollow", []string{" noindex ", " nofollow"}},
		{"unavailable_after: Friday, 25-Jun-10 15:00:00 EST, noindex", []string{"unavailable_after: Friday, 25-Jun-10 15:00:00 EST", " noindex"}},
		{"unavailable_after: Friday, noindex", []string{"unavailable_after: Friday", " noindex"}},
		{",,noindex", []string{"", "", "noindex"}},
		{"googlebot: unavailable_after: Friday, 25-Jun-10 15:00:00 EST", []string{"googlebot: unavailable_after: Friday", " 25-Jun-10 15:00:00 EST"}},
	} {
		var got []string
		for rest := c.in; rest != ""; {
			var rule string
			rule, rest = Cut(rest)
			got = append(got, rule)
		}
		if !slices.Equal(got, c.want) {
			t.Errorf("%q is cut into %q, want %q", c.in, got, c.want)
		}
	}
}

func TestIsRule(t *testing.T) {
	for _, name := range []string{"NoIndex", "none", "all", "unavailable_after", "max-snippet", "max-anything", "noai", "indexifembedded"} {
		if !IsRule(name) {
			t.Errorf("IsRule(%q) = false", name)
		}
	}
	for _, name := range []string{"", "*", "googlebot", "examplebot", "noindex2", "novaact"} {
		if IsRule(name) {
			t.Errorf("IsRule(%q) = true", name)
		}
	}
}

func TestRestrictive(t *testing.T) {
	for in, want := range map[string]string{
		"all, index, follow, archive, noai, max-snippet:-1": "noai, max-snippet:-1",
		"indexifembedded":          "",
		"noindex, indexifembedded": "noindex, indexifembedded",
	} {
		if got := Parse(in).Restrictive().String(); got != want {
			t.Errorf("Restrictive of %q = %q, want %q", in, got, want)
		}
	}
	if got := Parse("noindex, noai, max-snippet:many, follow").WithoutUnknown().String(); got != "noindex, follow" {
		t.Errorf("WithoutUnknown = %q", got)
	}
	if got := Parse("noindex, indexifembedded").WithoutEmbedding().String(); got != "noindex" {
		t.Errorf("WithoutEmbedding = %q", got)
	}
}

func TestBeyond(t *testing.T) {
	for _, c := range []struct{ s, t, want string }{
		{"noindex, nofollow", "nofollow", "noindex"},
		{"max-snippet:-1", "max-snippet:20", ""},
		{"max-snippet:20", "nosnippet", ""},
		{"nosnippet", "max-snippet:20", "nosnippet"},
		{"noarchive", "nocache", "noarchive"},
		{"nocache", "noarchive", ""},
		{"noindex", "noindex, indexifembedded", "noindex"},
		{"noindex, indexifembedded", "noindex", ""},
		{"noai, foo", "foo", "noai"},
		{"index", "noindex", ""},
	} {
		if got := Parse(c.s).Beyond(Parse(c.t)).String(); got != c.want {
			t.Errorf("%q beyond %q = %q, want %q", c.s, c.t, got, c.want)
		}
	}
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	r := rand.New(rand.NewPCG(seed, 3))
	for range testkit.Rounds(5_000, 50_000) {
		a, aw := randomSet(r)
		b, bw := randomSet(r)
		d := a.Beyond(b)
		if b.Union(d) != a.Union(b) {
			t.Fatalf("%q beyond %q = %q, which does not make up the union", aw, bw, d)
		}
		if !d.Beyond(b).Equal(d) || !b.Beyond(b).IsEmpty() {
			t.Fatalf("%q beyond %q = %q is not the smallest", aw, bw, d)
		}
	}
}
