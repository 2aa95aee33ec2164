// SPDX-License-Identifier: Apache-2.0

package acap

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/robotspolicy/caddy-robots-policy/pathpattern"
	"github.com/robotspolicy/caddy-robots-policy/policy"
	"github.com/robotspolicy/caddy-robots-policy/policy/solve"
)

const (
	maxAdded  = 60           // maximum number of claims about one usage that repair adds to a record
	maxPlaces = 8 * maxAdded // maximum number of places for one usage in a record, in addition to two for each pattern
)

// place is a pattern. For its paths, the solver compares the claims of a record with the policy: a crawler that reads
// the record should come to the policy's decision. Paths that also match a narrower pattern in the record do not belong
// to the place.
type place struct {
	pattern, folded pathpattern.Pattern
	wants           map[string]*answer // the policy's decisions, by purpose
	claims          []*claim           // the claims with this pattern
	done            bool               // compared with the present claims
}

// claim returns the place's claim with the given condition, or nil if there is none.
func (p *place) claim(condition string) *claim {
	for _, c := range p.claims {
		if c.condition == condition {
			return c
		}
	}
	return nil
}

// placeOf returns the place of a pattern.
func (s *fieldSolver) placeOf(p pathpattern.Pattern) *place {
	if s.known[p] == nil {
		s.known[p] = &place{pattern: p, folded: Fold(p), wants: map[string]*answer{}}
		s.placesAt.Add(s.known[p].folded, len(s.places))
		s.places = append(s.places, s.known[p])
	}
	return s.known[p]
}

// changed must be called after the claim c was added or changed. It marks the places whose patterns overlap c as not
// done, so that correct compares them with the policy again.
func (s *fieldSolver) changed(c *claim) {
	for _, i := range s.overlapping(&s.placesAt, c.folded) {
		s.places[i].done = false
	}
}

// overlapping lists the ids of patterns in a set that overlap p. It lists none if the budget is used up.
func (s *fieldSolver) overlapping(set *solve.Set, p pathpattern.Pattern) []int {
	return s.afford(set.Overlapping, p)
}

// covering lists the ids of patterns in a set that cover p. It lists none if the budget is used up.
func (s *fieldSolver) covering(set *solve.Set, p pathpattern.Pattern) []int {
	return s.afford(set.Covering, p)
}

// afford calls the function lookup with p and returns its result. It returns nil if the budget does not suffice for the
// lookup and for a loop over the result.
func (s *fieldSolver) afford(lookup func(pathpattern.Pattern) []int, p pathpattern.Pattern) []int {
	if !s.budget.Spend(s.wild) {
		return nil
	}
	found := lookup(p)
	if !s.budget.Spend(len(found)) {
		return nil
	}
	return found
}

// severalQuals is the value of reading.quals if the winners have different qualifiers. It differs from the printed
// qualifiers of every permission.
const severalQuals = "several conditions"

// reading is the conclusion that a crawler draws from the claims of the record about a place.
type reading struct {
	claims  []*claim // the claims that match
	winners []*claim // permissions narrower than every matching prohibition, and not wider than another such permission
	quals   string
}

// read returns the conclusion that a crawler draws from the claims of the record about the place p. purpose is the
// crawler's usage purpose, or "" if it has none. read also considers the claims in more, as if they were in the record.
func (s *fieldSolver) read(p *place, purpose string, more ...*claim) (r reading) {
	r.claims = more
	for _, i := range s.covering(&s.claimsAt, p.folded) {
		if c := s.claims[i]; c.isFor(purpose) {
			r.claims = append(r.claims, c)
		}
	}
	for _, c := range r.claims {
		if !c.allow {
			continue
		}
		if !s.budget.Spend(len(r.claims)*(8+c.folded.Len())/64 + 1) { // for comparing c with the other claims
			return r
		}
		if slices.ContainsFunc(r.claims, func(d *claim) bool {
			return d.allow && beats(d.folded, c.folded) || !d.allow && !beats(c.folded, d.folded)
		}) {
			continue
		}
		r.winners = append(r.winners, c)
		switch {
		case r.quals == "" || r.quals == c.quals:
			r.quals = c.quals
		case c.quals != "":
			r.quals = severalQuals
		}
	}
	return r
}

// beats reports whether p has a narrower scope than q according to section 2.4.5.
func beats(p, q pathpattern.Pattern) bool {
	a, b := p.String(), q.String()
	for a != "" && b != "" && a[0] == b[0] {
		a, b = a[1:], b[1:]
	}
	return rank(a) > rank(b)
}

// rank returns a number that is greater for a narrower pattern. It serves to compare two patterns that begin with the
// same bytes. rest is what follows these bytes in one of the two patterns.
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

