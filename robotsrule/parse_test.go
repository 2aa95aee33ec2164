// SPDX-License-Identifier: Apache-2.0

package robotsrule

import (
	"strings"
	"testing"
	"time"
)

func TestParse(t *testing.T) {
	for _, c := range []struct{ name, in, want string }{
		{"case", "NoIndex,NOFOLLOW", "noindex, nofollow"},
		{"none", "none", "noindex, nofollow"},
		{"spaces and empty members", " , noindex\t,, nosnippet ,", "noindex, nosnippet"},
		{"value with a space", "max-snippet : 20", "max-snippet:20"},
		{"equals sign", "max-snippet=20", "max-snippet:20"},
		{"quoted value", `max-image-preview:"Large"`, "max-image-preview:large"},
		{"two values", "max-snippet:50, max-snippet:20", "max-snippet:20"},
		{"huge number", "max-snippet:18446744073709551616", "max-snippet:999999999999999"},
		{"no number", "max-snippet:-5, max-video-preview:+3", "max-snippet:-5, max-video-preview:+3"},
		{"bare rule with a value", "noindex:true, nofollow=?0", "noindex, nofollow, true"},
		{"two rules and a colon", "noindex: nofollow", "noindex, nofollow"},
		{"unknown", "Foo, Bar:Baz, noai", "foo, noai, bar:Baz"},
		{"unknown valued rule stands last", "foo:bar, max-snippet:2", "max-snippet:2, foo:bar"},
		{"ACAP", "ACAP allow-index", "acap allow-index"},
		{"control characters", "no\x00index, foo\r\nbar", "foo bar, no index"},
		{"Google's RFC 850 example", "unavailable_after: 25 Jun 2010 15:00:00 PST", "unavailable_after: 25 Jun 2010 23:00:00 GMT"},
		{"weekday and comma", "unavailable_after: Friday, 25-Jun-10 15:00:00 EST, noindex", "noindex, unavailable_after: 25 Jun 2010 20:00:00 GMT"},
		{"RFC 822", "unavailable_after: Fri, 25 Jun 10 15:00 +0200", "unavailable_after: 25 Jun 2010 13:00:00 GMT"},
		{"ISO 8601", "unavailable_after:2026-12-31T23:59:59+05:30", "unavailable_after: 31 Dec 2026 18:29:59 GMT"},
		{"month with a T in a dashed date", "unavailable_after: 31-Oct-26 10:00", "unavailable_after: 31 Oct 2026 10:00:00 GMT"},
		{"a date alone is its start", "unavailable_after: 2026-12-31, nofollow", "nofollow, unavailable_after: 31 Dec 2026 00:00:00 GMT"},
		{"no date", "unavailable_after: Friday, noindex", "noindex, unavailable_after:Friday"},
		{"zone without a meaning", "unavailable_after: 31 Dec 2026 10:00:00 XYZ", "unavailable_after:31 Dec 2026 10:00:00 XYZ"},
		{"asctime", "unavailable_after: Sat Dec 26 12:00:00 2026", "unavailable_after: 26 Dec 2026 12:00:00 GMT"},
		{"date(1)", "unavailable_after: Sat Dec 26 12:00:00 CET 2026", "unavailable_after: 26 Dec 2026 11:00:00 GMT"},
		{"ISO 8601 basic", "unavailable_after: 20261226T120000Z, noindex", "noindex, unavailable_after: 26 Dec 2026 12:00:00 GMT"},
		{"month first", "unavailable_after: December 26, 2026, noindex", "noindex, unavailable_after: 26 Dec 2026 00:00:00 GMT"},
		{"weekday, month first", "unavailable_after: Saturday, Dec. 26, 2026 10:00 UT", "unavailable_after: 26 Dec 2026 10:00:00 GMT"},
		{"month first without a meaning", "unavailable_after: Saturday, December 26, 2026 XYZ, noindex", "noindex, unavailable_after:Saturday, December 26, 2026 XYZ"},
		{"two dates", "unavailable_after: 2027-01-01, unavailable_after: 2026-01-01", "unavailable_after: 1 Jan 2026 00:00:00 GMT"},
		{"date behind stray colons", "::unavailable_after: Friday, 25-Jun-10 15:00:00 GMT", "unavailable_after: 25 Jun 2010 15:00:00 GMT"},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got := Parse(c.in).String(); got != c.want {
				t.Errorf("Parse(%q) = %q, want %q", c.in, got, c.want)
			}
		})
	}
}

func TestMeta(t *testing.T) {
	s := Of("nosnippet", "noindex", "indexifembedded", "max-video-preview:5", "unavailable_after: 31 Dec 2026 23:59:59 GMT")
	if got, want := s.Meta(), "noindex, indexifembedded, nosnippet, max-video-preview:5, unavailable_after: 2026-12-31T23:59:59Z"; got != want {
		t.Errorf("Meta() = %q, want %q", got, want)
	}
}

