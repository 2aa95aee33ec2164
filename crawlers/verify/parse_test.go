// SPDX-License-Identifier: Apache-2.0

package verify

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"
)

func prefixStrings(ps []netip.Prefix) []string {
	out := make([]string, len(ps))
	for i, p := range ps {
		out[i] = p.String()
	}
	return out
}

func TestParseList(t *testing.T) {
	both := []string{"192.0.2.0/24", "2001:db8::/32"}
	day := time.Date(2026, 11, 3, 0, 0, 0, 0, time.UTC)
	tests := []struct {
		name, text string
		want       []string
		created    time.Time
		problem    string
	}{
		{"as Google has it", `{"creationTime": "2026-11-03T14:46:02.000000", "prefixes": [{"ipv4Prefix": "192.0.2.0/24"}, {"ipv6Prefix": "2001:db8::/32"}]}`, both, day.Add(14*time.Hour + 46*time.Minute + 2*time.Second), ""},
		{"JAFAR with service", `{"formatVersion":"1.0","synctoken":"x","creationTime":"2026-11-03T00:00:00Z","notes":"n","prefixes":[{"ipv4Prefix":"192.0.2.0/24","service":"a"},{"ipv6Prefix":"2001:db8::/32","service":"b"}]}`, both, day, ""},
		{"JAFAR with services", `{"creationTime":"2026-11-03T00:00:00Z","prefixes":[{"ipv4Prefix":"192.0.2.0/24","services":["a","b"]},{"ipv6Prefix":"2001:db8::/32","services":[]}]}`, both, day, ""},
		{"capital letter, as in the draft's examples", `{"Prefixes":[{"ipv4Prefix":"192.0.2.0/24"},{"ipv6Prefix":"2001:db8::/32"}]}`, both, time.Time{}, ""},
		{"both or none in one object", `{"prefixes":[{"ipv4Prefix":"198.51.100.0/24","ipv6Prefix":"2001:db8::/32"},{},{"service":"x"},{"ipv4Prefix":"192.0.2.0/24"}]}`, both[:1], time.Time{}, "3 of 4 entries are invalid"},
		{"invalid time", `{"creationTime":7,"prefixes":[{"ipv4Prefix":"192.0.2.0/24"}]}`, both[:1], time.Time{}, ""},
		{"single addresses", `{"prefixes":[{"ipv4Prefix":"192.0.2.7"},{"ipv4Prefix":"192.0.2.8/32"},{"ipv6Prefix":"2001:db8::1"}]}`, []string{"192.0.2.7/32", "192.0.2.8/32", "2001:db8::1/128"}, time.Time{}, ""},
		{"bits beyond the prefix", `{"prefixes":[{"ipv4Prefix":"192.0.2.7/24"}]}`, both[:1], time.Time{}, ""},
		{"too wide, not public, not readable", `{"prefixes":[{"ipv4Prefix":"0.0.0.0/0"},{"ipv4Prefix":"64.0.0.0/7"},{"ipv6Prefix":"::/0"},{"ipv6Prefix":"2000::/3"},{"ipv4Prefix":"10.0.0.0/8"},{"ipv4Prefix":"127.0.0.0/8"},{"ipv4Prefix":"100.64.0.0/10"},{"ipv6Prefix":"fd00::/20"},{"ipv6Prefix":"::ffff:192.0.2.0/120"},{"ipv4Prefix":"x"},{"ipv4Prefix":"192.0.2.0/24"}]}`, both[:1], time.Time{}, "10 of 11 entries are invalid"},
		{"byte order mark", "\xef\xbb\xbf {\"prefixes\":[{\"ipv4Prefix\":\"192.0.2.0/24\"}]}", both[:1], time.Time{}, ""},
		{"in a page", `<!DOCTYPE html><html><script>var a = {b: 1};</script><body><p>{curly}<pre><code>{"creationTime": "2026-11-03T00:00:00Z", "prefixes": [{"ipv4Prefix": "192.0.2.0/24"}, {"ipv6Prefix": "2001:db8::/32"}]}</code></pre>`, both, day, "it is embedded in a web page"},
		{"in a page, escaped and colored", `<html><code>{&quot;creationTime&quot;:&quot;2026-11-03&quot;,<br/><span>&quot;Prefixes&quot;</span>:[{&quot;ipv4Prefix&quot;:&quot;192.0.2.0/24&quot;},{&quot;ipv6Prefix&quot;:&quot;2001:db8::/32&quot;}]}</code>`, both, day, "it is embedded in a web page"},
		{"geofeed", "# RFC 8805\n192.0.2.0/24,IE,IE-D,Dublin,\n2001:db8::/32,US,,,\n", both, time.Time{}, ""},
		{"plain lines", "192.0.2.0/24\r\n\r\n2001:db8::/32 # v6\r\n", both, time.Time{}, ""},
		{"one malformed line", "192.0.2.0/24\n2001:db8::/32\n192.0.2.256\n", both, time.Time{}, "1 of 3 entries are invalid"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got, err := parseList([]byte(tt.text))
			if err != nil || !slices.Equal(prefixStrings(got.prefixes), tt.want) || !got.created.Equal(tt.created) || got.problem != tt.problem {
				t.Errorf("got %+v, %v", got, err)
			}
		})
	}
}

