// SPDX-License-Identifier: Apache-2.0

package robotsrule

import (
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/robotspolicy/caddy-robots-policy/internal/testkit"
)

func TestUnion(t *testing.T) {
	for _, c := range []struct{ name, a, b, want string }{
		{"Google: the more restrictive applies", "max-snippet:50", "nosnippet", "nosnippet"},
		{"Google: sum of the negative rules", "nofollow", "noindex", "noindex, nofollow"},
		{"max-snippet 0 is nosnippet", "max-snippet:0", "max-snippet:20", "nosnippet"},
		{"-1 is no limit", "max-snippet:-1", "max-snippet:20", "max-snippet:20"},
		{"-1 and 0 seconds", "max-video-preview:-1", "max-video-preview:0", "max-video-preview:0"},
		{"none < standard", "max-image-preview:none", "max-image-preview:standard", "max-image-preview:none"},
		{"standard < large", "max-image-preview:large", "max-image-preview:standard", "max-image-preview:standard"},
		{"earliest date", "unavailable_after: 2027-01-01T00:00:00Z", "unavailable_after: 1 Jan 2026 00:00:00 GMT", "unavailable_after: 1 Jan 2026 00:00:00 GMT"},
		{"Bing: never nocache beside noarchive", "nocache", "noarchive", "noarchive"},
		{"exception on one side only", "noindex, indexifembedded", "noindex", "noindex"},
		{"exception on both sides", "noindex, indexifembedded", "indexifembedded, noindex", "noindex, indexifembedded"},
		{"exception without noindex", "indexifembedded", "noindex", "noindex"},
		{"exception and silence", "noindex, indexifembedded", "nofollow", "noindex, indexifembedded, nofollow"},
		{"contradicted words", "index, follow", "noindex", "noindex, follow"},
		{"contradicted by none", "index, follow", "none", "noindex, nofollow"},
		{"all goes", "all", "max-snippet:5", "max-snippet:5"},
		{"all stays beside what allows", "all", "max-image-preview:large", "all, max-image-preview:large"},
		{"cache goes with noarchive", "cache, archive", "noarchive", "noarchive"},
		{"unknown contraries", "ai", "noai", "noai"},
		{"unknown rules stay", "noai, foo", "noimageai, foo", "foo, noai, noimageai"},
		{"malformed stays", "max-snippet:many", "max-snippet:-1", "max-snippet:-1, max-snippet:many"},
		{"malformed stays beside nosnippet", "max-snippet:many", "nosnippet", "nosnippet, max-snippet:many"},
		{"no value gives way", "max-snippet", "max-snippet:9", "max-snippet:9"},
		{"a date that cannot be read stays", "unavailable_after: 26 Dec 2026 12:00 Europe/Berlin", "unavailable_after: 2027-12-31", "unavailable_after: 31 Dec 2027 00:00:00 GMT, unavailable_after:26 Dec 2026 12:00 Europe/Berlin"},
		{"empty", "", "", ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got := Parse(c.a).Union(Parse(c.b)).String(); got != c.want {
				t.Errorf("%q ∪ %q = %q, want %q", c.a, c.b, got, c.want)
			}
			if got := Parse(c.b).Union(Parse(c.a)).String(); got != c.want {
				t.Errorf("%q ∪ %q = %q, want %q", c.b, c.a, got, c.want)
			}
		})
	}
}

// vocabulary has the members of the lists in the property tests: every rule, extreme values, and permissive, unknown
// and malformed words.
var vocabulary = []string{
	"all", "none", "index", "noindex", "follow", "nofollow", "indexifembedded", "nosnippet", "snippet", "noarchive",
	"archive", "nocache", "cache", "notranslate", "translate", "noimageindex", "noodp", "noai", "ai", "nonoai", "foo", "bar:baz",
	"max-snippet:-1", "max-snippet:0", "max-snippet:20", "max-snippet:99999999999999999999", "max-snippet:many", "max-snippet",
	"max-image-preview:none", "max-image-preview:standard", "max-image-preview:large", "max-image-preview:huge",
	"max-video-preview:-1", "max-video-preview:0", "max-video-preview:7", "max-video-preview:-7",
	"unavailable_after: 2026-12-31", "unavailable_after: Friday, 25-Jun-10 15:00:00 EST", "unavailable_after: someday",
}

