// SPDX-License-Identifier: Apache-2.0

package acap

import (
	"fmt"
	"slices"
	"strings"

	"github.com/robotspolicy/caddy-robots-policy/pathpattern"
	"github.com/robotspolicy/caddy-robots-policy/policy"
)

const (
	maxAdded  = 60           // claims about one usage in a record that are added because patterns cross
	maxPlaces = 8 * maxAdded // crossings that are compared for one usage in a record, in addition to one for each statement
)

// reader stands for the readers of a record that use it for the same purpose.
type reader struct {
	purpose   string // "" for readers without a purpose
	condition string // the condition of the statements for the purpose
}

func (s *fieldSolver) addReaders(condition string) {
	for purpose := range strings.SplitSeq(condition, "\n") {
		if !slices.ContainsFunc(s.readers, func(r reader) bool { return r.purpose == purpose }) {
			s.readers = append(s.readers, reader{purpose, condition})
		}
	}
}

// place is a pattern at which readers are compared with the policy. It stands for the paths that this pattern matches,
// but no narrower pattern of the record.
type place struct {
	pattern, folded pathpattern.Pattern
	wants           []answer // the policy's decision for each reader
	claims          []*claim // the claims with this pattern
}

// find returns the claim with a condition, or nil. A claim that was withdrawn is only returned if there is no other.
func (p *place) find(condition string) (found *claim) {
	for _, c := range p.claims {
		if c.condition == condition && (found == nil || found.gone) {
			found = c
		}
	}
	return found
}

// notice returns the place of a pattern.
func (s *fieldSolver) notice(p pathpattern.Pattern) *place {
	if s.known[p] == nil {
		s.known[p] = &place{pattern: p, folded: Fold(p)}
		s.places = append(s.places, s.known[p])
	}
	return s.known[p]
}

// reading is the conclusion that a reader of the claims draws for a place.
type reading struct {
	matches bool
	winners []*claim // permissions that are narrower than every prohibition, without those wider than another
	quals   string
}

// agrees reports whether a reader comes to the policy's decision. If no claim matches, the fields about "other" decide,
// as in the policy.
func (r *reading) agrees(want *answer, u policy.Usage) bool {
	switch {
	case want.Verdict == policy.Unstated, !r.matches && want.Statement != nil && want.Statement.Usage == policy.Other && u != policy.Other:
		return true
	case want.permits():
		return len(r.winners) > 0 && r.quals == want.quals
	}
	return r.matches && len(r.winners) == 0
}

// laxer reports whether a reader permits a usage that the policy prohibits, or that the policy permits with other
// qualifiers.
func (r *reading) laxer(want *answer) bool {
	return len(r.winners) > 0 && want.Verdict != policy.Unstated && (!want.permits() || want.quals != "" && want.quals != r.quals)
}

// read returns the reading of the claims, and of the claims in more, at a place.
func (s *fieldSolver) read(folded pathpattern.Pattern, purpose string, more ...*claim) (r reading) {
	s.budget.Spend(s.wild)
	var permissions, prohibitions []*claim
	take := func(c *claim) {
		switch {
		case c.gone || !appliesTo(c.condition, purpose):
		case c.allow:
			permissions = append(permissions, c)
		default:
			prohibitions = append(prohibitions, c)
		}
	}
	for _, i := range s.claimsAt.Covering(folded) {
		take(s.claims[i])
	}
	for _, c := range more {
		take(c)
	}
	s.budget.Spend(len(permissions) * (len(permissions) + len(prohibitions)) / 4)
	r.matches = len(permissions)+len(prohibitions) > 0
	for _, c := range permissions {
		beaten := slices.ContainsFunc(prohibitions, func(d *claim) bool { return !narrower(c.folded, d.folded) }) ||
			slices.ContainsFunc(permissions, func(d *claim) bool { return narrower(d.folded, c.folded) })
		if beaten {
			continue
		}
		r.winners = append(r.winners, c)
		switch {
		case r.quals == "" || r.quals == c.quals:
			r.quals = c.quals
		case c.quals != "":
			r.quals += " or " + c.quals // as qualifiers that no permission has
		}
	}
	return r
}

// narrower reports whether p has a narrower scope than q according to section 2.4.5. At the first difference, any other
// character is narrower than "*", "*" is narrower than "$", and "$" is narrower than the end of the pattern.
func narrower(p, q pathpattern.Pattern) bool {
	a, b := p.String(), q.String()
	for a != "" && b != "" && a[0] == b[0] {
		a, b = a[1:], b[1:]
	}
	return rank(a) > rank(b)
}

func rank(rest string) int {
	switch {
	case rest == "":
		return 0
	case rest[0] == '$':
		return 1
	case rest[0] == '*':
		return 2
	}
	return 3
}