func TestParseListErrors(t *testing.T) {
	var many strings.Builder
	for i := range maxPrefixes + 1 {
		fmt.Fprintf(&many, "%d.%d.%d.1\n", 11+i>>16, i>>8&255, i&255)
	}
	for _, tt := range []struct{ name, text, want string }{
		{"empty", " \n", "is empty"},
		{"no JSON", `{"prefixes": [`, "not valid JSON"},
		{"JSON of another category", `{"prefixes": "none"}`, "not valid JSON"},
		{"no prefixes", `{"prefixes": []}`, "no usable prefix"},
		{"none usable", `{"prefixes": [{"ipv4Prefix": "10.0.0.0/8"}]}`, "no usable prefix"},
		{"an error page", `<html><body>Sorry</body></html>`, "a web page without an address list"},
		{"a page that mentions prefixes", `<html>"prefixes" {"prefixes": []}</html>`, "a web page without an address list"},
		{"words", "Access denied", "no usable prefix"},
		{"words around an address", "Access denied\nYour address is\n192.0.2.1", "not an address list"},
		{"too long", strings.Repeat(" ", maxListBytes+1), "larger than"},
		{"too many", many.String(), "more than 100000 prefixes"},
	} {
		if got, err := parseList([]byte(tt.text)); err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s: got %d prefixes, %v", tt.name, len(got.prefixes), err)
		}
	}
}

// FuzzParseList checks that accepted prefixes are public and not too wide, and that the set made from them contains
// them.
func FuzzParseList(f *testing.F) {
	f.Add([]byte(`{"creationTime":"2026-11-03T00:00:00Z","prefixes":[{"ipv4Prefix":"192.0.2.0/24"},{"ipv6Prefix":"2001:db8::/32"}]}`))
	f.Add([]byte(`<p>{"prefixes":[{"ipv4Prefix":"192.0.2.0/24"}]}`))
	f.Add([]byte("192.0.2.0/24,IE\n2001:db8::1"))
	f.Fuzz(func(t *testing.T, data []byte) {
		p, err := parseList(data)
		if err != nil {
			return
		}
		prefixes := p.prefixes
		set := newList("", prefixes, time.Time{}).prefixes
		if len(prefixes) == 0 || set.Size() == 0 || set.Size() > len(prefixes) {
			t.Fatalf("%d prefixes, %d in the set", len(prefixes), set.Size())
		}
		for _, p := range prefixes {
			if !isPublic(p.Addr()) || p.Bits() < minBits4 || p.Addr().Is6() && p.Bits() < minBits6 {
				t.Errorf("%s was accepted", p)
			}
			if !set.Contains(p.Addr()) || !set.LookupPrefix(p) {
				t.Errorf("%s is not in its set", p)
			}
		}
	})
}
