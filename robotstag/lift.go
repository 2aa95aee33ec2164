// SPDX-License-Identifier: Apache-2.0

package robotstag

import (
	"iter"
	"slices"
	"time"

	"github.com/robotspolicy/caddy-robots-policy/policy"
	"github.com/robotspolicy/caddy-robots-policy/robotsrule"
)

// liftable is a usage that a site can restrict in its own headers and meta tags. An allow entry of the policy can
// remove this restriction. The field rules names the robots control rules that it removes.
type liftable struct {
	usage policy.Usage
	lift  robotsrule.Lift
	rules string
}

var lifts = []liftable{
	{policy.Index, robotsrule.LiftIndex, "noindex and unavailable_after"},
	{policy.PresentSnippet, robotsrule.LiftSnippet, "nosnippet and max-snippet"},
}

// Lifts yields the usages whose restrictions lift removes, each with the names of the removed robots control rules.
func Lifts(lift robotsrule.Lift) iter.Seq2[policy.Usage, string] {
	return func(yield func(policy.Usage, string) bool) {
		for _, l := range lifts {
			if lift&l.lift != 0 && !yield(l.usage, l.rules) {
				return
			}
		}
	}
}

// CanLift reports whether an allow entry for the usage u can remove a restriction that the site itself states.
func CanLift(u policy.Usage) bool {
	return slices.ContainsFunc(lifts, func(l liftable) bool { return l.usage == u })
}

// Lift returns the restrictions that the policy removes from a page's own headers and meta tags. The policy removes the
// restriction of a usage if an allow entry with the key "over-site" decides about this usage. until is the time when
// the result may change, or zero. The usage of q is ignored.
func Lift(p *policy.Policy, q policy.Query) (lift robotsrule.Lift, until time.Time) {
	if q.AnyPath {
		return 0, until
	}
	for _, l := range lifts {
		q.Usage = l.usage
		d := p.Decide(q)
		until = Earlier(until, d.Until)
		if d.Verdict == policy.Allowed && d.Statement.OverSite {
			lift |= l.lift
		}
	}
	return lift, until
}
