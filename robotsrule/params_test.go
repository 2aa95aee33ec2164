// SPDX-License-Identifier: Apache-2.0

package robotsrule

import (
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/dunglas/httpsfv"

	"github.com/robotspolicy/caddy-robots-policy/internal/testkit"
)

func marshal(t *testing.T, members []*httpsfv.Params) string {
	t.Helper()
	var list httpsfv.List
	for _, p := range members {
		item := httpsfv.NewItem(httpsfv.Token("*"))
		item.Params = p
		list = append(list, item)
	}
	text, err := httpsfv.Marshal(list)
	if err != nil {
		t.Fatalf("cannot write %v: %v", members, err)
	}
	return text
}

func unmarshal(t *testing.T, text string) (members []*httpsfv.Params) {
	t.Helper()
	list, err := httpsfv.UnmarshalList([]string{text})
	if err != nil {
		t.Fatalf("%q is no list: %v", text, err)
	}
	for _, member := range list {
		members = append(members, member.(httpsfv.Item).Params)
	}
	return members
}

// checkParams checks that s can be written as valid Robots-Tag members of one audience. The written text must be a
// valid List, and also a valid Dictionary if no rule has several values. Reading and writing the text again must not
// change it. The text must not contain permissive words.
func checkParams(t *testing.T, s Set) {
	t.Helper()
	text := marshal(t, s.Params())
	var back Set
	for _, p := range unmarshal(t, text) {
		back = back.Union(FromParams(p))
		for _, name := range p.Names() {
			if v, _ := p.Get(name); permissive(name) && v == true {
				t.Fatalf("%q has the permissive word %s", text, name)
			}
		}
	}
	if again := marshal(t, back.Params()); again != text {
		t.Fatalf("%q is written as %q and then as %q", s, text, again)
	}
	dictionary, err := httpsfv.UnmarshalDictionary([]string{text})
	if err != nil {
		t.Fatalf("%q is no dictionary: %v", text, err)
	}
	restricted, again, last := s, back, Set{}
	if member, ok := dictionary.Get("*"); ok {
		last = FromParams(member.(httpsfv.Item).Params)
	}
	restricted.other, again.other, last.other = "", "", ""
	restricted.index, again.index, last.index = plainIndex(s), plainIndex(back), plainIndex(last)
	if restricted != again || restricted != last {
		t.Fatalf("%q became %q and %q in %q", s, back, last, text)
	}
}

// plainIndex returns the value of s.index as it is after s was written as Robots-Tag and read again.
func plainIndex(s Set) uint8 {
	if s.Has("noindex") {
		return noindexPlain
	}
	return indexUnsaid
}

func TestParams(t *testing.T) {
	for _, c := range []struct{ name, in, want string }{
		{"1.5 all", "noindex, nosnippet", "*;noindex;nosnippet"},
		{"1.5 numbers", "max-snippet:250, max-video-preview:-1", "*;max-snippet=250;max-video-preview=-1"},
		{"1.5 image", "max-image-preview:large", "*;max-image-preview=large"},
		{"1.5 date", "unavailable_after: 31 Dec 2026 23:59:59 GMT", `*;unavailable_after="2026-12-31T23:59:59Z"`},
		{
			"order", "unavailable_after: 31 Dec 2026 23:59:59 GMT, max-image-preview:large, max-snippet:250, nofollow, noindex",
			`*;noindex;nofollow;max-snippet=250;max-image-preview=large;unavailable_after="2026-12-31T23:59:59Z"`,
		},
		{"permissive words", "index, follow, all, archive, cache, snippet", ""},
		{"exception", "noindex, indexifembedded", "*;noindex"},
		{"unknown", "noai, foo:3, bar:baz, text:a b", `*;bar=baz;foo=3;noai;text="a b"`},
		{"unknown twice", "foo:3, foo:2", "*;foo=3, *;foo=2"},
		{"malformed too", "max-snippet:20, max-snippet:many, unavailable_after:someday, unavailable_after:2026-12-31", `*;max-snippet="many", *;unavailable_after="someday", *;max-snippet=20;unavailable_after="2026-12-31T00:00:00Z"`},
		{"no key", "9lives, a b, ümlaut, x:ü", ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got := marshal(t, Parse(c.in).Params()); got != c.want {
				t.Errorf("%q gives %s, want %s", c.in, got, c.want)
			}
		})
	}
}

