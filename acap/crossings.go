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

// meet notices the places where two claims cross. If one of the claims is a permission that would win over a
// prohibition at places that patterns cannot describe, meet withdraws it.
func (s *fieldSolver) meet(c, d *claim) {
	equal := !c.gone && !d.gone && c.allow && d.allow && c.quals == d.quals
	if !c.opens && !d.opens || equal || !c.meets(d) || !s.budget.Spend(1) {
		return
	}
	exact := c.pattern.Overlaps(d.pattern)
	switch {
	case exact && (c.pattern.Covers(d.pattern) || d.pattern.Covers(c.pattern)):
		return
	case exact && len(s.places) <= 4*maxAdded+2*len(s.statements):
		meet, ok := s.budget.Cross(c.pattern, d.pattern)
		for _, m := range meet {
			s.notice(m)
		}
		if ok {
			return
		}
	}
	if d.allow {
		c, d = d, c
	}
	if !c.allow || d.allow || c.gone || !d.gone && (Compare(c.folded, d.folded) != First || exact && s.overrides(c, d)) {
		return
	}
	condition := cmp.Or(c.condition, d.condition)
	if !exact && s.prohibitAll(c, d, condition) {
		return
	}
	s.lost(c.by.Statement, condition, c.pattern) // permitting less is safer than permitting more
	s.withdraw(c, c.pattern, condition)
}

// overrides reports whether a permission wins over a prohibition in the policy.
func (s *fieldSolver) overrides(a, d *claim) bool {
	x, y := a.by.Applied(), d.by.Applied()
	return x.Statement != nil && y.Statement != nil && s.p.Overrides(&x, &y)
}

// prohibitAll adds prohibitions for the paths where a permission and a prohibition only cross in ACAP, which ignores
// case. It returns false if the permission would still win.
func (s *fieldSolver) prohibitAll(a, d *claim, condition string) bool {
	meet, ok := s.budget.Cross(a.folded, d.folded)
	if !ok || len(meet) > s.room || slices.ContainsFunc(meet, func(m pathpattern.Pattern) bool { return Compare(a.folded, m) == First }) {
		return false
	}
	for _, m := range meet {
		s.room--
		s.add(&claim{pattern: m, folded: Fold(m), condition: condition, by: d.by, added: true})
	}
	return true
}

// narrow adds claims for the places where the claims so far have another meaning than the policy.
func (s *fieldSolver) narrow() {
	for i := 0; i < len(s.places); i++ { // the new claims lead to further places
		for _, condition := range s.conditions {
			if s.budget.Exceeded() || s.room == 0 {
				return
			}
			purpose, _, _ := strings.Cut(condition, "\n")
			if s.isClaimed(spot{s.places[i], condition}) || s.agrees(s.places[i], purpose) {
				continue
			}
			c := s.claim(s.places[i], condition)
			if s.agrees(c.pattern, purpose, c) {
				c.added = true
				s.room--
				s.add(c)
				continue
			}
			c.gone = true // so verify reports the place, and its parts that other permissions decide about
			for _, j := range s.folded.Overlapping(c.folded) {
				if s.claims[j].opens {
					s.meet(c, s.claims[j])
				}
			}
		}
	}
}

// agrees reports whether an ACAP crawler makes the policy's decision about a place. The crawler also reads the claims
// in more.
func (s *fieldSolver) agrees(at pathpattern.Pattern, purpose string, more ...*claim) bool {
	d, quals, inexpressible := s.decide(at, purpose)
	permission, prohibited := s.read(at, purpose, more...)
	switch {
	case d.Verdict == policy.Unstated:
		return true
	case d.Verdict == policy.Disallowed || inexpressible:
		return prohibited
	}
	return permission != nil && permission.quals == quals
}

