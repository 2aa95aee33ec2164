// SPDX-License-Identifier: Apache-2.0

package robotspolicy

import (
	"net/netip"
	"strings"
	"testing"

	"github.com/robotspolicy/caddy-robots-policy/policy"
	"github.com/robotspolicy/caddy-robots-policy/robotsserve"
	"github.com/robotspolicy/caddy-robots-policy/site"
)

// What explain says of an address comes from the lists in the program, and never
// accuses by what is old or not asked.
func TestVerifyByEmbedded(t *testing.T) {
	s, ds := site.Load("policy.yaml", []byte("version: 1\ncrawlers:\n  NewBot: {kind: search, address-lists: \"https://new.example/list.json\"}\n"+
		"rules:\n  - for: everyone\n    disallow:\n      crawl: /x/\n"), robotsserve.ServeOptions{})
	if s == nil {
		t.Fatal(ds)
	}
	for _, c := range []struct {
		token, addr string
		want        policy.Identity
		says        string
	}{
		{"Googlebot", "66.249.66.1", policy.Verified, "66.249.66.1 is on the list https://developers.google.com/"},
		{"Googlebot", "::ffff:66.249.66.1", policy.Verified, "is on the list"},
		{"Googlebot", "20.0.0.1", policy.Unknown, "its name was not asked for (reverse DNS)"},
		{"ClaudeBot", "20.0.0.1", policy.Unknown, "not up to date"},
		{"ClaudeBot", "10.0.0.1", policy.Unknown, "is not on https://claude.com/"},
		{"NewBot", "20.0.0.1", policy.Unknown, "which this program has not got"},
		{"Bytespider", "20.0.0.1", policy.Unknown, "nothing that 20.0.0.1 could be looked up in"},
	} {
		got, evidence := verifyByEmbedded(s, netip.MustParseAddr(c.addr))(s.Verification(s.Policy.Crawler(c.token)))
		if got != c.want || !strings.Contains(evidence, c.says) {
			t.Errorf("%s from %s: %s, %s", c.token, c.addr, got, evidence)
		}
	}
}