func TestFromParams(t *testing.T) {
	for _, c := range []struct{ name, in, want, tag string }{
		{"false is no relief", "*;noindex=?0;none=?0", "noindex, nofollow", "*;noindex;nofollow"},
		{"decimal", "*;max-snippet=20.9", "max-snippet:20", "*;max-snippet=20"},
		{"number as text", `*;max-snippet="20";max-video-preview=-1`, "max-snippet:20, max-video-preview:-1", "*;max-snippet=20;max-video-preview=-1"},
		{"image as text", `*;max-image-preview="None"`, "max-image-preview:none", "*;max-image-preview=none"},
		{"RFC 9651 date", "*;unavailable_after=@1798761599", "unavailable_after: 31 Dec 2026 23:59:59 GMT", `*;unavailable_after="2026-12-31T23:59:59Z"`},
		{"header date", `*;unavailable_after="Thu, 31 Dec 2026 23:59:59 GMT"`, "unavailable_after: 31 Dec 2026 23:59:59 GMT", `*;unavailable_after="2026-12-31T23:59:59Z"`},
		{"types of unknown rules", `*;a="1";b=1;c=x;d=?0;e=1.5;f=:YQ==:`, `a="1", b:1, c:x, d=?0, e=1.5, f=:YQ==:`, `*;a="1";b=1;c=x;d=?0;e=1.5;f=:YQ==:`},
		{"types RFC 8941 has not", `*;a=@0;b=%"f%c3%bc"`, `a:1970-01-01T00:00:00Z, b="f%c3%bc"`, `*;a="1970-01-01T00:00:00Z";b="f%c3%bc"`},
		{"malformed", "*;max-snippet=-5;unavailable_after=soon", "max-snippet=-5, unavailable_after=soon", "*;max-snippet=-5;unavailable_after=soon"},
		{"comma in text", `*;a="x, indexifembedded, y"`, `a="x  indexifembedded  y"`, `*;a="x, indexifembedded, y"`},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := FromParams(unmarshal(t, c.in)[0])
			if s.String() != c.want {
				t.Errorf("%s gives %q, want %q", c.in, s, c.want)
			}
			if got := marshal(t, s.Params()); got != c.tag {
				t.Errorf("%s is written back as %s, want %s", c.in, got, c.tag)
			}
		})
	}
	if got := Parse("foo:3, foo:2, 9lives, all, noai, noindex").ParamsLose(); !slices.Equal(got, []string{"9lives"}) {
		t.Errorf("ParamsLose = %q", got)
	}
	if !FromParams(nil).IsEmpty() {
		t.Error("no parameters are no rules")
	}
}

func TestParamsRoundTrip(t *testing.T) {
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	r := rand.New(rand.NewPCG(seed, 2))
	for range testkit.Rounds(2_000, 20_000) {
		s, _ := randomSet(r)
		checkParams(t, s)
	}
}

func FuzzFromParams(f *testing.F) {
	for _, s := range []string{`*;noindex;max-snippet=20;foo="a\"b";unavailable_after="2026-12-31T23:59:59Z"`, "*;max-snippet=-1;x=@5;y=?0;indexifembedded"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, in string) {
		list, err := httpsfv.UnmarshalList([]string{in})
		if err != nil || len(list) == 0 {
			return
		}
		item, ok := list[0].(httpsfv.Item)
		if !ok {
			return
		}
		s := FromParams(item.Params)
		checkParams(t, s)
		if u := s.Union(Of("noindex")); !u.Has("noindex") || u.Union(s) != u {
			t.Fatalf("union with %q: %q", s, u)
		}
	})
}
