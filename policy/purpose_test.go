// SPDX-License-Identifier: Apache-2.0

package policy_test

import (
	"testing"

	"github.com/robotspolicy/caddy-robots-policy/pathpattern"
	"github.com/robotspolicy/caddy-robots-policy/policy"
)

// The pattern of a usage purpose must match the complete name of a purpose, not only its beginning. So a "$" at the end
// of the pattern makes no difference.
func TestUsagePurposes(t *testing.T) {
	for pattern, want := range map[string]map[string]bool{
		"news":    {"news": true, "newsletter": false, "old-news": false},
		"news$":   {"news": true, "newsletter": false},
		"news*":   {"news": true, "newsletter": true, "old-news": false},
		"*news":   {"old-news": true, "newsletter": false},
		"*-news$": {"old-news": true, "old-newsletter": false},
		"n*w*s":   {"news": true, "nows": true, "newsx": false, "ns": false},
	} {
		p := policy.Compile(&policy.Spec{Rules: []policy.Rule{{
			For: []policy.Audience{{}}, UsagePurposes: []string{pattern},
			Statements: []policy.Statement{{Usage: policy.Crawl, Pattern: pathpattern.All}},
		}}})
		for purpose, closed := range want {
			if d := p.Decide(policy.Query{Path: "/x", Purposes: []string{purpose}}); (d.Verdict == policy.Disallowed) != closed {
				t.Errorf("%s, %s: %v", pattern, purpose, d.Verdict)
			}
		}
	}
}
