// SPDX-License-Identifier: Apache-2.0

package policy_test

import (
	"strings"
	"testing"

	"github.com/robotspolicy/caddy-robots-policy/policy"
)

// If several permissions apply, their qualifiers are combined. For each kind of qualifier, the stricter one applies.
func TestQualifiersUnite(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ name, rules, crawler, path, usage, want string }{
		{"one", "everyone: +present-snippet / max-length=200-chars", "", "/a", "present-snippet", "max-length=200-chars"},
		{"a narrower audience sets it aside", "everyone: +present-snippet / max-length=200-chars\nBetaBot: +present-snippet /", "BetaBot", "/a", "present-snippet", ""},
		{"a longer path sets it aside", "everyone: +present-snippet / max-length=200-chars; +present-snippet /a max-length=300-chars", "", "/a", "present-snippet", "max-length=300-chars"},
		{"the usage itself sets present aside", "everyone: +present / prohibited-modification=format; +present-snippet / max-length=9-words", "", "/a", "present-snippet", "max-length=9-words"},
		{"a wider path does not", "everyone: +present-snippet /a max-length=200-chars\nBetaBot: +present-snippet / max-length=300-chars", "BetaBot", "/a", "present-snippet", "max-length=200-chars"},
		{"nor everyone-else by exception", "everyone-else: +present-snippet /a max-length=200-chars\nBetaBot: +present-snippet /", "BetaBot", "/a", "present-snippet", "max-length=200-chars"},
		{"two groups: the shorter", "category:search: +present-snippet / max-length=200-chars\noperator:Alpha: +present-snippet / max-length=30-chars", "AlphaBot", "/a", "present-snippet", "max-length=30-chars"},
		{"of each unit", "category:search: +present-snippet / max-length=200-chars\noperator:Alpha: +present-snippet / max-length=30-words", "AlphaBot", "/a", "present-snippet", "max-length=200-chars max-length=30-words"},
		{"the earlier date", "category:search: +index / time-limit=until-2027-01-01\noperator:Alpha: +index / time-limit=until-2026-12-01", "AlphaBot", "/a", "index", "time-limit=until-2026-12-01"},
		{"a date and days", "category:search: +index / time-limit=until-2027-01-01\noperator:Alpha: +index / time-limit=9-days", "AlphaBot", "/a", "index", "time-limit=9-days time-limit=until-2027-01-01"},
		{"both resources", "category:search: +present-link / must-include-resource=/a\noperator:Alpha: +present-link / must-include-resource=/b", "AlphaBot", "/a", "present-link", "must-include-resource=/a must-include-resource=/b"},
		{"any modification covers all", "category:search: +present-original / prohibited-modification=format\noperator:Alpha: +present-original / prohibited-modification=any", "AlphaBot", "/a", "present-original", "prohibited-modification=any"},
		{"of equal length", "everyone: +index /a time-limit=3-days\neveryone: +index /a time-limit=2-days", "", "/a", "index", "time-limit=2-days"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			p := compile(t, spec(t, c.rules))
			u, _ := policy.ParseUsage(c.usage)
			d := p.Decide(policy.Query{Crawler: p.Crawler(c.crawler), Path: c.path, Usage: u})
			if got := strings.Join(d.Qualifiers().Strings(), " "); d.Verdict != policy.Allowed || got != c.want {
				t.Errorf("%v with %q, want %q", d.Verdict, got, c.want)
			}
		})
	}
}
