// SPDX-License-Identifier: Apache-2.0

package robotsserve

import (
	"slices"

	"github.com/robotspolicy/caddy-robots-policy/pathpattern"
	"github.com/robotspolicy/caddy-robots-policy/policy/solve"
)

// active lists the patterns whose statements can change a decision for the crawlers of one group. The other patterns in
// m.given do not need a line. A disallow statement is called standing if no allow statement for all of its paths
// overrides it. A standing statement can change a decision, unless a wider standing statement has the same effect (see
// repeats). An allow statement can change a decision if it overrides a standing statement.
func (m *lining) active() []pathpattern.Pattern {
	standing := map[pathpattern.Pattern][]stated{}
	var closing, opening solve.Set // the patterns of standing prohibitions, and of permissions
	for i, p := range m.given {
		if slices.ContainsFunc(m.all[p], func(s stated) bool { return s.Allow }) {
			opening.Add(p, i)
		}
		if !slices.ContainsFunc(m.all[p], func(s stated) bool { return !s.Allow }) {
			continue
		}
		permissions := m.permissions(p)
		m.budget.Spend(len(permissions))
		for _, s := range m.all[p] {
			if !s.Allow && !m.opened(s, permissions) {
				standing[p] = append(standing[p], s)
			}
		}
		if standing[p] != nil {
			closing.Add(p, i)
		}
	}
	changes := func(s stated, p pathpattern.Pattern) bool {
		if m.budget.Exceeded() {
			return true
		}
		if s.Allow {
			overlapping := closing.Overlapping(p)
			return !m.budget.Spend(len(overlapping)) || slices.ContainsFunc(overlapping, func(i int) bool {
				return slices.ContainsFunc(standing[m.given[i]], func(d stated) bool { return m.p.Overrides(s.applied, d.applied) })
			})
		}
		return slices.Contains(standing[p], s) && !m.repeats(s, p, &closing, &opening, standing)
	}
	return slices.DeleteFunc(slices.Clone(m.given), func(p pathpattern.Pattern) bool {
		return !slices.ContainsFunc(m.all[p], func(s stated) bool { return changes(s, p) })
	})
}

// repeats looks for a wider disallow statement that makes the disallow statement s unnecessary for the paths of p. The
// wider statement must have the same effect for all readers. Each allow statement that overrides the wider statement
// must also override s.
func (m *lining) repeats(s stated, p pathpattern.Pattern, closing, opening *solve.Set, standing map[pathpattern.Pattern][]stated) bool {
	texts := pathpattern.Spell(p, s.rooted(p))
	usual := texts.Octets == 0 && texts.Written == texts.Normal
	weaker, known := []stated(nil), false // the permissions that overlap p and do not override s
	return slices.ContainsFunc(closing.Covering(p), func(i int) bool {
		return m.given[i] != p && slices.ContainsFunc(standing[m.given[i]], func(wider stated) bool {
			understood := wider.Pattern.IsAll() || usual && (wider.Pattern.IsPlain() || !p.IsPlain()) // see line.replaces
			if !understood || !s.isBelow() && wider.isBelow() {
				return false
			}
			if !known {
				known, weaker = true, m.weaker(s, opening.Overlapping(p))
			}
			return m.budget.Spend(len(weaker)) && !slices.ContainsFunc(weaker, func(a stated) bool { return m.p.Overrides(a.applied, wider.applied) })
		})
	})
}

// weaker returns the allow statements that do not override the disallow statement s, the longest first. It selects them
// from the patterns of m.given whose indexes are in permissions. If the budget of the file is used up, it returns
// none.
func (m *lining) weaker(s stated, permissions []int) (all []stated) {
	if !m.budget.Spend(len(permissions)) {
		return nil
	}
	for _, i := range permissions {
		for _, a := range m.all[m.given[i]] {
			if a.Allow && !m.p.Overrides(a.applied, s.applied) {
				all = append(all, a)
			}
		}
	}
	return longestFirst(all)
}
