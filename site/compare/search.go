// SPDX-License-Identifier: Apache-2.0

package compare

// This file finds the regions in which the two policies differ, see solve.Budget.Search.

import (
	"slices"

	"github.com/robotspolicy/caddy-robots-policy/pathpattern"
	"github.com/robotspolicy/caddy-robots-policy/policy"
)

func (s *side) patterns(ids []int) []pathpattern.Pattern {
	all := make([]pathpattern.Pattern, len(ids))
	for i, id := range ids {
		all[i] = s.statements[id].Statement.Pattern
	}
	return all
}

// closed finds where x has a prohibition of at least a mode that stands, and y has none.
func (c *comparison) closed(x, y *side, least policy.Mode) (all []pathpattern.Pattern) {
	for d := range x.statements {
		st := &x.statements[d]
		if !st.prohibits || st.mode < least {
			continue
		}
		undone := x.undoing(d, &c.budget)
		all = append(all, c.budget.Search([]pathpattern.Pattern{st.Statement.Pattern}, func(r pathpattern.Pattern) (bool, []pathpattern.Pattern) {
			if slices.ContainsFunc(x.covering(r), func(a int) bool { return slices.Contains(undone, a) }) {
				return false, nil
			}
			by, stands := y.standing(r, least)
			if !stands {
				return true, nil
			}
			return false, y.patterns(y.undoing(by, &c.budget))
		})...)
	}
	return all
}

// stated finds where x allows and y says nothing.
func (c *comparison) stated(x, y *side) []pathpattern.Pattern {
	var start []pathpattern.Pattern
	for i := range x.statements {
		if !x.statements[i].prohibits {
			start = append(start, x.statements[i].Statement.Pattern)
		}
	}
	return c.budget.Search(start, func(r pathpattern.Pattern) (bool, []pathpattern.Pattern) {
		if len(y.covering(r)) > 0 {
			return false, nil
		}
		if by, stands := x.standing(r, policy.ModeUnset); stands {
			return false, x.patterns(x.undoing(by, &c.budget))
		}
		return true, nil
	})
}

// limited finds where both allow, with other limits.
func (c *comparison) limited(x, y *side) []pathpattern.Pattern {
	var start, matter []pathpattern.Pattern
	for _, s := range []*side{x, y} {
		for i := range s.statements {
			st := &s.statements[i]
			if st.prohibits {
				continue
			}
			matter = append(matter, st.Statement.Pattern)
			if st.Statement.Qualifiers != nil {
				start = append(start, st.Statement.Pattern)
			}
		}
	}
	matter = union(matter, nil)
	return c.budget.Search(start, func(r pathpattern.Pattern) (bool, []pathpattern.Pattern) {
		for _, s := range []*side{x, y} {
			if by, stands := s.standing(r, policy.ModeUnset); stands {
				return false, s.patterns(s.undoing(by, &c.budget))
			}
		}
		if a, b := x.state(r), y.state(r); a.verdict == b.verdict && a.limits != b.limits {
			return true, nil
		}
		return false, slices.DeleteFunc(slices.Clone(matter), func(p pathpattern.Pattern) bool { return p.Covers(r) })
	})
}
