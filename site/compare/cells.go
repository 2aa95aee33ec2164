// SPDX-License-Identifier: Apache-2.0

package compare

import (
	"fmt"
	"slices"
	"strings"

	"github.com/robotspolicy/caddy-robots-policy/pathpattern"
	"github.com/robotspolicy/caddy-robots-policy/policy"
	"github.com/robotspolicy/caddy-robots-policy/policy/solve"
)

// states are the decisions of both policies about the paths of a pattern. The zero value means that the decisions do
// not differ, because both policies have the same statements about the paths.
type states struct{ old, now state }

func (x states) differs() bool { return !x.old.same(x.now) }

func (x states) same(y states) bool { return x.old.same(y.old) && x.now.same(y.now) }

// alike reports whether the states are the same and, if they disallow the paths, come from the same statements. For
// example, two disallow entries for the same paths are not alike, because an allow entry may override only one of them.
func (x states) alike(y states) bool {
	return x.same(y) && (!x.old.closed() || x.old.by == y.old.by) && (!x.now.closed() || x.now.by == y.now.by)
}

// cell is a pattern with states. The states apply to the paths that no narrower cell matches.
type cell = solve.Cell[states]

// cells returns patterns with the decisions of both policies about their paths. a and b are the sides of the old and
// the new policy. If both policies have the same statements about some paths, cells skips these paths.
func (c *comparison) cells(a, b *side) []cell {
	var changed solve.Set
	given := union(a.index(b), b.index(a))
	for _, s := range []*side{a, b} {
		for p, all := range s.at {
			if slices.ContainsFunc(all, func(st *statement) bool { return st.only }) {
				changed.Add(p, 0)
			}
		}
	}
	given = slices.DeleteFunc(given, func(p pathpattern.Pattern) bool { return len(changed.Overlapping(p)) == 0 })
	exceptions := 0
	return solved(c, given, func(p pathpattern.Pattern) (x states) {
		if len(changed.Covering(p)) == 0 {
			return states{}
		}
		if x = (states{a.state(p), b.state(p)}); !x.differs() {
			exceptions++
			if !x.old.closed() {
				return states{}
			}
		}
		return x
	}, func(x *cell) func(pathpattern.Pattern) bool {
		switch {
		case x.Value.differs():
			return func(p pathpattern.Pattern) bool {
				return exceptions < maxExceptions && (a.matters(x.Value.old, p) || b.matters(x.Value.now, p))
			}
		case x.Order >= len(given): // the cell was added as an exception from a change, and needs no exceptions itself
			return nil
		case x.Value == states{}:
			added := [2][]*statement{a.added(x.Pattern), b.added(x.Pattern)}
			if len(added[0])+len(added[1]) == 0 {
				return nil
			}
			return func(p pathpattern.Pattern) bool { return a.adds(added[0], p) || b.adds(added[1], p) }
		}
		return func(p pathpattern.Pattern) bool { return a.matters(x.Value.old, p) || b.matters(x.Value.now, p) }
	})
}

// maxExceptions limits how many patterns inside the changed paths are recognized as unchanged. Patterns beyond this
// limit are reported as changed.
const maxExceptions = 2000

// said is the constraint for types that hold what both policies say about the paths of a pattern: decisions (see
// states) or lines (see values).
type said[V any] interface {
	differs() bool
	same(V) bool
	alike(V) bool
}

// solved divides the paths that the given patterns match into cells, so that all paths of a cell have the same value. A
// path belongs to the narrowest cell that matches it.
func solved[V said[V]](c *comparison, given []pathpattern.Pattern, value func(pathpattern.Pattern) V, matters func(*solve.Cell[V]) func(pathpattern.Pattern) bool) []solve.Cell[V] {
	cells, ok := (&solve.Form[V]{
		Value: value, Matters: matters, Budget: c.budget, Added: 10 * maxExceptions,
		Same:  func(x, y V) bool { return !x.differs() && !y.differs() || x.same(y) },
		Alike: func(x, y V) bool { return !x.differs() && !y.differs() || x.alike(y) },
		Beats: func(x, y *solve.Cell[V]) bool { return y.Pattern.Covers(x.Pattern) },
		Keep:  func(*solve.Cell[V]) bool { return true }, // keep redundant cells too, because the result lists all cells
		Unsaid: func(x, m *solve.Cell[V]) bool {
			c.partial = c.partial || !x.Value.differs() && (m == nil || m.Value.differs())
			return false
		},
	}).Cells(given)
	c.partial = c.partial || !ok
	return cells
}

// side holds one policy's statements about a usage for a subject.
type side struct {
	p          *policy.Policy
	q          policy.Query
	statements []statement
	lines      map[string]bool                      // the field "line" of all statements
	at         map[pathpattern.Pattern][]*statement // statements by their rooted patterns
	other      bool                                 // some statements are for the usage "other"
}

type statement struct {
	policy.Applied
	line string // a text that is equal for equal statements of both policies
	only bool   // the other policy does not have this statement
}

