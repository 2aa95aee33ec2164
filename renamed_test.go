// SPDX-License-Identifier: Apache-2.0

package robotspolicy

import (
	"strings"
	"testing"

	"github.com/caddyserver/caddy/v2/caddyconfig/caddyfile"
)

// Options of a Caddyfile that testers know under an earlier name are named with the present one.
func TestEarlierOptions(t *testing.T) {
	for text, want := range map[string]string{
		"robots_policy p.yaml {\n refuse error\n}": `it is now called "block_with"`,
		"crawler GPTBot claimed":                   `delete the word`,
		"crawler unknown":                          `it is now called "unlisted"`,
	} {
		var target caddyfile.Unmarshaler = new(MatchCrawler)
		if strings.HasPrefix(text, "robots_policy") {
			target = new(Handler)
		}
		err := target.UnmarshalCaddyfile(caddyfile.NewTestDispenser(text))
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %s", text, err, want)
		}
	}
}

// A crawler may have the name of an earlier option: "node" is in the User-Agent of Node's fetch.
func TestEarlierOptionsAreNamesOfCrawlers(t *testing.T) {
	for _, name := range []string{"node", "refuse", "clickhouse"} {
		m := new(MatchCrawler)
		if err := m.UnmarshalCaddyfile(caddyfile.NewTestDispenser("crawler " + name)); err != nil || len(m.Crawlers) != 1 || m.Crawlers[0] != name {
			t.Errorf("%s: %v %v", name, err, m.Crawlers)
		}
	}
}