func randomSet(r *rand.Rand) (Set, []string) {
	words := make([]string, r.IntN(5))
	for i := range words {
		words[i] = vocabulary[r.IntN(len(vocabulary))]
	}
	return Of(words...), words
}

func TestUnionLaws(t *testing.T) {
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	r := rand.New(rand.NewPCG(seed, 0))
	for range testkit.Rounds(10_000, 100_000) {
		a, aw := randomSet(r)
		b, bw := randomSet(r)
		c, cw := randomSet(r)
		if a.Union(b) != b.Union(a) {
			t.Fatalf("not commutative: %q %q", aw, bw)
		}
		if a.Union(b).Union(c) != a.Union(b.Union(c)) {
			t.Fatalf("not associative: %q %q %q", aw, bw, cw)
		}
		if a.Union(a) != a || a.Union(b).Union(b) != a.Union(b) {
			t.Fatalf("not idempotent: %q %q", aw, bw)
		}
		if a.Union(Set{}) != a || (Set{}).Union(a) != a {
			t.Fatalf("the empty set is not neutral: %q", aw)
		}
	}
}

// naive holds what a list of rules allows a search engine to do. It is computed by a second, simple implementation that
// only compares words and numbers.
type naive struct {
	index, embed, follow, archive, cache, translate, images bool
	snippet, video, image                                   int64
	until                                                   int64
}

func naiveOf(words []string) naive {
	const unlimited = 1 << 60
	n := naive{true, true, true, true, true, true, true, unlimited, unlimited, 2, unlimited}
	has := func(w string) bool {
		for _, x := range words {
			if x == w {
				return true
			}
		}
		return false
	}
	n.index = !has("noindex") && !has("none")
	n.embed = n.index || has("indexifembedded")
	n.follow = !has("nofollow") && !has("none")
	n.archive = !has("noarchive")
	n.cache = !has("noarchive") && !has("nocache")
	n.translate, n.images = !has("notranslate"), !has("noimageindex")
	for w, v := range map[string]int64{"max-snippet:0": 0, "nosnippet": 0, "max-snippet:20": 20, "max-snippet:99999999999999999999": 1e15} {
		if has(w) {
			n.snippet = min(n.snippet, v)
		}
	}
	for w, v := range map[string]int64{"max-video-preview:0": 0, "max-video-preview:7": 7} {
		if has(w) {
			n.video = min(n.video, v)
		}
	}
	for w, v := range map[string]int64{"max-image-preview:none": 0, "max-image-preview:standard": 1} {
		if has(w) {
			n.image = min(n.image, v)
		}
	}
	for w, d := range map[string]string{"unavailable_after: 2026-12-31": "2026-12-31T00:00:00Z", "unavailable_after: Friday, 25-Jun-10 15:00:00 EST": "2010-06-25T20:00:00Z"} {
		if at, _ := time.Parse(time.RFC3339, d); has(w) {
			n.until = min(n.until, at.Unix())
		}
	}
	return n
}

// stricter combines two interpretations. For each use, the stricter one applies.
func (n naive) stricter(m naive) naive {
	return naive{
		n.index && m.index, n.embed && m.embed, n.follow && m.follow, n.archive && m.archive, n.cache && m.cache,
		n.translate && m.translate, n.images && m.images,
		min(n.snippet, m.snippet), min(n.video, m.video), min(n.image, m.image), min(n.until, m.until),
	}
}

func (s Set) naive() naive {
	words := strings.Split(s.String(), ", ")
	for i, w := range words {
		switch w {
		case "max-snippet:999999999999999":
			words[i] = "max-snippet:99999999999999999999"
		case "unavailable_after: 31 Dec 2026 00:00:00 GMT":
			words[i] = "unavailable_after: 2026-12-31"
		case "unavailable_after: 25 Jun 2010 20:00:00 GMT":
			words[i] = "unavailable_after: Friday, 25-Jun-10 15:00:00 EST"
		}
	}
	return naiveOf(words)
}

