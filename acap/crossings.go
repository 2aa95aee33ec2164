// SPDX-License-Identifier: Apache-2.0

package acap

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/robotspolicy/caddy-robots-policy/pathpattern"
	"github.com/robotspolicy/caddy-robots-policy/policy"
)

// maxAdded limits the number of fields that are added for one usage in a record because patterns cross.
const maxAdded = 60

// pairs calls visit for each pair of claims that may apply to the same path. The earlier claim comes first. If visit
// adds a claim, pairs also calls visit for the pairs with this claim.
func (s *fieldSolver) pairs(visit func(i, j int)) {
	overlapping := func(i int) []int {
		if s.claims[i].gone || !s.budget.Spend(s.wild) {
			return nil
		}
		return s.folded.Overlapping(s.claims[i].folded)
	}
	s.budget.Pairs(func() int { return len(s.claims) }, overlapping, func(j, i int) {
		c, d := &s.claims[i], &s.claims[j]
		if !c.gone && !d.gone && (c.appliesWith(d) || d.appliesWith(c)) {
			visit(i, j)
		}
	})
}

// narrow adds claims for places where ACAP would let the wrong one of two claims decide.
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
	if !exact { // the patterns only overlap in ACAP, which ignores case
		p, q = a.folded, d.folded
	}
	winner := *d
	if wins {
		winner = *a
	}
	loser, against := a.folded, d.folded
	ok := s.addAt(p, q, winner.allow, winner.condition, winner.from, func(m pathpattern.Pattern) bool {
		if wins {
			return Compare(Fold(m), against) == First
		}
		return Compare(loser, Fold(m)) != First
	})
	if !ok && !wins { // permitting less is safer than permitting more
		condition := cmp.Or(s.claims[i].condition, s.claims[j].condition)
		s.lost(s.claims[i].from, condition, p)
		s.withdraw(&s.claims[i], s.claims[i].pattern, condition)
	}
}

// join adds a permission for the paths that two permissions match, if such a permission is needed. For these paths, the
// qualifiers of both permissions apply. Together, the two permissions may override prohibitions that neither of them
// overrides alone.
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
	both := s.needBoth(a, b)
	if !both && !s.qualified {
		return
	}
	scope := Compare(a.folded, b.folded)
	condition := cmp.Or(a.condition, b.condition)
	p, q := *a, *b
	s.addAt(p.pattern, q.pattern, true, condition, from, func(m pathpattern.Pattern) bool {
		_, quals, ambiguous := s.decide(m, condition)
		alone := !ambiguous && (scope == First && p.quals == quals || scope == Second && q.quals == quals || p.quals == quals && q.quals == quals)
		// If several permissions have the same pattern, one with qualifiers decides.
		decides := func(c *claim) bool {
			return Compare(Fold(m), c.folded) == First || Fold(m) == c.folded && c.quals == "" && quals != ""
		}
		return (both || !alone) && decides(&p) && decides(&q)
	})
}

// needBoth reports whether each of two permissions overrides some prohibition that the other permission does not
// override.
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

// addAt adds claims for the paths that match both p and q, unless such claims exist. It reports whether suffices
// returns true for the patterns of all these claims.
func (s *fieldSolver) addAt(p, q pathpattern.Pattern, allow bool, condition string, from []*conditional, suffices func(pathpattern.Pattern) bool) bool {
	if s.room <= 0 {
		return false
	}
	meet, ok := s.budget.Cross(p, q)
	if !ok || len(meet) > s.room {
		return false
	}
	for _, m := range meet {
		if !suffices(m) {
			ok = false
			continue
		}
		if all := s.absorb(m, allow, condition, from); all != nil {
			s.room--
			s.add(m, allow, condition, all)
		}
	}
	return ok
}

// absorb removes the permissions with the same pattern and condition, because readers could not tell which permission
// to obey. It returns the statements for the claim that replaces these permissions, or nil if such a claim already
// exists.
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

// verify compares the decisions of an ACAP crawler with the policy, for each pattern and each place where two patterns
// cross. Where the crawler may do more than the policy allows, verify drops permissions. Where the crawler may do less,
// verify reports the lost permission.
func (s *fieldSolver) verify() {
	if s.budget.Exceeded() || !slices.ContainsFunc(s.claims, func(c claim) bool { return c.allow }) {
		return
	}
	places := s.places()
	purposes := []string{""}
	for i := range s.claims {
		for purpose := range strings.SplitSeq(s.claims[i].condition, "\n") {
			if !slices.Contains(purposes, purpose) {
				purposes = append(purposes, purpose)
			}
		}
	}
	for again := true; again && !s.budget.Exceeded(); {
		again = false
		for _, place := range places {
			for _, purpose := range purposes {
				again = !s.budget.Exceeded() && s.dropLaxer(place, purpose) || again
			}
		}
	}
	for _, place := range places {
		if s.budget.Exceeded() {
			return
		}
		for _, purpose := range purposes {
			s.reportStricter(place, purpose)
		}
	}
}

