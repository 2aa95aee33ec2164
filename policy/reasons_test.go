// SPDX-License-Identifier: Apache-2.0

package policy_test

import (
	"testing"
	"time"

	"github.com/robotspolicy/caddy-robots-policy/pathpattern"
	"github.com/robotspolicy/caddy-robots-policy/policy"
	"github.com/robotspolicy/caddy-robots-policy/robotsrule"
)

// A decision is valid until the first of the permissions in force ends.
func TestDecisionHoldsUntilThePermissionThatEndsFirst(t *testing.T) {
	day := func(n int) time.Time { return time.Date(2030, 1, n, 23, 59, 59, 0, time.UTC) }
	var r policy.Rule
	r.For = []policy.Audience{{}}
	for _, n := range []int{9, 5, 7} {
		r.Statements = append(r.Statements, policy.Statement{
			Usage: policy.Index, Allow: true, Pattern: pathpattern.All,
			Qualifiers: &policy.Qualifiers{TimeLimit: policy.TimeLimit{Kind: policy.UntilDate, Last: day(n)}},
		})
	}
	p := policy.Compile(&policy.Spec{Rules: []policy.Rule{r}})
	for _, c := range []struct{ now, until int }{{1, 5}, {6, 7}, {8, 9}} {
		q := policy.Query{Path: "/x", Usage: policy.Index, Now: day(c.now)}
		want := day(c.until).Add(time.Second)
		if got := p.Decide(q).Until; !got.Equal(want) {
			t.Errorf("on the %d.: until %v, want %v", c.now, got, want)
		}
	}
}

// A search engine's own rule (max-snippet) for a longer path overrides its rule for a shorter path.
func TestEngineRuleOfTheLongerPath(t *testing.T) {
	rule := func(path, text string) policy.EngineRule {
		return policy.EngineRule{Name: "max-snippet", Pattern: pathpattern.MustParse(path), Rule: robotsrule.Parse(text)}
	}
	p := policy.Compile(&policy.Spec{Rules: []policy.Rule{{
		For:         []policy.Audience{{}},
		EngineRules: []policy.EngineRule{rule("/news/", "max-snippet:10"), rule("/news/free/", "max-snippet:200")},
	}}})
	for path, want := range map[string]string{"/news/free/x": "max-snippet:200", "/news/x": "max-snippet:10", "/x": ""} {
		if got, _, _ := p.EngineRule(policy.Query{Path: path}, "max-snippet"); !got.Equal(robotsrule.Parse(want)) {
			t.Errorf("%s: %v, want %s", path, got, want)
		}
	}
}
