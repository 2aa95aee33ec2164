// SPDX-License-Identifier: Apache-2.0

package compare

import (
	"slices"

	"github.com/robotspolicy/caddy-robots-policy/pathpattern"
	"github.com/robotspolicy/caddy-robots-policy/policy"
)

// maxCrossing bounds into how many patterns the paths are cut that two match.
const maxCrossing = 64

// search finds regions, each the paths of one pattern, in which something holds.
// Whether it does is asked about the region's own paths: those that match only the
// patterns that cover it.
//
// A path in which something holds that does not hold for the region around it must
// match one of few patterns. For example, a prohibition stands in all of a region but
// where a permission that overrides it matches. So no combination of patterns is
// looked at that cannot matter.
type search struct {
	c     *comparison
	seen  map[pathpattern.Pattern]bool
	found []pathpattern.Pattern
	// visit returns whether the region is one, or else the patterns one of which every
	// path of the region has to match for which it holds.
	visit func(r pathpattern.Pattern) (holds bool, within []pathpattern.Pattern)
}

func (c *comparison) search(start []pathpattern.Pattern, visit func(pathpattern.Pattern) (bool, []pathpattern.Pattern)) []pathpattern.Pattern {
	s := &search{c: c, seen: map[pathpattern.Pattern]bool{}, visit: visit}
	for _, r := range start {
		s.walk(r)
	}
	return s.found
}

func (s *search) walk(r pathpattern.Pattern) {
	for _, r := range r.Rooted() {
		r = r.Plain()
		if s.c.steps -= 8; s.c.steps < 0 || s.seen[r] {
			continue
		}
		s.seen[r] = true
		holds, within := s.visit(r)
		if holds {
			s.found = append(s.found, r)
			continue
		}
		for _, p := range within {
			if s.c.steps--; s.c.steps < 0 {
				return
			}
			if !r.Overlaps(p) {
				continue
			}
			meet, ok := pathpattern.Intersect(r, p, maxCrossing)
			s.c.gaveUp = s.c.gaveUp || !ok
			for _, m := range meet {
				s.walk(m)
			}
		}
	}
}

// patterns are those of some statements.
func (s *side) patterns(ids []int32) []pathpattern.Pattern {
	all := make([]pathpattern.Pattern, len(ids))
	for i, id := range ids {
		all[i] = s.statements[id].Statement.Pattern
	}
	return all
}

// closed finds where x has a prohibition of at least a mode that stands, and y has
// none.
func (c *comparison) closed(x, y *side, least policy.Mode) (all []pathpattern.Pattern) {
	for d := range int32(len(x.statements)) {
		st := &x.statements[d]
		if !st.prohibits || st.mode < least {
			continue
		}
		undone := x.undoing(d, &c.steps)
		all = append(all, c.search([]pathpattern.Pattern{st.Statement.Pattern}, func(r pathpattern.Pattern) (bool, []pathpattern.Pattern) {
			if slices.ContainsFunc(x.covering(r), func(a int32) bool { return slices.Contains(undone, a) }) {
				return false, nil
			}
			by, stands := y.standing(r, least)
			if !stands {
				return true, nil
			}
			return false, y.patterns(y.undoing(by, &c.steps))
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
	return c.search(start, func(r pathpattern.Pattern) (bool, []pathpattern.Pattern) {
		if len(y.covering(r)) > 0 {
			return false, nil
		}
		if by, stands := x.standing(r, policy.ModeUnset); stands {
			return false, x.patterns(x.undoing(by, &c.steps))
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
	return c.search(start, func(r pathpattern.Pattern) (bool, []pathpattern.Pattern) {
		for _, s := range []*side{x, y} {
			if by, stands := s.standing(r, policy.ModeUnset); stands {
				return false, s.patterns(s.undoing(by, &c.steps))
			}
		}
		if a, b := x.state(r), y.state(r); a.verdict == b.verdict && a.limits != b.limits {
			return true, nil
		}
		return false, slices.DeleteFunc(slices.Clone(matter), func(p pathpattern.Pattern) bool { return p.Covers(r) })
	})
}