func (s *fieldSolver) places() []pathpattern.Pattern {
	var places []pathpattern.Pattern
	seen := map[pathpattern.Pattern]bool{}
	add := func(p pathpattern.Pattern) {
		if !seen[p] {
			seen[p] = true
			places = append(places, p)
		}
	}
	for i := range s.claims {
		if c := &s.claims[i]; !c.gone {
			add(c.pattern)
		}
	}
	s.pairs(func(i, j int) {
		c, d := &s.claims[i], &s.claims[j]
		if len(places) > 4*maxAdded+s.given || c.allow && d.allow && c.quals == d.quals || c.pattern.Covers(d.pattern) || d.pattern.Covers(c.pattern) {
			return
		}
		meet, _ := s.budget.Cross(c.pattern, d.pattern)
		for _, m := range meet {
			add(m)
		}
	})
	return places
}

// read returns the decision of an ACAP crawler about a place. permission is the deciding permission, or nil if there is
// none. prohibited is true if the usage is prohibited.
func (s *fieldSolver) read(place pathpattern.Pattern, purpose string) (permission *claim, prohibited bool) {
	s.budget.Spend(s.wild)
	var matching []*claim
	for _, i := range s.folded.Covering(Fold(place)) {
		if c := &s.claims[i]; !c.gone && c.isFor(purpose) {
			matching = append(matching, c)
		}
	}
	slices.SortStableFunc(matching, func(a, b *claim) int { return s.compare(&field{claim: *a}, &field{claim: *b}) })
	s.budget.Spend(len(matching) * len(matching) / 4)
	rivals := make([]rival, len(matching))
	for i, c := range matching {
		rivals[i] = rival{c.folded, c.allow, c.quals != ""}
	}
	if i := deciding(rivals); i >= 0 {
		return matching[i], false
	}
	return nil, len(matching) > 0
}

// dropLaxer withdraws the deciding permission if the policy permits less. It reports whether it changed anything.
func (s *fieldSolver) dropLaxer(place pathpattern.Pattern, purpose string) bool {
	permission, _ := s.read(place, purpose)
	if permission == nil || s.permitsNoMore(permission, place, purpose) {
		return false
	}
	s.withdraw(permission, place, purpose)
	return true
}

// withdraw drops or narrows a permission. Afterwards, the permission no longer decides about a place for readers with a
// condition.
func (s *fieldSolver) withdraw(permission *claim, place pathpattern.Pattern, condition string) {
	if permission.condition == "" && condition != "" { // a prohibition with the same pattern is enough for these purposes
		if from := s.absorb(permission.pattern, false, condition, permission.from); from != nil {
			s.add(permission.pattern, false, condition, from)
		}
		return
	}
	// Without this permission, a wider claim may give the policy's decision. If the result still permits too much, the
	// permission becomes a prohibition. The permission also becomes a prohibition if no other claim of this record
	// applies, because otherwise the record for any crawler would decide.
	permission.gone = true
	covered := slices.ContainsFunc(s.claims, func(c claim) bool { return !c.gone && c.appliesWith(permission) && c.folded.Covers(permission.folded) })
	purpose, _, _ := strings.Cut(condition, "\n")
	next, prohibited := s.read(place, purpose)
	if !covered || !prohibited && (next == nil || !s.permitsNoMore(next, place, purpose)) {
		permission.gone, permission.allow, permission.quals = false, false, ""
	}
}

// permitsNoMore reports whether the claim c permits no more than the policy.
func (s *fieldSolver) permitsNoMore(c *claim, place pathpattern.Pattern, purpose string) bool {
	d, quals, ambiguous := s.decide(place, purpose)
	if d.Verdict == policy.Unstated {
		return len(c.from) == 0
	}
	return d.Verdict == policy.Allowed && !ambiguous && (c.quals == quals || quals == "")
}

// reportStricter reports permissions of the policy that an ACAP crawler does not find.
func (s *fieldSolver) reportStricter(place pathpattern.Pattern, purpose string) {
	d, quals, _ := s.decide(place, purpose)
	if d.Verdict != policy.Allowed || d.Statement == nil || s.unready(quals) { // prohibitUnready has reported the last case
		return
	}
	if permission, prohibited := s.read(place, purpose); permission == nil || prohibited || permission.quals != quals {
		for i := range s.statements {
			if st := &s.statements[i]; st.Statement == d.Statement {
				s.lost([]*conditional{st}, purpose, place)
			}
		}
	}
}

// lost reports that the records disallow part of a permission.
func (s *fieldSolver) lost(from []*conditional, condition string, place pathpattern.Pattern) {
	for _, f := range from {
		if !f.Statement.Allow {
			continue
		}
		code, why := "acap-undecidable", "ACAP crawlers cannot tell which of the matching patterns is the narrowest, so they treat these paths as disallowed"
		if condition != "" {
			code, why = "acap-purpose", "ACAP cannot express how the entries for a usage purpose and for all purposes combine there"
		}
		s.warn(f.Statement, code, fmt.Sprintf("the ACAP records disallow %s for paths that match %q, although the entry for %q allows it: %s; write one of the patterns differently",
			s.usage, place, f.Statement.Pattern, why))
	}
}