// correct compares the readings of the claims with the policy at every place, until they agree or differ only where
// ACAP cannot express the policy. There it makes the claims stricter and reports the permissions that are lost.
//
// The places begin with the patterns of the statements. From each of them, explore finds the crossings where the
// decision of the policy or of the readers can be another.
func (s *fieldSolver) correct() {
	for s.changed = true; s.changed; {
		s.changed = false
		for i := 0; i < len(s.places); i++ { // the places may become more
			p := s.places[i]
			for n, r := range s.readers {
				if s.budget.Exceeded() {
					return
				}
				if len(p.wants) == n {
					p.wants = append(p.wants, s.decide(p.pattern, r.purpose))
				}
			}
			for n := range s.readers {
				s.repair(p, n)
				s.explore(p, n)
			}
		}
	}
	for _, p := range s.places {
		for n, r := range s.readers {
			s.report(p, &p.wants[n], r.purpose)
		}
	}
}

// repair changes the claims if the readers with the index n do not come to the policy's decision about a place. It adds
// a claim about the place or, if that does not suffice, withdraws permissions.
func (s *fieldSolver) repair(p *place, n int) {
	r, want := s.readers[n], &p.wants[n]
	got := s.read(p.folded, r.purpose)
	if got.agrees(want, s.usage) {
		return
	}
	condition := r.condition
	for i, other := range s.readers {
		if other.condition == r.condition && (p.wants[i].Statement != want.Statement || p.wants[i].quals != want.quals) {
			condition = r.purpose
		}
	}
	c := want.claim(p.pattern, condition)
	c.added = true
	with := s.read(p.folded, r.purpose, c)
	if p.find(condition) == nil && (s.room > 0 || !got.matches) && with.agrees(want, s.usage) {
		s.room--
		s.add(c)
		return
	}
	for ; got.laxer(want); got = s.read(p.folded, r.purpose) {
		for _, w := range got.winners {
			if !want.permits() || w.quals != want.quals {
				s.withdraw(w, r.purpose)
			}
		}
	}
}

// withdraw removes a permission for readers with a purpose. If other claims do not prohibit the usage, it replaces the
// permission by a prohibition.
func (s *fieldSolver) withdraw(c *claim, purpose string) {
	if c.condition == "" && purpose != "" {
		s.prohibit(c.pattern, purpose, c.by)
		return
	}
	c.gone, s.changed = true, true
	if got := s.read(c.folded, purpose); !got.matches || len(got.winners) > 0 {
		c.gone, c.allow, c.quals = false, false, ""
	}
}

// prohibit adds a prohibition, or turns the permission with the same pattern and condition into one.
func (s *fieldSolver) prohibit(p pathpattern.Pattern, condition string, by policy.Decision) {
	c := s.notice(p).find(condition)
	if c == nil || c.gone {
		c = &claim{pattern: p, folded: Fold(p), condition: condition, by: by, added: true}
		s.add(c)
	}
	s.changed = s.changed || c.allow
	c.allow, c.quals = false, ""
}

// explore adds the crossings of a place with patterns that can change the decision of the policy or of the readers with
// the index n.
func (s *fieldSolver) explore(p *place, n int) {
	r, want := s.readers[n], &p.wants[n]
	for _, c := range p.claims {
		if c.allow && !c.gone && appliesTo(c.condition, r.purpose) {
			s.confine(c, n)
		}
	}
	got := s.read(p.folded, r.purpose)
	if !got.agrees(want, s.usage) {
		return
	}
	cross := func(q pathpattern.Pattern) { want.unknown = !s.cross(p.pattern, q) || want.unknown }
	opened := want.Verdict == policy.Disallowed && s.mayOpen(p, r.purpose)
	by := want.Applied()
	for _, i := range s.statedAt.Overlapping(p.folded) {
		x := &s.stated[i]
		if !x.Statement.Allow || !appliesTo(x.condition, r.purpose) {
			continue
		}
		if opened && s.p.Overrides(&x.Applied, &by) || s.qualified && want.permits() && (want.quals != "" || x.Statement.Qualifiers != nil) {
			cross(x.pattern)
		}
	}
	if !want.permits() {
		return
	}
	for _, i := range s.claimsAt.Overlapping(p.folded) {
		c := s.claims[i]
		if c.gone || !appliesTo(c.condition, r.purpose) {
			continue
		}
		if c.allow && c.quals != want.quals || !c.allow && !narrower(got.winners[0].folded, c.folded) && s.overridable(c) {
			cross(c.pattern)
		}
	}
}

