// SPDX-License-Identifier: Apache-2.0

package acap

import (
	"slices"
	"strings"
	"time"

	"github.com/robotspolicy/caddy-robots-policy/pathpattern"
	"github.com/robotspolicy/caddy-robots-policy/policy"
	"github.com/robotspolicy/caddy-robots-policy/policy/solve"
)

// conditional is a statement that applies to all purposes, or only to some.
type conditional struct {
	policy.Applied
	condition string // the purposes of its sub-record in lower case, one on each line, or "" if there is none
}

// statements lists the statements about a usage for a class, with their conditions. A condition consists of the usage
// purposes of the statement's rule. If the rule is for a purpose that no crawler of the class has, the condition is
// this purpose.
func (w *writer) statements(c *policy.Class, u policy.Usage) (all []conditional) {
	has := func(a *policy.Applied) bool {
		return slices.ContainsFunc(all, func(b conditional) bool { return b.Statement == a.Statement && b.Audience == a.Audience })
	}
	for _, a := range w.p.Statements(c, u, "") {
		all = append(all, conditional{Applied: a})
	}
	for _, purpose := range w.purposes {
		for _, a := range w.p.Statements(c, u, purpose) {
			if !has(&a) {
				all = append(all, conditional{a, joinPurposes(a.Rule.UsagePurposes)})
			}
		}
		with := w.p.WithPurpose(c, purpose)
		for _, a := range w.p.Statements(&with, u, purpose) {
			if !has(&a) { // the rule is for a purpose that no crawler of the class has
				all = append(all, conditional{a, purpose})
			}
		}
	}
	return all
}

func joinPurposes(names []string) string {
	lower := strings.Split(strings.ToLower(strings.Join(names, "\n")), "\n")
	slices.Sort(lower)
	return strings.Join(slices.Compact(lower), "\n")
}

func (s conditional) same(t conditional) bool {
	return s.Statement == t.Statement && s.Audience == t.Audience && s.condition == t.condition
}

// claim is a permission or prohibition of one usage in a record.
type claim struct {
	pattern   pathpattern.Pattern
	folded    pathpattern.Pattern // the pattern in the form for comparisons
	allow     bool
	quals     string // the printed qualifiers of a permission
	condition string
	from      []*conditional // statements that the claim expresses; one for a prohibition, any number for a permission
	ambiguous bool           // the claim is a permission whose qualifiers ACAP cannot combine
	added     bool           // added for a place where two patterns cross
	gone      bool
}

func (c *claim) appliesWith(d *claim) bool { return c.condition == "" || c.condition == d.condition }

// isFor reports whether readers with a purpose, or without one, apply the claim.
func (c *claim) isFor(purpose string) bool {
	s := SubRecord{Purposes: strings.Split(c.condition, "\n")}
	return c.condition == "" || s.isFor(purpose)
}

// fieldSolver finds the claims about one usage in a record. For readers that follow section 2.4.5 of ACAP, the claims
// must have the same meaning as the policy. According to this section, the claim with the narrowest scope decides. A
// usage is prohibited if no claim is the narrowest.
//
//	everyone:  disallow index /*/drafts/     ACAP-disallow-index: /*/drafts/
//	everyone:  allow index /news/         →  ACAP-allow-index: /news/
//	                                         ACAP-disallow-index: /news/drafts/   (which /news/ would win over)
//	                                         ACAP-disallow-index: /news/*/drafts/
type fieldSolver struct {
	*writer
	class      *policy.Class
	usage      policy.Usage
	statements []conditional
	claims     []claim
	given      int       // number of claims made from the statements
	written    solve.Set // the patterns of claims
	folded     solve.Set // the folded patterns of claims
	qualified  bool      // at least one statement has qualifiers
	wild       int       // the work of one lookup in a set, in steps of the budget
	room       int       // number of claims that may still be added
}

func (w *writer) fields(c *policy.Class, u policy.Usage, everyone bool) (fields []field) {
	s := fieldSolver{writer: w, class: c, usage: u, statements: w.statements(c, u), wild: 1, room: maxAdded}
	for i := range s.statements {
		st := &s.statements[i]
		s.qualified = s.qualified || st.Statement.Qualifiers != nil
		for _, p := range st.Statement.Pattern.Rooted() {
			s.add(p.Plain(), st.Statement.Allow, st.condition, []*conditional{st})
		}
	}
	if u == policy.Crawl && w.other && everyone {
		// In ACAP, "other" includes all usages that are not explicitly permitted (section 2.5.6). In a policy, "other"
		// never includes "crawl", so permit crawling explicitly.
		s.add(pathpattern.All, true, "", nil)
	}
	s.given = len(s.claims)
	for i := range s.claims {
		if s.claims[i].folded.Wild() {
			s.wild++
		}
	}
	s.dropDecided()
	s.narrow()
	s.prohibitUnready()
	s.verify()
	if w.budget.Exceeded() {
		if len(s.statements) == 0 {
			return nil
		}
		w.problem(policy.NewProblem(policy.Error, "acap-cross", s.statements[0].Statement.Pos,
			"too many paths with * overlap here for ACAP records to express which one wins; write fewer of them, or write \"acap: off\" under publish"))
		return nil
	}
	for i := range s.claims {
		if c := &s.claims[i]; !c.gone {
			fields = append(fields, field{claim: *c, usage: u})
		}
	}
	for i := range s.statements {
		w.checkQualifiers(c, &s.statements[i], u)
	}
	return fields
}