// newSide returns a side with the statements of the policy p that apply to the crawlers in c. q contains the usage, the
// identity and at most one purpose. newSide ignores the crawler in q.
func newSide(p *policy.Policy, c *policy.Class, q policy.Query) *side {
	purpose := ""
	if len(q.Purposes) > 0 {
		purpose = q.Purposes[0]
	}
	q.Crawler = 0
	if len(c.Crawlers) > 0 {
		q.Crawler = c.Crawlers[0]
	}
	s := &side{p: p, q: q}
	usages := []policy.Usage{q.Usage}
	if q.Usage != policy.Crawl {
		usages = append(usages, policy.Other)
	}
	for _, u := range usages {
		for _, a := range p.Statements(c, u, purpose) {
			if a.Rule.Identity.MetBy(q.Identity) {
				s.statements = append(s.statements, statement{Applied: a})
				s.other = s.other || u == policy.Other
			}
		}
	}
	return s
}

// index returns the patterns of all statements of s. It also fills s.at, which the methods matters and adds read, and
// sets the field "only" of each statement that other does not have. Call the method key of s and of other first,
// because index compares the lines that key stores.
func (s *side) index(other *side) (patterns []pathpattern.Pattern) {
	s.at = map[pathpattern.Pattern][]*statement{}
	for i := range s.statements {
		st := &s.statements[i]
		st.only = !other.lines[st.line]
		for _, p := range st.Statement.Pattern.Rooted() {
			s.at[p.Plain()] = append(s.at[p.Plain()], st)
			patterns = append(patterns, p.Plain())
		}
	}
	return patterns
}

// added lists the allow entries with the pattern p that are only in the policy of s.
func (s *side) added(p pathpattern.Pattern) (all []*statement) {
	for _, a := range s.at[p] {
		if a.only && s.allows(a.Statement) {
			all = append(all, a)
		}
	}
	return all
}

// adds reports whether one of the allow entries in added, which only the policy of s has, can change the effect of a
// statement with the pattern given. It ignores disallow entries that only the policy of s has, because cells finds
// their paths anyway.
func (s *side) adds(added []*statement, given pathpattern.Pattern) bool {
	return slices.ContainsFunc(added, func(a *statement) bool {
		return slices.ContainsFunc(s.at[given], func(x *statement) bool {
			if s.allows(x.Statement) {
				return x.Statement.Qualifiers != nil || a.Statement.Qualifiers != nil || s.other
			}
			return s.other || x.Statement.Allow || !x.only && s.p.Overrides(&a.Applied, &x.Applied)
		})
	})
}

// matters reports whether a statement with the pattern given can change the state is, which applies to the paths of a
// wider pattern.
func (s *side) matters(is state, given pathpattern.Pattern) bool {
	return slices.ContainsFunc(s.at[given], func(st *statement) bool {
		allows := s.allows(st.Statement)
		switch {
		case s.other:
			return true
		case is.closed() && allows:
			return s.overrides(&st.Applied, &is.by)
		case is.closed():
			return s.p.Mode(policy.Decision{Rule: st.Rule}) > is.mode
		case !allows:
			return !s.overrides(&is.by, &st.Applied)
		}
		return st.Statement.Qualifiers != nil || is.limits != "" || is.verdict == policy.Unstated
	})
}

// overrides reports whether the allow entry a can override d. d is a disallow entry, or an allow entry whose end date
// has passed. An entry whose end date has passed is always overridden.
func (s *side) overrides(a, d *policy.Applied) bool {
	if a.Statement == nil || d.Statement == nil {
		return false
	}
	return d.Statement.Allow || s.p.Overrides(a, d)
}

// key fills s.lines and returns a text that is equal for sides with equal statements.
func (s *side) key() string {
	s.lines = map[string]bool{}
	for i := range s.statements {
		st := &s.statements[i]
		st.line = fmt.Sprintf("%t %d %q %d %d %t %q %t %t %d %s", st.Statement.Usage == policy.Other, st.Audience.Kind, st.Audience.Name, st.Tier, st.Host, st.Direct,
			st.Statement.Qualifiers.Strings(), s.isOver(st.Statement), st.Statement.Allow, s.p.Mode(policy.Decision{Rule: st.Rule}), st.Statement.Pattern)
		s.lines[st.line] = true
	}
	return strings.Join(sortedKeys(s.lines), "\n")
}

// allows reports whether a statement is an allow entry, and does not have an end date in the past.
func (s *side) allows(st *policy.Statement) bool { return st.Allow && !s.isOver(st) }

// isOver reports whether the end date of a statement has passed.
func (s *side) isOver(st *policy.Statement) bool {
	return st.Qualifiers != nil && st.Qualifiers.TimeLimit.Passed(s.q.Now)
}

// state is the decision about the paths of a pattern.
type state struct {
	verdict policy.Verdict
	limits  string
	mode    policy.Mode    // the mode for a disallowed path
	by      policy.Applied // the deciding statement
}

func (s *side) state(at pathpattern.Pattern) state {
	d := s.p.DecideAt(s.q, at)
	if d.Verdict == policy.Disallowed {
		return state{verdict: d.Verdict, mode: s.p.Mode(d), by: d.Applied()}
	}
	if s.q.Usage == policy.Crawl {
		d.Verdict = policy.Allowed // crawling is allowed unless a statement disallows it
	}
	return state{verdict: d.Verdict, limits: strings.Join(d.Qualifiers().Strings(), ", "), by: d.Applied()}
}

// String returns the state in words, such as "allowed, max-snippet=50".
func (s state) String() string {
	if s.limits != "" {
		return s.verdict.String() + ", " + s.limits
	}
	return s.verdict.String()
}

func (s state) same(o state) bool {
	return s.verdict == o.verdict && s.limits == o.limits && s.mode == o.mode
}

func (s state) closed() bool { return s.verdict == policy.Disallowed }
