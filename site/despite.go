// SPDX-License-Identifier: Apache-2.0

package site

import (
	"fmt"

	"github.com/robotspolicy/caddy-robots-policy/policy"
)

// Despite is a permission that matches what is disallowed and does not override
// the prohibition that decides.
type Despite struct {
	Reason
	Why string `json:"why"`
}

const maxDespite = 3

// despite lists the permissions that fail to open what is disallowed, the
// narrowest first, with what keeps each from overriding the narrowest prohibition
// that stands.
func (s *Site) despite(p *policy.Policy, q policy.Query) (all []Despite) {
	r := p.Reasons(q)
	if len(r.Standing) == 0 {
		return nil
	}
	d := &r.Standing[0]
	for i := range r.Permissions {
		a := &r.Permissions[i]
		why := obstacle(p, a, d)
		if why == "" || len(all) == maxDespite {
			continue
		}
		all = append(all, Despite{s.reason(policy.Decision{Verdict: policy.Allowed, Rule: a.Rule, Statement: a.Statement}), why})
	}
	return all
}

// obstacle says in words why a permission does not override a prohibition.
func obstacle(p *policy.Policy, a, d *policy.Applied) string {
	switch p.Obstacle(a, d) {
	case policy.WiderHost:
		return "line " + line(d) + " is for fewer hosts"
	case policy.WiderUsage:
		return fmt.Sprintf("line %s is about %s itself", line(d), d.Statement.Usage)
	case policy.WiderAudience:
		return fmt.Sprintf("line %s is for fewer crawlers (%s)", line(d), d.AudienceName())
	case policy.OtherGroup:
		return fmt.Sprintf("of %s and %s neither is narrower than the other", a.AudienceName(), d.AudienceName())
	case policy.ElseOnly:
		return "a rule for everyone-else opens nothing that is closed to everyone"
	case policy.Shorter:
		return fmt.Sprintf("the pattern of line %s is longer", line(d))
	case policy.NotWithin:
		return fmt.Sprintf("%s also covers paths outside %s", a.Statement.Pattern, d.Statement.Pattern)
	case policy.NotCompared:
		return "the policy has too many patterns with * or $ to compare these two"
	case policy.NoObstacle:
	}
	return ""
}

func line(a *policy.Applied) string { return fmt.Sprint(a.Statement.Pos.Line) }