func TestParseStrict(t *testing.T) {
	for _, c := range []struct{ in, want string }{
		{"noindex, NOFOLLOW", "noindex, nofollow"},
		{"none, indexifembedded", "noindex, indexifembedded, nofollow"},
		{"all", "all"},
		{"index, follow, max-image-preview:large", "follow, index, max-image-preview:large"},
		{"max-snippet:20, max-snippet:20", "max-snippet:20"},
		{"unavailable_after: Fri, 25-Jun-10 15:00:00 EST, noodp", "noodp, unavailable_after: 25 Jun 2010 20:00:00 GMT"},
		{"unavailable_after:2026-12-31T23:59:59Z", "unavailable_after: 31 Dec 2026 23:59:59 GMT"},
	} {
		if got, err := ParseStrict(c.in); err != nil || got.String() != c.want {
			t.Errorf("ParseStrict(%q) = %q, %v, want %q", c.in, got, err, c.want)
		}
	}
	for _, c := range []struct{ in, err string }{
		{"", "no rule is given"},
		{"noindex,", "missing before or after a comma"},
		{"noindex,,nofollow", "missing before or after a comma"},
		{"max-snipet:20", "write one of the documented rules: all, follow"},
		{"nositelinkssearchbox", "write one of the documented rules: all, follow,"},
		{"googlebot: noindex", "name the crawler under \"for\""},
		{"max-snippet", "needs a value: a number of characters"},
		{"max-snippet=20", "write max-snippet:20 with a colon"},
		{"max-snippet:-2", `cannot be "-2"; it takes a number of characters`},
		{"max-image-preview:big", "none, standard or large"},
		{"noindex:yes", "noindex takes no value"},
		{"max-snippet:20, max-snippet:30", "given twice"},
		{"unavailable_after:2026-12-31", "the time and the zone as well"},
		{"unavailable_after:2026-12-31T10:00:00", "the time and the zone as well"},
		{"unavailable_after:soon", "a date with time and zone"},
		{"index, none", "index and its opposite"},
		{"all, max-snippet:3", "leave one of them out"},
		{"indexifembedded", "write noindex, indexifembedded"},
	} {
		if got, err := ParseStrict(c.in); err == nil || !strings.Contains(err.Error(), c.err) {
			t.Errorf("ParseStrict(%q) = %q, %v, want an error with %q", c.in, got, err, c.err)
		}
	}
}

func FuzzParse(f *testing.F) {
	for _, w := range vocabulary {
		f.Add(w, "noindex, indexifembedded")
	}
	f.Add("unavailable_after: Wed, 31 Dec 2026 23:59:59 GMT, foo:bar, noindex : nofollow", "all, max-snippet=0")
	now := time.Date(2026, 11, 21, 0, 0, 0, 0, time.UTC)
	f.Fuzz(func(t *testing.T, x, y string) {
		a, b := Parse(x), Parse(y)
		for _, s := range []Set{a, a.Union(b), a.Expired(now)} {
			for _, text := range []string{s.String(), s.Meta()} {
				if strings.ContainsAny(text, "\r\n\x00\t") {
					t.Fatalf("%q has a control character", text)
				}
				if got := Parse(text); got != s {
					t.Fatalf("Parse(%q) = %q", text, got)
				}
			}
		}
		if len(a.String()) > 20*len(x)+20 {
			t.Fatalf("%d bytes became %d", len(x), len(a.String()))
		}
		u := a.Union(b)
		if u != b.Union(a) || u.Union(a) != u || u.Union(b) != u {
			t.Fatalf("union of %q and %q: %q and %q", a, b, u, b.Union(a))
		}
		for _, restriction := range []string{"noindex", "nofollow", "nosnippet", "noarchive", "notranslate", "noimageindex", "noodp"} {
			if (a.Has(restriction) || b.Has(restriction)) && !u.Has(restriction) {
				t.Fatalf("%s is lost between %q and %q", restriction, a, b)
			}
		}
		if s, err := ParseStrict(x); err == nil && s != a {
			t.Fatalf("ParseStrict(%q) = %q, Parse gives %q", x, s, a)
		}
		checkParams(t, a)
		if d := a.Beyond(b); b.Union(d) != u {
			t.Fatalf("%q beyond %q = %q", a, b, d)
		}
		var cut Set
		for rest := x; rest != ""; {
			before := len(rest)
			var rule string
			if rule, rest = Cut(rest); len(rest) >= before {
				t.Fatalf("Cut takes nothing off %q", rest)
			}
			cut = cut.Union(Parse(rule))
		}
		if cut.WithoutEmbedding().Restrictive() != a.WithoutEmbedding().Restrictive() {
			t.Fatalf("%q cut up is %q, as a whole %q", x, cut, a)
		}
	})
}