func (s *fieldSolver) add(p pathpattern.Pattern, allow bool, condition string, from []*conditional) {
	c := claim{pattern: p, folded: Fold(p), allow: allow, condition: condition, from: from, added: s.given > 0}
	if allow {
		_, c.quals, c.ambiguous = s.decide(p, condition)
	}
	s.written.Add(c.pattern, len(s.claims))
	s.folded.Add(c.folded, len(s.claims))
	s.claims = append(s.claims, c)
}

var ever = time.Date(9999, 12, 31, 0, 0, 0, 0, time.UTC)

// decide returns the policy's decision about paths that match a pattern but no narrower one, and the printed qualifiers
// of that decision. The qualifiers are ambiguous if two of them differ and neither is stricter. They are also ambiguous
// if a permission without a date depends on a permission with a date.
func (s *fieldSolver) decide(at pathpattern.Pattern, condition string) (d policy.Decision, quals string, ambiguous bool) {
	s.budget.Spend(s.wild)
	q := s.class.Query(s.host, s.usage, "")
	if condition != "" {
		q.Purposes = strings.Split(condition, "\n")
	}
	if d = s.p.DecideAt(q, at); d.Verdict != policy.Allowed {
		return d, "", false
	}
	quals, ok := qualifiersOf(d.Qualifiers(), s.usage)
	ends := strings.Contains(quals, "time-limit=until-2") || strings.Contains(quals, "time-limit=until-1")
	q.Now = ever
	return d, quals, !ok || !ends && s.p.DecideAt(q, at).Verdict == policy.Disallowed
}

// overrides reports whether a permission wins over a prohibition in the policy.
func (s *fieldSolver) overrides(a, d *claim) bool {
	return slices.ContainsFunc(a.from, func(f *conditional) bool { return s.p.Overrides(&f.Applied, &d.from[0].Applied) })
}

// dropDecided drops claims that never decide.
func (s *fieldSolver) dropDecided() {
	for i := range s.claims {
		if !s.budget.Spend(s.wild) {
			return
		}
		c := &s.claims[i]
		c.gone = slices.ContainsFunc(s.written.Covering(c.pattern), func(j int) bool {
			d := &s.claims[j]
			return j != i && !d.gone && d.appliesWith(c) && s.decidesFor(d, c, j < i)
		})
	}
	s.repeat()
}

// repeat adds a prohibition of a presentation where Present is allowed, if a wider prohibition of the presentation
// applies there. Some readers treat a permission of Present as a permission of each presentation, which would be
// narrower than the wider prohibition (sections 2.4.5 and 2.5.5).
//
//	allow present /photos/            ACAP-allow-present: /photos/
//	disallow present-oldcopy /   →    ACAP-disallow-present-oldcopy: /
//	                                  ACAP-disallow-present-oldcopy: /photos/
func (s *fieldSolver) repeat() {
	for i := range s.claims {
		c := &s.claims[i]
		if !c.gone || !c.allow || len(c.from) == 0 || c.from[0].Direct || !s.budget.Spend(s.wild) {
			continue
		}
		for _, j := range s.written.Covering(c.pattern) {
			if d := &s.claims[j]; !d.gone && !d.allow && d.pattern != c.pattern && d.appliesWith(c) && !s.overrides(c, d) {
				c.allow, c.gone, c.quals, c.ambiguous, c.from = false, false, "", false, d.from
				break
			}
		}
	}
}

// decidesFor reports whether c never decides because d covers it.
func (s *fieldSolver) decidesFor(d, c *claim, first bool) bool {
	switch {
	case c.allow && d.allow:
		return len(c.from) > 0 && len(d.from) > 0 && s.p.SetsAside(&d.from[0].Applied, &c.from[0].Applied)
	case c.allow: // where another permission wins over d, the qualifiers of c apply
		return !s.overrides(c, d) && !s.opened(d)
	case d.allow:
		return s.overrides(d, c)
	}
	// One of two prohibitions with the same pattern is enough.
	return first && c.pattern == d.pattern && c.condition == d.condition && s.sameOverrides(c, d)
}

// opened reports whether some permission wins over a prohibition.
func (s *fieldSolver) opened(d *claim) bool {
	return slices.ContainsFunc(s.claims, func(a claim) bool { return a.allow && s.overrides(&a, d) })
}

// sameOverrides reports whether the same permissions win over two prohibitions.
func (s *fieldSolver) sameOverrides(c, d *claim) bool {
	return !slices.ContainsFunc(s.claims, func(a claim) bool { return a.allow && s.overrides(&a, c) != s.overrides(&a, d) })
}

// field is a claim with its usage.
type field struct {
	claim
	usage policy.Usage
}

func (f *field) statement() *policy.Statement {
	if len(f.from) == 0 {
		return nil
	}
	return f.from[0].Statement
}
