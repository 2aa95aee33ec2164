// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"math/rand/v2"
	"net"
	"strings"
	"testing"
)

func TestNormalizeHost(t *testing.T) {
	for in, want := range map[string]string{
		"":                               "",
		"www.example.com":                "www.example.com",
		"WWW.Example.com:8080":           "www.example.com",
		"www.example.com.":               "www.example.com",
		"www.example.com...:80":          "www.example.com",
		"www.example.com:80:80":          "www.example.com",
		"www.example.com:":               "www.example.com",
		"[www.example.com]":              "www.example.com",
		"[www.example.com":               "www.example.com",
		"www.example.com]":               "www.example.com",
		"[[www.example.com.]]:80":        "www.example.com",
		"b\u00fccher.example":            "xn--bcher-kva.example",
		"b\u00fccher\u3002example\u3002": "xn--bcher-kva.example",
		"\u017fhop.example":              "shop.example",
		"[2001:DB8:0::1]:80":             "[2001:db8::1]",
		"2001:db8::1":                    "[2001:db8::1]",
		"[192.0.2.1]:80":                 "192.0.2.1",
		":80":                            "",
	} {
		if got := NormalizeHost(in); got != want {
			t.Errorf("%q: %q, want %q", in, got, want)
		}
	}
}

func TestOtherHost(t *testing.T) {
	for in, want := range map[string]string{
		"www.example.com": "", "WWW.Example.com:8080": "", "[www.example.com]": "", "[www.example.com]:80": "", "[2001:db8::1]:80": "", "2001:db8::1": "", "": "", ":80": "",
		"[www.example.com": "", "a_b.example": "", "\u017fhop.example": "",
		"www.example.com.": "www.example.com", "www.example.com:80:80": "www.example.com", "[[www.example.com]]": "www.example.com", "[www.example.com].": "www.example.com",
		"[2001:db8:0::1]": "[2001:db8::1]", "b\u00fccher.example": "xn--bcher-kva.example", "a:1:2.example.com": "a",
	} {
		if got, ok := OtherHost(in); got != want || ok != (want != "") {
			t.Errorf("%q: %q %v, want %q", in, got, ok, want)
		}
	}
	for _, host := range []string{"www.example.com", "WWW.Example.com:8080", "[www.example.com]:80", ""} {
		if n := testing.AllocsPerRun(100, func() { OtherHost(host) }); n > 0 {
			t.Errorf("%q: %v allocations", host, n)
		}
	}
}

// caddysHost returns the host that modules/caddyhttp/matchers.go of Caddy 2.11.9 compares.
func caddysHost(host string) string {
	name, _, err := net.SplitHostPort(host)
	if err != nil {
		name = strings.TrimSuffix(strings.TrimPrefix(host, "["), "]")
	}
	return name
}

func FuzzHost(f *testing.F) {
	for _, host := range []string{"www.example.com:80", "[::1]:80", "[www.example.com].:", "a:1:2.example.com", "\u017f\u212a.example", strings.Repeat("x", 600) + ".example.com"} {
		f.Add(host)
	}
	hosts := &hostIndex{}
	for _, h := range []Host{"www.example.com", "*.example.com", "sk.example", "[::1]"} {
		hosts.intern(h)
	}
	hosts.link([][]int32{{1}, {2}, {3}, {4}}) // one rule for each host
	f.Fuzz(func(t *testing.T, host string) {
		want := caddysHost(host)
		if got := matchedHost(host); got != want {
			t.Fatalf("Caddy takes %q for %q, and not for %q", host, want, got)
		}
		name := NormalizeHost(host)
		if again := NormalizeHost(name); again != name {
			t.Fatalf("%q is %q, which is %q", host, name, again)
		}
		if other, ok := OtherHost(host); ok && other != name || !ok && !strings.EqualFold(strings.Trim(name, "[]"), want) {
			t.Fatalf("%q may also be %q (%v): to Caddy it is %q, and its name %q", host, other, ok, want, name)
		}
		exact, wildcards := false, 0
		for _, id := range hosts.class(host).hosts {
			switch rank := hosts.rank(id); {
			case rank == exactRank:
				exact = true
			case rank > 0:
				wildcards++
			}
		}
		switch {
		case strings.EqualFold(want, "www.example.com"), strings.EqualFold(want, "sk.example"), want == "::1":
			if !exact {
				t.Fatalf("%q has no rules of its own", host)
			}
		case exact:
			t.Fatalf("%q has the rules of another", host)
		case (wildcards > 0) != (len(want) > 11 && strings.EqualFold(want[len(want)-12:], ".example.com")):
			t.Fatalf("%q: %d wildcards", host, wildcards)
		}
		if h, err := ParseHost(host); err == nil && !h.Wildcard() {
			if again, err := ParseHost(string(h)); again != h || err != nil || NormalizeHost(host) != string(h) {
				t.Fatalf("%q is the host %q, which is %q, %v", host, h, again, err)
			}
		}
	})
}

func TestHostsAreReadAsCaddyReadsThem(t *testing.T) {
	r := rand.New(rand.NewPCG(11, 12))
	for range 200_000 {
		var b strings.Builder
		for range r.IntN(9) {
			b.WriteString([]string{"a", ".", ":", "[", "]", "80", "B", "\u017f", "::1"}[r.IntN(9)])
		}
		if got, want := matchedHost(b.String()), caddysHost(b.String()); got != want {
			t.Fatalf("Caddy takes %q for %q, and not for %q", b.String(), want, got)
		}
	}
}