// verify compares the decisions of an ACAP crawler with the policy, for each pattern and each place where two patterns
// cross. Where the crawler may do more than the policy allows, verify drops permissions. Where the crawler may do less,
// verify reports the lost permission.
func (s *fieldSolver) verify() {
	if s.budget.Exceeded() || !slices.ContainsFunc(s.statements, func(st conditional) bool { return st.Statement.Allow }) {
		return
	}
	purposes := []string{""}
	for _, condition := range s.conditions {
		for purpose := range strings.SplitSeq(condition, "\n") {
			if !slices.Contains(purposes, purpose) {
				purposes = append(purposes, purpose)
			}
		}
	}
	for again := true; again && !s.budget.Exceeded(); {
		again = false
		for _, place := range s.places {
			for _, purpose := range purposes {
				again = !s.budget.Exceeded() && s.dropLaxer(place, purpose) || again
			}
		}
	}
	for _, place := range s.places {
		if s.budget.Exceeded() {
			return
		}
		for _, purpose := range purposes {
			s.reportStricter(place, purpose)
		}
	}
}

// read returns the decision of an ACAP crawler about a place. permission is the deciding permission, or nil if there is
// none. prohibited is true if the usage is prohibited. The crawler also reads the claims in more.
func (s *fieldSolver) read(place pathpattern.Pattern, purpose string, more ...*claim) (permission *claim, prohibited bool) {
	s.budget.Spend(s.wild)
	matching := slices.Clone(more)
	for _, i := range s.folded.Covering(Fold(place)) {
		if c := s.claims[i]; !c.gone && c.isFor(purpose) {
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
		if at := (spot{permission.pattern, condition}); s.isClaimed(at) {
			s.latest[at].allow, s.latest[at].quals = false, ""
		} else {
			s.add(&claim{pattern: permission.pattern, folded: permission.folded, condition: condition, by: permission.by, added: true})
		}
		return
	}
	// Without this permission, a wider claim may give the policy's decision. If the result still permits too much, the
	// permission becomes a prohibition. The permission also becomes a prohibition if no other claim of this record
	// applies, because otherwise the record for any crawler would decide.
	permission.gone = true
	covered := slices.ContainsFunc(s.claims, func(c *claim) bool { return !c.gone && c.appliesWith(permission) && c.folded.Covers(permission.folded) })
	purpose, _, _ := strings.Cut(condition, "\n")
	next, prohibited := s.read(place, purpose)
	if !covered || !prohibited && (next == nil || !s.permitsNoMore(next, place, purpose)) {
		permission.gone, permission.allow, permission.quals = false, false, ""
	}
}

// permitsNoMore reports whether the claim c permits no more than the policy.
func (s *fieldSolver) permitsNoMore(c *claim, place pathpattern.Pattern, purpose string) bool {
	d, quals, inexpressible := s.decide(place, purpose)
	if d.Verdict == policy.Unstated {
		return c.by.Statement == nil
	}
	return d.Verdict == policy.Allowed && !inexpressible && (c.quals == quals || quals == "")
}

// reportStricter reports permissions of the policy that an ACAP crawler does not find.
func (s *fieldSolver) reportStricter(place pathpattern.Pattern, purpose string) {
	d, quals, _ := s.decide(place, purpose)
	if d.Verdict != policy.Allowed || s.unready(quals) { // decide has reported the last case
		return
	}
	if permission, prohibited := s.read(place, purpose); permission == nil || prohibited || permission.quals != quals {
		s.lost(d.Statement, purpose, place)
	}
}

// lost reports that the records disallow part of a permission.
func (s *fieldSolver) lost(by *policy.Statement, condition string, place pathpattern.Pattern) {
	if by == nil {
		return
	}
	code, why := "acap-undecidable", "ACAP crawlers cannot tell which of the matching patterns is the narrowest, so they treat these paths as disallowed"
	if condition != "" {
		code, why = "acap-purpose", "ACAP cannot express how the entries for a usage purpose and for all purposes combine for these paths"
	}
	s.warn(by, code, fmt.Sprintf("the ACAP records disallow %s for paths that match %q, although the entry for %q allows it: %s; write one of the patterns differently",
		s.usage, place, by.Pattern, why))
}
