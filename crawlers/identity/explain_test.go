// SPDX-License-Identifier: Apache-2.0

package identity

import (
	"net/netip"
	"strings"
	"testing"

	"github.com/robotspolicy/caddy-robots-policy/policy"
	"github.com/robotspolicy/caddy-robots-policy/site"
)

// ExplainEmbedded uses only the embedded lists. A client is never an impostor if a list is too old, or if DNS was not
// checked.
func TestExplainEmbedded(t *testing.T) {
	s, ds := site.Load("policy.yaml", []byte("version: 1\ncrawlers:\n  NewBot: {category: search, address-lists: \"https://new.example/list.json\"}\n"+
		"rules:\n  - for: everyone\n    disallow:\n      crawl: /x/\n"))
	if s == nil {
		t.Fatal(ds)
	}
	urls := s.File.Catalog.AddressLists()
	for _, c := range []struct {
		token, addr string
		want        policy.Identity
		says        string
	}{
		{"Googlebot", "66.249.66.1", policy.Verified, "66.249.66.1 is on the list https://developers.google.com/"},
		{"Googlebot", "::ffff:66.249.66.1", policy.Verified, "is on the list"},
		{"Googlebot", "20.0.0.1", policy.Unknown, "reverse DNS was not checked"},
		{"ClaudeBot", "20.0.0.1", policy.Unknown, "too old to prove that the client is an impostor"},
		{"ClaudeBot", "10.0.0.1", policy.Unknown, "is not on https://claude.com/"},
		{"NewBot", "20.0.0.1", policy.Unknown, "which is not available here"},
		{"Bytespider", "20.0.0.1", policy.Unknown, "does not publish anything that lets this server verify 20.0.0.1"},
	} {
		got, evidence := ExplainEmbedded(urls, netip.MustParseAddr(c.addr))(s.Verification(s.Policy.Crawler(c.token)))
		if got != c.want || !strings.Contains(evidence, c.says) {
			t.Errorf("%s from %s: %s, %s", c.token, c.addr, got, evidence)
		}
	}
}