// agrees reports whether the reading is the same as want, the policy's decision about the usage u. Every reading agrees
// if the policy states nothing. If no claim about u matches, crawlers use the fields about "other". This agrees with
// the policy if want comes from a statement about "other", too.
func (r *reading) agrees(want *answer, u policy.Usage) bool {
	switch {
	case want.Verdict == policy.Unstated, len(r.claims) == 0 && want.Statement != nil && want.Statement.Usage != u && want.Statement.Usage == policy.Other:
		return true
	case want.permits():
		return len(r.winners) > 0 && r.quals == want.quals
	}
	return len(r.claims) > 0 && len(r.winners) == 0
}

// correct changes the claims until crawlers that read them come to the policy's decision at every place. Where ACAP
// cannot express the policy, correct makes the claims stricter than the policy, and reports the permissions that the
// records do not contain.
//
// The first places are the patterns of the statements. Then explore adds places where two patterns match the same
// paths, because the decision may be different there.
func (s *fieldSolver) correct() {
	for again := true; again; {
		again = false
		s.budget.Spend(len(s.places) / 64)
		for i := 0; i < len(s.places); i++ { // the loop may add places
			p := s.places[i]
			if p.done {
				continue
			}
			p.done, again = true, true
			for _, purpose := range s.purposesAt(p) {
				if s.budget.Exceeded() {
					return
				}
				if p.wants[purpose] == nil {
					a := s.decide(p.pattern, purpose)
					p.wants[purpose] = &a
				}
				s.explore(p, s.repair(p, p.wants[purpose], purpose), p.wants[purpose], purpose)
			}
		}
	}
	for _, p := range s.places {
		for _, purpose := range slices.Sorted(maps.Keys(p.wants)) {
			if s.budget.Exceeded() {
				return
			}
			s.report(p, p.wants[purpose], purpose)
		}
	}
	s.warnUnready()
}

// purposesAt lists the usage purposes that may change the decision at a place, because a statement or a claim with this
// purpose overlaps the place. The first is "", for crawlers without a purpose.
func (s *fieldSolver) purposesAt(p *place) []string {
	conditions := map[string]bool{}
	for _, i := range s.overlapping(&s.statedAt, p.folded) {
		conditions[s.stated[i].condition] = true
	}
	for _, i := range s.overlapping(&s.claimsAt, p.folded) {
		conditions[s.claims[i].condition] = true
	}
	delete(conditions, "")
	at := make([]string, 1, 1+len(conditions))
	for c := range conditions {
		at = append(at, s.purposesOf(c)...)
	}
	slices.Sort(at)
	return slices.Compact(at)
}

// purposesOf lists the purposes that a condition applies to.
func (s *fieldSolver) purposesOf(condition string) []string {
	of, ok := s.matching[condition]
	if !ok && s.budget.Spend(len(s.purposes)*(1+strings.Count(condition, "\n"))) {
		for _, purpose := range s.purposes {
			if appliesTo(condition, purpose) {
				of = append(of, purpose)
			}
		}
		s.matching[condition] = of
	}
	return of
}

// repair checks how crawlers that have the purpose read the records about the place p. want is the policy's decision about
// p. If the crawlers come to another decision, it adds a claim with p's pattern. If this is not possible or does not
// suffice, it withdraws the permissions that permit more than the policy. It returns the new reading.
func (s *fieldSolver) repair(p *place, want *answer, purpose string) reading {
	got := s.read(p, purpose)
	if got.agrees(want, s.usage) {
		return got
	}
	c := want.claim(p.pattern, purpose)
	c.added = true
	if p.claim(purpose) == nil && (s.room > 0 || len(got.claims) == 0) {
		if with := s.read(p, purpose, c); with.agrees(want, s.usage) {
			s.room--
			s.add(c)
			s.changed(c)
			return with
		}
	}
	for len(got.winners) > 0 && (!want.permits() || want.quals != "" && got.quals != want.quals) {
		for _, w := range got.winners {
			if !want.permits() || w.quals != want.quals {
				s.withdraw(w, purpose)
			}
		}
		got = s.read(p, purpose)
	}
	return got
}

// withdraw takes back the permission w from crawlers with the purpose. If w is for all purposes but only one must lose
// it, withdraw adds a prohibition with w's pattern for this purpose. It wins over w for these crawlers, because w is
// not narrower. Otherwise, w itself becomes a prohibition.
func (s *fieldSolver) withdraw(w *claim, purpose string) {
	c := s.placeOf(w.pattern).claim(purpose)
	if w.condition != "" || purpose == "" {
		c = w
	}
	switch {
	case c == nil:
		c = &claim{pattern: w.pattern, folded: w.folded, condition: purpose, by: w.by, added: true, open: true}
		s.add(c)
	case c.allow:
		c.allow, c.quals, c.open = false, "", true
	default:
		return
	}
	s.changed(c)
}

