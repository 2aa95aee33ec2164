// SPDX-License-Identifier: Apache-2.0

package policy_test

import (
	"strings"
	"testing"

	"github.com/robotspolicy/caddy-robots-policy/policy"
)

func TestParseHost(t *testing.T) {
	for in, want := range map[string]policy.Host{
		"www.example.com": "www.example.com", "WWW.Example.com": "www.example.com", "www.example.com.": "www.example.com",
		"*.example.com": "*.example.com", "b\u00fccher.example": "xn--bcher-kva.example", "localhost": "localhost", "192.0.2.1": "192.0.2.1",
		"_dmarc.example.com": "_dmarc.example.com", "a_b.example": "a_b.example", "xn--bcher-kva.example": "xn--bcher-kva.example", "*.b\u00fccher.example": "*.xn--bcher-kva.example",
		"[2001:DB8::1]": "[2001:db8::1]", "[2001:db8:0::0:1]": "[2001:db8::1]",
	} {
		got, err := policy.ParseHost(in)
		if err != nil || got != want {
			t.Errorf("%q: %q, %v; want %q", in, got, err, want)
			continue
		}
		if again, err := policy.ParseHost(string(got)); err != nil || again != got {
			t.Errorf("%q is read as %q, and that as %q, %v", in, got, again, err)
		}
	}
	for _, in := range []string{
		"", "*", "*.", ".", "a..b", "a b", "https://a", "a/b", "user@a", "*.*.a", "a.*", "[", "[::", "[]", "[x]", "[::1", "2001:db8::1", "*.[::1]", "[192.0.2.1]", "a:80:90",
		"z\u00fcrcher_blatt.ch", "-foo.de", "foo-.de", "*.-foo.de", "b\u00fccher-.example", "example.com:abc", "example.com:", "example.com:80a", "[::1]:x", "www.example.com:8443", "*.b\u00fccher.example:443", "192.0.2.1:80", "[2001:db8::1]:8443",
		"a..", "[a.example]", "a.example]", "[[::1]]", "[::1]80", strings.Repeat("a", 64), strings.Repeat("a.", 127) + "a",
	} {
		if got, err := policy.ParseHost(in); err == nil {
			t.Errorf("%q is taken for the host %q", in, got)
		}
	}
}