// mayOpen reports whether a statement about a place permits the usage, though another statement decides.
func (s *fieldSolver) mayOpen(p *place, purpose string) bool {
	return slices.ContainsFunc(s.statedAt.Covering(p.folded), func(i int) bool {
		x := &s.stated[i]
		return x.Statement.Allow && appliesTo(x.condition, purpose)
	})
}

// overridable reports whether the policy may permit the usage for some of the paths of a prohibition.
func (s *fieldSolver) overridable(c *claim) bool {
	by := c.by.Applied()
	if by.Statement == nil || by.Statement.Allow {
		return true
	}
	return slices.ContainsFunc(s.statedAt.Overlapping(c.folded), func(i int) bool {
		x := &s.stated[i]
		return x.Statement.Allow && s.p.Overrides(&x.Applied, &by)
	})
}

// confine adds the crossings of a permission with the prohibitions of the policy that it may win over. If there are too
// many of them, it withdraws the permission.
func (s *fieldSolver) confine(c *claim, n int) {
	r := s.readers[n]
	for _, i := range s.statedAt.Overlapping(c.folded) {
		x := &s.stated[i]
		if x.Statement.Allow || !appliesTo(x.condition, r.purpose) {
			continue
		}
		d := s.known[x.pattern].find(x.condition)
		if d != nil && !d.gone && !d.allow && !narrower(c.folded, x.folded) {
			continue
		}
		if c.pattern.Overlaps(x.pattern) && s.cross(c.pattern, x.pattern) || !c.pattern.Overlaps(x.pattern) && s.confineCase(c, x, n) {
			continue
		}
		s.withdraw(c, r.purpose)
		return
	}
}

// confineCase adds prohibitions for the paths where a permission and a prohibition of the policy only cross in ACAP,
// which ignores case. It returns false if the permission would still win.
func (s *fieldSolver) confineCase(c *claim, x *stated, n int) bool {
	purpose := s.readers[n].purpose
	by := s.decide(x.pattern, purpose)
	if by.Verdict != policy.Disallowed {
		return true
	}
	meet, ok := s.budget.Cross(c.folded, x.folded)
	if !ok || len(meet) > s.room {
		return false
	}
	for _, m := range meet {
		if got := s.read(m, purpose); len(got.winners) == 0 {
			continue
		}
		s.room--
		s.prohibit(m, purpose, by.Decision)
		if got := s.read(m, purpose); len(got.winners) > 0 {
			return false
		}
	}
	return true
}

// cross adds the crossings of two patterns to the places. It returns false if there are too many of them.
func (s *fieldSolver) cross(p, q pathpattern.Pattern) bool {
	if !p.Overlaps(q) || p.Covers(q) || q.Covers(p) {
		return true
	}
	pair := [2]pathpattern.Pattern{p, q}
	ok, done := s.crossed[pair]
	if !done && len(s.places) < maxPlaces+2*len(s.stated) {
		var meet []pathpattern.Pattern
		meet, ok = s.budget.Cross(p, q)
		for _, m := range meet {
			s.notice(m)
		}
		s.crossed[pair] = ok
	}
	return ok
}

// report reports permissions of the policy that a reader with a purpose does not find.
func (s *fieldSolver) report(p *place, want *answer, purpose string) {
	got := s.read(p.folded, purpose)
	switch {
	case want.Verdict == policy.Allowed && s.unready(want.quals):
		s.warnUnready(want.Qualifiers())
	case want.Verdict == policy.Allowed && (len(got.winners) == 0 || got.quals != want.quals):
		s.lost(want.Statement, purpose, p.pattern)
	case want.unknown:
		for _, i := range s.statedAt.Covering(p.folded) {
			if x := &s.stated[i]; x.Statement.Allow && appliesTo(x.condition, purpose) {
				s.lost(x.Statement, purpose, p.pattern)
			}
		}
	}
}

// loss is a permission that is lost for readers with a purpose.
type loss struct {
	by      *policy.Statement
	purpose string
}

// lost reports that the records disallow part of a permission, unless it has reported a wider part.
func (s *fieldSolver) lost(by *policy.Statement, purpose string, place pathpattern.Pattern) {
	loss := loss{by, purpose}
	if slices.ContainsFunc(s.losses[loss], func(p pathpattern.Pattern) bool { return p.Covers(place) }) {
		return
	}
	s.losses[loss] = append(s.losses[loss], place)
	code, why := "acap-undecidable", "ACAP crawlers cannot tell which of the matching patterns is the narrowest, so they treat these paths as disallowed"
	if purpose != "" {
		code, why = "acap-purpose", "ACAP cannot express how the entries for a usage purpose and for all purposes combine for these paths"
	}
	s.warn(by, code, fmt.Sprintf("the ACAP records disallow %s for paths that match %q, although the entry for %q allows it: %s; write one of the patterns differently",
		s.usage, place, by.Pattern, why))
}
