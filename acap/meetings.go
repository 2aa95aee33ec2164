// SPDX-License-Identifier: Apache-2.0

package acap

import (
	"slices"

	"github.com/robotspolicy/caddy-robots-policy/pathpattern"
)

// Limits on what one usage of a record may cost.
const (
	maxMeeting = 8       // patterns for where two patterns cross
	maxAdded   = 60      // fields for where patterns cross
	maxWork    = 1 << 24 // pairs of patterns, of all records of a host

	workOfMeeting = 1 << 6 // of finding where two patterns meet
)

func (s *claiming) index(patternOf func(*claim) pathpattern.Pattern) *pathpattern.Index[[]int32] {
	var entries []pathpattern.Entry[[]int32]
	for i := range s.claims {
		if !s.claims[i].gone {
			entries = append(entries, pathpattern.Entry[[]int32]{Pattern: patternOf(&s.claims[i]), Value: []int32{int32(i)}})
		}
	}
	return pathpattern.NewIndex(entries, func(a, b []int32) []int32 { return slices.Concat(a, b) })
}

func foldedOf(c *claim) pathpattern.Pattern { return c.folded }

// pairs calls yield for each two claims that speak of a common path, of which at least
// one is not before from.
func (s *claiming) pairs(from int, yield func(i, j int)) {
	x := s.index(foldedOf)
	n := len(s.claims)
	for i := from; i < n; i++ {
		if s.left -= s.wild; s.left < 0 {
			return
		}
		var others []int32
		x.Overlapping(s.claims[i].folded, func(js []int32) { others = append(others, js...) })
		slices.Sort(others)
		for _, j := range others {
			if s.left--; s.left < 0 {
				return
			}
			if int(j) >= from && int(j) <= i || s.claims[i].gone || s.claims[j].gone || !s.claims[i].overlaps(&s.claims[j]) {
				continue
			}
			yield(i, int(j))
		}
	}
}

// narrow adds claims where the one that should decide has not the narrower scope.
func (s *claiming) narrow() {
	for from := 0; from < len(s.claims) && s.left >= 0; {
		next := len(s.claims)
		s.pairs(from, func(i, j int) {
			if s.claims[i].allow == s.claims[j].allow {
				if s.claims[i].allow {
					s.join(i, j)
				}
				return
			}
			if !s.claims[i].allow {
				i, j = j, i
			}
			s.decidePair(i, j)
		})
		from = next
	}
}

// decidePair looks at a permission and a prohibition.
func (s *claiming) decidePair(i, j int) {
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

// join looks at two permissions: where both speak, what remains of their qualifiers
// unites, and together they may override more than each.
func (s *claiming) join(i, j int) {
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
	quals, unsayable := s.qualifiers(from)
	scope := Compare(a.folded, b.folded)
	alone := !unsayable && (scope == First && a.quals == quals || scope == Second && b.quals == quals || a.quals == quals && b.quals == quals)
	if alone && !s.needBoth(a, b) {
		return
	}
	condition := a.condition
	if condition == "" {
		condition = b.condition
	}
	p, q := *a, *b
	decides := func(m pathpattern.Pattern, c *claim) bool { // of one pattern that with qualifiers does
		return Compare(m, c.folded) == First || m == c.folded && c.quals == "" && quals != ""
	}
	s.addAt(p.pattern, q.pattern, true, condition, from, func(m pathpattern.Pattern) bool { return decides(m, &p) && decides(m, &q) })
}

// needBoth reports whether each of two permissions overrides a prohibition, where both
// speak, that the other does not.
func (s *claiming) needBoth(a, b *claim) bool {
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

// addAt adds claims for where two patterns meet that do not stand already. It reports
// whether they say all that is needed.
func (s *claiming) addAt(p, q pathpattern.Pattern, allow bool, condition string, from []*conditional, suffices func(pathpattern.Pattern) bool) bool {
	if s.left -= workOfMeeting; s.left < 0 || len(s.claims) >= s.given+maxAdded {
		return false
	}
	meet, ok := pathpattern.Intersect(p, q, maxMeeting)
	if !ok || len(s.claims)+len(meet) > s.given+maxAdded {
		return false
	}
	for _, m := range meet {
		m = m.Plain()
		if !suffices(Fold(m)) {
			ok = false
			continue
		}
		if all := s.absorb(m, allow, condition, from); all != nil {
			s.add(m, allow, condition, all)
		}
	}
	return ok
}

// absorb drops the permissions of the same pattern, as a reader could not tell which of
// them to obey, and returns what one in their stead stands for; nil if one stands already.
func (s *claiming) absorb(p pathpattern.Pattern, allow bool, condition string, from []*conditional) []*conditional {
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
