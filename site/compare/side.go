// SPDX-License-Identifier: Apache-2.0

package compare

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/robotspolicy/caddy-robots-policy/pathpattern"
	"github.com/robotspolicy/caddy-robots-policy/policy"
	"github.com/robotspolicy/caddy-robots-policy/policy/solve"
)

// side is what one of the policies states about a usage to a subject.
type side struct {
	p          *policy.Policy
	usage      policy.Usage
	statements []statement
	direct     int       // so many are about the usage; those after them, about Other, count where none of these matches
	set        solve.Set // of statements
}

// statement is one of a side.
type statement struct {
	policy.Applied
	prohibits bool // it disallows, or allows until a date that has passed
	mode      policy.Mode
	undone    []int // the statements that undo the prohibition, when asked is set
	asked     bool
}

func newSide(p *policy.Policy, c *policy.Class, u policy.Usage, identity policy.Identity, purpose string, at time.Time) *side {
	s := &side{p: p, usage: u}
	add := func(u policy.Usage) {
		for _, a := range p.Statements(c, u, purpose) {
			if !a.Rule.Identity.MetBy(identity) {
				continue
			}
			q := a.Statement.Qualifiers
			prohibits := !a.Statement.Allow || q != nil && q.TimeLimit.Passed(at)
			s.statements = append(s.statements, statement{Applied: a, prohibits: prohibits, mode: p.Mode(policy.Decision{Rule: a.Rule})})
		}
	}
	add(u)
	s.direct = len(s.statements)
	if u != policy.Crawl && u != policy.Other {
		add(policy.Other)
	}
	return s
}

// key tells what the side states from what another one states.
func (s *side) key() string {
	lines := make([]string, len(s.statements))
	for i := range s.statements {
		st := &s.statements[i]
		lines[i] = fmt.Sprintf("%t %d %q %d %d %t %v %q %t %d", i < s.direct, st.Audience.Kind, st.Audience.Name, st.Tier, st.Host, st.Direct,
			st.prohibits, st.Statement.Qualifiers.Strings(), st.Statement.Allow, st.mode) + st.Statement.Pattern.String()
	}
	slices.Sort(lines)
	return strings.Join(slices.Compact(lines), "\n")
}

// indexed prepares the side for questions.
func (s *side) indexed() *side {
	for i := range s.statements {
		s.set.Add(s.statements[i].Statement.Pattern, i)
	}
	return s
}

// covering lists the statements that hold for all of a region.
func (s *side) covering(r pathpattern.Pattern) []int { return s.set.Covering(r) }

// covered is covering without statements about Other where there are others.
func (s *side) covered(r pathpattern.Pattern) []int {
	ids := s.covering(r)
	if slices.ContainsFunc(ids, func(i int) bool { return i < s.direct }) {
		ids = slices.DeleteFunc(ids, func(i int) bool { return i >= s.direct })
	}
	return ids
}

// undoes reports whether statement a undoes prohibition d where both match.
func (s *side) undoes(a, d int) bool {
	x, y := &s.statements[a], &s.statements[d]
	switch {
	case a < s.direct && d >= s.direct:
		return true
	case x.prohibits || (a < s.direct) != (d < s.direct):
		return false
	case y.Statement.Allow:
		return s.p.SetsAside(&x.Applied, &y.Applied)
	}
	return s.p.Overrides(&x.Applied, &y.Applied)
}

// undoing lists the statements that undo a prohibition somewhere.
func (s *side) undoing(d int, budget *solve.Budget) []int {
	st := &s.statements[d]
	if !st.asked {
		st.asked = true
		all := s.set.Overlapping(st.Statement.Pattern)
		budget.Spend(len(all))
		st.undone = slices.DeleteFunc(all, func(a int) bool { return a == d || !s.undoes(a, d) })
	}
	return st.undone
}

// standing returns a prohibition of at least a mode that holds for all of a region
// and that nothing which holds for all of it undoes.
func (s *side) standing(r pathpattern.Pattern, least policy.Mode) (int, bool) {
	ids := s.covered(r)
	for _, d := range ids {
		if st := &s.statements[d]; st.prohibits && st.mode >= least && !slices.ContainsFunc(ids, func(a int) bool { return a != d && s.undoes(a, d) }) {
			return d, true
		}
	}
	return 0, false
}

// state is the decision about paths that match a region and of the side's patterns
// only those that cover it.
type state struct {
	verdict policy.Verdict
	limits  string
}

// String is the state in words: "allowed, max-snippet=50".
func (s state) String() string {
	if s.limits != "" {
		return s.verdict.String() + ", " + s.limits
	}
	return s.verdict.String()
}

func (s *side) state(r pathpattern.Pattern) state {
	if _, ok := s.standing(r, policy.ModeUnset); ok {
		return state{verdict: policy.Disallowed}
	}
	ids := s.covered(r)
	if len(ids) == 0 && s.usage != policy.Crawl {
		return state{verdict: policy.Unstated}
	}
	return state{policy.Allowed, strings.Join(s.limits(ids).Strings(), ", ")}
}

// limits are those of the permissions that no other of ids sets aside.
func (s *side) limits(ids []int) (limits policy.Limits) {
	for _, b := range ids {
		y := &s.statements[b]
		if q := y.Statement.Qualifiers; q == nil || y.prohibits || slices.Contains(limits, q) {
			continue
		}
		if !slices.ContainsFunc(ids, func(a int) bool {
			x := &s.statements[a]
			return !x.prohibits && s.p.SetsAside(&x.Applied, &y.Applied)
		}) {
			limits = append(limits, y.Statement.Qualifiers)
		}
	}
	return limits
}
