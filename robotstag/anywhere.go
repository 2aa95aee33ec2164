// SPDX-License-Identifier: Apache-2.0

package robotstag

import (
	"slices"
	"time"

	"github.com/robotspolicy/caddy-robots-policy/policy"
	"github.com/robotspolicy/caddy-robots-policy/rights"
	"github.com/robotspolicy/caddy-robots-policy/robotsrule"
)

// Anywhere returns what rules say about at least one path, as if each of their entries applied to every path. all
// are the strictest robots control rules, and disallowed the preferences that disallow. until is the time when a
// date next changes them, or zero.
func Anywhere(publish *policy.Publish, rules []*policy.Rule, now time.Time) (all robotsrule.Set, disallowed rights.Verdicts, until time.Time) {
	for _, r := range rules {
		for i := range r.Statements {
			said, change := addAnywhere(&disallowed, publish, &r.Statements[i], now)
			all, until = all.Union(said), earlier(until, change)
		}
		for _, e := range r.EngineRules {
			if at, ok := e.Rule.UnavailableAfter(); ok && at.Add(time.Second).After(now) {
				until = earlier(until, at.Add(time.Second))
			}
			all = all.Union(e.Rule.Expired(now))
		}
	}
	return all, disallowed, until
}

// ControlAnywhere returns the rules of a crawler's Control if rules disallow enough on at least one path, as if
// each of their entries applied to every path.
func ControlAnywhere(p *policy.Policy, id policy.CrawlerID, rules []*policy.Rule, now time.Time) robotsrule.Set {
	disallows := func(u policy.Usage) bool {
		return slices.ContainsFunc(rules, func(r *policy.Rule) bool {
			return slices.ContainsFunc(r.Statements, func(s policy.Statement) bool {
				return s.Usage.Covers(u) && (!s.Allow || s.Qualifiers != nil && s.Qualifiers.TimeLimit.Passed(now))
			})
		})
	}
	return p.ControlWhere(id, disallows)
}

// addAnywhere adds the usage that a statement disallows to v, and returns the robots control rules for it.
func addAnywhere(v *rights.Verdicts, publish *policy.Publish, s *policy.Statement, now time.Time) (rules robotsrule.Set, until time.Time) {
	var limit policy.TimeLimit
	if s.Qualifiers != nil {
		limit = s.Qualifiers.TimeLimit
	}
	disallows := !s.Allow || limit.Passed(now)
	if !disallows && limit.Kind == policy.UntilDate {
		until = limit.Last.Add(time.Second)
	}
	preferences := policy.RightsUsages()
	for _, usage := range policy.Usages() {
		switch {
		case !s.Usage.Covers(usage):
		case disallows:
			text, _ := spellingOf(publish, usage)
			rules = rules.Union(text)
			if i := slices.Index(preferences[:], usage); i >= 0 {
				v[i] = policy.Disallowed
			}
		case s.Qualifiers != nil:
			rules = rules.Union(spellLimits(usage, s.Qualifiers))
		}
	}
	return rules, until
}