func TestUnionAgainstNaiveReading(t *testing.T) {
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	r := rand.New(rand.NewPCG(seed, 1))
	for range testkit.Rounds(5_000, 50_000) {
		a, aw := randomSet(r)
		b, bw := randomSet(r)
		if a.naive() != naiveOf(aw) {
			t.Fatalf("%q became %q", aw, a)
		}
		if got, want := a.Union(b).naive(), naiveOf(aw).stricter(naiveOf(bw)); got != want {
			t.Fatalf("%q ∪ %q = %q: %+v, want %+v", aw, bw, a.Union(b), got, want)
		}
	}
}

func TestExpired(t *testing.T) {
	at := time.Date(2026, 12, 31, 23, 59, 59, 0, time.UTC)
	s := UnavailableAfter(at).Union(Of("index", "nofollow"))
	if got := s.Expired(at.Add(999 * time.Millisecond)); got != s {
		t.Errorf("before the second is over: %q", got)
	}
	if got, want := s.Expired(at.Add(time.Second)).String(), "noindex, nofollow"; got != want {
		t.Errorf("after it: %q, want %q", got, want)
	}
	if got, ok := s.UnavailableAfter(); !ok || !got.Equal(at) {
		t.Errorf("UnavailableAfter() = %v, %v", got, ok)
	}
	if got := Of("nofollow"); got.Expired(at) != got {
		t.Errorf("without a date: %q", got.Expired(at))
	}
	if got := Of("noindex", "indexifembedded", "unavailable_after: 2001-01-01").Expired(at).String(); got != "noindex" {
		t.Errorf("the exception outlives the date: %q", got)
	}
}

func TestMake(t *testing.T) {
	for _, c := range []struct {
		got  Set
		want string
	}{
		{MaxSnippet(20), "max-snippet:20"},
		{MaxSnippet(0), "nosnippet"},
		{MaxSnippet(-1), "max-snippet:-1"},
		{MaxSnippet(-2), "nosnippet"},
		{UnavailableAfter(time.Date(2026, 12, 31, 23, 59, 59, 7, time.UTC)), "unavailable_after: 31 Dec 2026 23:59:59 GMT"},
		{UnavailableAfter(time.Time{}), "unavailable_after: 1 Jan 1970 00:00:00 GMT"},
		{UnavailableAfter(time.Unix(1<<40, 0)), "unavailable_after: 31 Dec 9999 23:59:59 GMT"},
		{Of("NoIndex", "max-snippet:7"), "noindex, max-snippet:7"},
		{Of(), ""},
	} {
		if got := c.got.String(); got != c.want {
			t.Errorf("%q, want %q", got, c.want)
		}
	}
}

func TestHas(t *testing.T) {
	s := Of("none", "max-snippet:3", "max-image-preview:none", "max-video-preview:-1", "unavailable_after: 2030-01-01", "noai", "foo:bar", "indexifembedded")
	for _, name := range []string{"none", "noindex", "nofollow", "max-snippet", "max-image-preview", "max-video-preview", "unavailable_after", "noai", "foo", "indexifembedded"} {
		if !s.Has(name) {
			t.Errorf("Has(%q) = false in %q", name, s)
		}
		if (Set{}).Has(name) {
			t.Errorf("the empty set has %q", name)
		}
	}
	for _, name := range []string{"", "nosnippet", "all", "index", "foo:bar", "noarchive"} {
		if s.Has(name) {
			t.Errorf("Has(%q) = true in %q", name, s)
		}
	}
	if Of("all").IsEmpty() || !Of("", " ").IsEmpty() {
		t.Error("IsEmpty")
	}
	if !Of("noindex", "nofollow").Equal(Parse("NONE")) {
		t.Error("none is noindex, nofollow")
	}
}
