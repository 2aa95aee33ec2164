// SPDX-License-Identifier: Apache-2.0

package robotstag

import (
	"iter"
	"time"

	"github.com/robotspolicy/caddy-robots-policy/policy"
	"github.com/robotspolicy/caddy-robots-policy/robotsrule"
)

// lifts are the usages whose allow entries can lift a site's own restriction.
var lifts = []struct {
	usage policy.Usage
	lift  robotsrule.Lift
	rules string
}{
	{policy.Index, robotsrule.LiftIndex, "noindex and unavailable_after"},
	{policy.PresentSnippet, robotsrule.LiftSnippet, "nosnippet and max-snippet"},
}

// Lifts yields the usages of what is lifted, each with the rules.
func Lifts(lift robotsrule.Lift) iter.Seq2[policy.Usage, string] {
	return func(yield func(policy.Usage, string) bool) {
		for _, l := range lifts {
			if lift&l.lift != 0 && !yield(l.usage, l.rules) {
				return
			}
		}
	}
}

// CanLift reports whether an allow entry about a usage can lift a site's own restriction.
func CanLift(u policy.Usage) bool {
	for usage := range Lifts(^robotsrule.Lift(0)) {
		if usage == u {
			return true
		}
	}
	return false
}

// Lift returns what the policy lifts from the page of a query, and when that may change: each restriction whose usage an
// allow entry with over-site decides. It ignores the usage of the query.
func Lift(p *policy.Policy, q policy.Query) (lift robotsrule.Lift, until time.Time) {
	for _, l := range lifts {
		q.Usage = l.usage
		d := p.Decide(q)
		until = earlier(until, d.Until)
		if d.Verdict == policy.Allowed && d.Statement.OverSite {
			lift |= l.lift
		}
	}
	return lift, until
}