// explore looks for patterns that overlap the place p, and makes places of the paths that match both patterns (see
// cross). It does so only where the policy, or crawlers with the purpose, can come to a different decision than at p.
func (s *fieldSolver) explore(p *place, got reading, want *answer, purpose string) {
	agrees := got.agrees(want, s.usage)
	by := want.Applied()
	for _, i := range s.overlapping(&s.statedAt, p.folded) {
		x := &s.stated[i]
		switch {
		case !appliesTo(x.condition, purpose):
		case !x.Statement.Allow:
			s.confine(p, x, purpose)
		case !agrees:
		case want.Verdict == policy.Disallowed && s.p.Overrides(&x.Applied, &by),
			s.qualified && want.permits() && (want.quals != "" || x.Statement.Qualifiers != nil):
			want.unknown = !s.cross(p, x.pattern) || want.unknown
		}
	}
	if !agrees || !want.permits() {
		return
	}
	for _, i := range s.overlapping(&s.claimsAt, p.folded) {
		c := s.claims[i]
		if c.isFor(purpose) && (c.allow && c.quals != want.quals || !c.allow && !beats(got.winners[0].folded, c.folded) && c.open) {
			want.unknown = !s.cross(p, c.pattern) || want.unknown
		}
	}
}

// confine protects the prohibition x of the policy, where it overlaps the place p. If p has a permission that may win
// over x, confine makes places of the paths that match both patterns (see cross). It withdraws the permission if this
// makes too many places, or if the patterns overlap only because ACAP ignores case.
func (s *fieldSolver) confine(p *place, x *stated, purpose string) {
	d := s.placeOf(x.pattern).claim(x.condition)
	if !s.budget.Spend(len(p.claims)) {
		return
	}
	for _, c := range p.claims {
		if !c.allow || !c.isFor(purpose) || d != nil && d.isFor(purpose) && !d.allow && !beats(p.folded, x.folded) {
			continue
		}
		if !p.pattern.Overlaps(x.pattern) || !s.cross(p, x.pattern) {
			s.withdraw(c, purpose)
		}
	}
}

// cross makes places of the patterns that together match the paths that both p and q match. For example, from /news/
// and /*/drafts/ it makes /news/drafts/ and /news/*/drafts/. It returns false if there are too many such patterns.
func (s *fieldSolver) cross(p *place, q pathpattern.Pattern) bool {
	if !p.pattern.Overlaps(q) || p.pattern.Covers(q) || q.Covers(p.pattern) {
		return true
	}
	pair := [2]pathpattern.Pattern{p.pattern, q}
	ok, done := s.crossed[pair]
	if !done && len(s.places) < maxPlaces+2*len(s.stated) {
		var meet []pathpattern.Pattern
		meet, ok = s.budget.Cross(p.pattern, q)
		for _, m := range meet {
			s.placeOf(m)
		}
		s.crossed[pair] = ok
	}
	return ok
}

// report warns if the policy allows the usage at the place p, but the records do not give this permission to crawlers
// with the purpose.
func (s *fieldSolver) report(p *place, want *answer, purpose string) {
	got := s.read(p, purpose)
	switch {
	case want.Verdict == policy.Allowed && s.unready(want.quals):
		for _, q := range want.Qualifiers() {
			s.notReady[q] = true
		}
	case want.Verdict == policy.Allowed && (len(got.winners) == 0 || got.quals != want.quals):
		s.lost(want.Statement, purpose, p.pattern, got.quals)
	case want.unknown:
		for _, i := range s.covering(&s.statedAt, p.folded) {
			if x := &s.stated[i]; x.Statement.Allow && appliesTo(x.condition, purpose) {
				s.lost(x.Statement, purpose, p.pattern, "")
			}
		}
	}
}

// loss identifies a permission of the policy that the records do not give to crawlers with the purpose.
type loss struct {
	by      *policy.Statement
	purpose string
}

// lost warns that the records disallow the paths of place, although the statement by allows them. If the records allow
// them, but with other qualifiers than the statement, quals holds the qualifiers in the records. lost does not warn again
// if it has already warned about a pattern that covers place.
func (s *fieldSolver) lost(by *policy.Statement, purpose string, place pathpattern.Pattern, quals string) {
	if s.times[by] == maxReports {
		return
	}
	loss := loss{by, purpose}
	if slices.ContainsFunc(s.losses[loss], func(p pathpattern.Pattern) bool { return p.Covers(place) }) {
		return
	}
	s.losses[loss] = append(s.losses[loss], place)
	code, why := "acap-undecidable", "ACAP crawlers cannot tell which of the matching patterns is the narrowest, so they treat these paths as disallowed"
	if purpose != "" {
		code, why = "acap-purpose", "For these paths, the policy has an entry for one usage purpose and an entry for all purposes, and ACAP cannot express this combination"
	}
	says := fmt.Sprintf("the ACAP records disallow %s for paths that match %q, although the entry for %q allows it", s.usage, place, by.Pattern)
	if quals != "" {
		says = fmt.Sprintf("the ACAP records allow %s for paths that match %q only with %s, although the entry for %q does not require this", s.usage, place, quals, by.Pattern)
	}
	s.warn(by, code, fmt.Sprintf("%s. %s. To avoid this, change one of the patterns", says, why))
}
