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

// conditional is a statement that applies to some purposes only, or to all.
type conditional struct {
	policy.Applied
	condition string // the purposes of its sub-record in lower case, one a line, or "" if there is none
}

// statements lists the statements to a class about a usage, with the conditions of their rules. These
// are usage purposes, and purposes in the rules' audience that no crawler of the class is known for.
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
			if !has(&a) { // it is for the purpose, by which no crawler of the class is known
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
	folded    pathpattern.Pattern // as ACAP compares it
	allow     bool
	quals     string // of a permission, as they are printed
	condition string
	from      []*conditional // what it stands for: of a prohibition one, of a permission any number
	ambiguous bool           // a permission whose qualifiers ACAP cannot state together
	added     bool           // for where two patterns cross
	gone      bool
}

func (c *claim) appliesWith(d *claim) bool { return c.condition == "" || c.condition == d.condition }

// fieldSolver finds the claims of one usage in a record that mean what the policy means under ACAP's
// rule: the narrowest scope decides, and what cannot be decided is prohibited (section 2.4.5).
//
//	everyone:  disallow index /*/drafts/     ACAP-disallow-index: /*/drafts/
//	everyone:  allow index /news/         →  ACAP-allow-index: /news/
//	                                         ACAP-disallow-index: /news/drafts/   (which /news/ would win over)
//	                                         ACAP-disallow-index: /news/*/drafts/
type fieldSolver struct {
	*writer
	usage      policy.Usage
	statements []conditional
	claims     []claim
	given      int       // claims that the statements make
	stated     solve.Set // the patterns of statements
	written    solve.Set // those of claims
	folded     solve.Set // those of claims, as ACAP compares them
	wild       int       // the work of one question to a set
	room       int       // claims that may still be added
}

func (w *writer) fields(c *policy.Class, u policy.Usage, everyone bool) (fields []field) {
	s := fieldSolver{writer: w, usage: u, statements: w.statements(c, u), wild: 1, room: maxAdded}
	for i := range s.statements {
		st := &s.statements[i]
		s.stated.Add(st.Statement.Pattern, i)
		for _, p := range st.Statement.Pattern.Rooted() {
			s.add(p.Plain(), st.Statement.Allow, st.condition, []*conditional{st})
		}
	}
	if u == policy.Crawl && w.other && everyone {
		// Other covers what is not explicitly permitted (section 2.5.6), but in the policy never crawl.
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
		c.quals, c.ambiguous = s.qualifiers(from)
	}
	s.written.Add(c.pattern, len(s.claims))
	s.folded.Add(c.folded, len(s.claims))
	s.claims = append(s.claims, c)
}

// decide is the policy's decision where exactly these statements apply.
func (s *fieldSolver) decide(from []*conditional, now time.Time) policy.Decision {
	matching := make([]policy.Applied, len(from))
	for i, f := range from {
		matching[i] = f.Applied
	}
	return s.p.Outcome(matching, now)
}

var ever = time.Date(9999, 12, 31, 0, 0, 0, 0, time.UTC)

// qualifiers prints those that hold where exactly these statements apply. They are ambiguous if of two
// neither is stricter, or if a permission without a date depends on one with a date.
func (s *fieldSolver) qualifiers(from []*conditional) (text string, ambiguous bool) {
	text, ok := qualifiersOf(s.decide(from, time.Time{}).Qualifiers(), s.usage)
	ends := strings.Contains(text, "time-limit=until-2") || strings.Contains(text, "time-limit=until-1")
	return text, !ok || !ends && s.decide(from, ever).Verdict == policy.Disallowed
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

// repeat repeats a prohibition where Present is allowed. Some readers treat a permission of Present as a permission of
// each presentation, and find it narrower than the prohibition of that presentation (sections 2.4.5 and 2.5.5).
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
	case c.allow: // its qualifiers hold where another permission opens the same
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

// field is a claim about a usage.
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
