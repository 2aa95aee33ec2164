// SPDX-License-Identifier: Apache-2.0

package acap

import (
	"cmp"
	"slices"

	"github.com/robotspolicy/caddy-robots-policy/pathpattern"
)

// The budget of the records of a host.
const (
	maxWork  = 1 << 24 // pairs of patterns
	maxWays  = 8
	maxAdded = 60 // fields for where patterns cross, of one usage of a record

	crossCost = 1 << 6 // of finding where two patterns cross, in work
)

// pairs calls visit for each two claims that may apply to a path at once, the earlier one first,
// including those that visit adds.
func (s *fieldSolver) pairs(visit func(i, j int)) {
	overlapping := func(i int) []int {
		if s.claims[i].gone || !s.budget.Spend(s.wild) {
			return nil
		}
		return s.folded.Overlapping(s.claims[i].folded)
	}
	s.budget.Pairs(0, func() int { return len(s.claims) }, overlapping, func(j, i int) {
		c, d := &s.claims[i], &s.claims[j]
		if !c.gone && !d.gone && (c.appliesWith(d) || d.appliesWith(c)) {
			visit(i, j)
		}
	})
}

// narrow adds claims where ACAP's rule would let the wrong one of two decide.
func (s *fieldSolver) narrow() {
	s.pairs(func(i, j int) {
		switch {
		case s.claims[i].allow && s.claims[j].allow:
			s.join(i, j)
		case s.claims[i].allow:
			s.decidePair(i, j)
		case s.claims[j].allow:
			s.decidePair(j, i)
		}
	})
}

func (s *fieldSolver) decidePair(i, j int) {
	a, d := &s.claims[i], &s.claims[j]
	exact := a.pattern.Overlaps(d.pattern)
	first := Compare(a.folded, d.folded) == First
	wins := exact && s.overrides(a, d)
	if wins == first {
		return
	}
	p, q := a.pattern, d.pattern
	if !exact { // only as ACAP compares, without case
		p, q = a.folded, d.folded
	}
	winner := *d
	if wins {
		winner = *a
	}
	loser, against := a.folded, d.folded
	ok := s.addAt(p, q, winner.allow, winner.condition, winner.from, func(m pathpattern.Pattern) bool {
		if wins {
			return Compare(m, against) == First
		}
		return Compare(loser, m) != First
	})
	if !ok && !wins { // rather less than more
		s.claims[i].gone = true
		s.lost(&s.claims[i], p)
	}
}

// join looks at two permissions: where both match, their remaining qualifiers unite, and together
// they may override more than each.
func (s *fieldSolver) join(i, j int) {
	a, b := &s.claims[i], &s.claims[j]
	if !a.pattern.Overlaps(b.pattern) || len(a.from) == 0 || len(b.from) == 0 {
		return
	}
	from := slices.Clone(a.from)
	for _, f := range b.from {
		if !slices.Contains(from, f) {
			from = append(from, f)
		}
	}
	quals, ambiguous := s.qualifiers(from)
	scope := Compare(a.folded, b.folded)
	alone := !ambiguous && (scope == First && a.quals == quals || scope == Second && b.quals == quals || a.quals == quals && b.quals == quals)
	if alone && !s.needBoth(a, b) {
		return
	}
	condition := cmp.Or(a.condition, b.condition)
	p, q := *a, *b
	decides := func(m pathpattern.Pattern, c *claim) bool { // of one pattern that with qualifiers does
		return Compare(m, c.folded) == First || m == c.folded && c.quals == "" && quals != ""
	}
	s.addAt(p.pattern, q.pattern, true, condition, from, func(m pathpattern.Pattern) bool { return decides(m, &p) && decides(m, &q) })
}

// needBoth reports whether each of two permissions overrides a prohibition where both match that the
// other does not.
func (s *fieldSolver) needBoth(a, b *claim) bool {
	mine, other := false, false
	for k := range s.claims[:s.given] {
		d := &s.claims[k]
		if d.gone || d.allow || !d.folded.Overlaps(a.folded) || !d.folded.Overlaps(b.folded) {
			continue
		}
		x, y := s.overrides(a, d), s.overrides(b, d)
		mine, other = mine || x && !y, other || y && !x
	}
	return mine && other
}

// addAt adds claims for where two patterns cross, unless they exist, and reports whether that suffices.
func (s *fieldSolver) addAt(p, q pathpattern.Pattern, allow bool, condition string, from []*conditional, suffices func(pathpattern.Pattern) bool) bool {
	if s.budget.Added <= 0 || !s.budget.Spend(crossCost) {
		return false
	}
	meet, ok := s.budget.Cross(p, q)
	if !ok || len(meet) > s.budget.Added {
		return false
	}
	for _, m := range meet {
		if !suffices(Fold(m)) {
			ok = false
			continue
		}
		if all := s.absorb(m, allow, condition, from); all != nil {
			s.budget.Add(1)
			s.add(m, allow, condition, all)
		}
	}
	return ok
}

// absorb drops the permissions of the same pattern and condition, because a reader could not tell
// which to obey, and returns what the one that replaces them stands for; nil if that exists.
func (s *fieldSolver) absorb(p pathpattern.Pattern, allow bool, condition string, from []*conditional) []*conditional {
	all := slices.Clone(from)
	var same []*claim
	for i := range s.claims {
		c := &s.claims[i]
		if c.gone || c.allow != allow || c.condition != condition || c.pattern != p {
			continue
		}
		same = append(same, c)
		for _, f := range c.from {
			if allow && !slices.Contains(all, f) {
				all = append(all, f)
			}
		}
	}
	if slices.ContainsFunc(same, func(c *claim) bool { return len(c.from) == len(all) && (allow || c.from[0] == from[0]) }) {
		return nil
	}
	for _, c := range same {
		c.gone = allow
	}
	return all
}
