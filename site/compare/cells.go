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

// cell is a pattern with what both policies say about a path that it matches and, of their patterns, only those that
// cover it.
type cell struct {
	at       pathpattern.Pattern
	old, now state
	told     bool // each way to it leads from a cell that differs, and it differs in the same way or not at all
}

func (x *cell) differs() bool { return !x.old.same(x.now) }

// open reports whether both sides leave the paths open in the same way. An addition by a statement of one side alone is
// found where that statement begins.
func (x *cell) open() bool { return !x.differs() && !x.old.closed() }

// cells are patterns. The narrowest one that matches a path tells what both sides say about it, as far as they may
// differ. About paths that only statements of both sides match, both say the same. A pattern that changes the answer
// for a cell makes another one where the two meet.
func (c *comparison) cells(a, b *side) []cell {
	w := walk{comparison: c, a: a, b: b, known: map[pathpattern.Pattern]int{}}
	w.given = union(a.index(), b.index())
	for i, p := range w.given {
		w.set.Add(p, i)
	}
	for _, sides := range [][2]*side{{a, b}, {b, a}} {
		for _, line := range sortedKeys(sides[0].lines) {
			if st := sides[0].lines[line]; sides[1].lines[line] == nil {
				for _, p := range st.Statement.Pattern.Rooted() {
					w.start(p.Plain(), st, sides[0], sides[1])
				}
			}
		}
	}
	for n := 0; n < len(w.queue); n++ {
		if x := w.all[w.queue[n]]; !x.open() {
			w.expand(x, func(p pathpattern.Pattern) bool { return a.matters(x.old, p) || b.matters(x.now, p) })
		}
	}
	return w.all
}

// maxCells bounds the cells of one usage, and maxTold the ones that are exceptions from others.
const (
	maxCells = 20_000
	maxTold  = 2_000

	costOfState = 10 // of asking both policies, in the budget's steps
)

// walk finds the cells of two sides.
type walk struct {
	*comparison

	a, b  *side
	all   []cell
	known map[pathpattern.Pattern]int
	queue []int // cells to be looked at
	told  int   // exceptions that were found
	given []pathpattern.Pattern
	set   solve.Set // of given
}

// start reaches the cells of a statement that only one side has. Its permission can only change a path where it
// overrides a prohibition of both sides, or sets something aside.
func (w *walk) start(p pathpattern.Pattern, st *policy.Applied, of, to *side) {
	w.reach(p, nil)
	if x := w.all[w.known[p]]; x.open() && of.allows(st.Statement) {
		w.expand(x, func(p pathpattern.Pattern) bool {
			return slices.ContainsFunc(of.at[p], func(other *policy.Applied) bool {
				if of.allows(other.Statement) {
					return other.Statement.Qualifiers != nil || st.Statement.Qualifiers != nil || of.other
				}
				return of.other || other.Statement.Allow || to.lines[of.line(other)] != nil && of.p.Overrides(st, other)
			})
		})
	}
}

// reach adds a cell, or notes another way to it.
func (w *walk) reach(p pathpattern.Pattern, from *cell) {
	i, ok := w.known[p]
	if !ok {
		i = len(w.all)
		w.known[p] = i
		w.all = append(w.all, cell{p, w.a.state(p), w.b.state(p), true})
	}
	x := &w.all[i]
	told := from != nil && from.differs() && (!x.differs() || x.old.same(from.old) && x.now.same(from.now))
	if told && !ok {
		w.told++
	}
	if x.told && !told {
		x.told = false
		w.queue = append(w.queue, i)
	}
}

// expand reaches the cells where patterns that matter meet x. Those of a cell that differs are exceptions from it: what
// differs in another way is reached from the statement that makes it so.
func (w *walk) expand(x cell, matters func(pathpattern.Pattern) bool) {
	overlapping := w.set.Overlapping(x.at)
	for _, j := range overlapping {
		switch {
		case x.differs() && w.told > maxTold:
			return
		case !w.budget.Spend(1) || len(w.all) > maxCells:
			w.partial = true
			return
		}
		p := w.given[j]
		if p.Covers(x.at) || !matters(p) {
			continue
		}
		meet, ok := []pathpattern.Pattern{p}, true
		if !x.at.Covers(p) {
			meet, ok = pathpattern.Intersect(x.at, p, maxCrossing)
		}
		w.partial = w.partial || !ok && !x.differs()
		for _, m := range meet {
			w.budget.Spend(costOfState + len(overlapping)/4)
			if _, ok := w.known[m]; ok || w.a.state(m) != x.old || w.b.state(m) != x.now {
				w.reach(m, &x)
			}
		}
	}
}

// side holds one policy's statements about a usage for a subject.
type side struct {
	p          *policy.Policy
	q          policy.Query
	statements []policy.Applied
	lines      map[string]*policy.Applied                // by what they say
	at         map[pathpattern.Pattern][]*policy.Applied // by their rooted patterns
	other      bool                                      // some are about other usages, and apply where none is about this one
}

func newSide(p *policy.Policy, c *policy.Class, q policy.Query) *side {
	s := &side{p: p, q: q}
	s.q.Crawler = 0
	if len(c.Crawlers) > 0 {
		s.q.Crawler = c.Crawlers[0]
	}
	purpose := ""
	if len(q.Purposes) > 0 {
		purpose = q.Purposes[0]
	}
	usages := []policy.Usage{q.Usage}
	if q.Usage != policy.Crawl {
		usages = append(usages, policy.Other)
	}
	for _, u := range usages {
		for _, a := range p.Statements(c, u, purpose) {
			if a.Rule.Identity.MetBy(q.Identity) {
				s.statements = append(s.statements, a)
				s.other = s.other || u == policy.Other
			}
		}
	}
	s.lines = map[string]*policy.Applied{}
	for i := range s.statements {
		s.lines[s.line(&s.statements[i])] = &s.statements[i]
	}
	return s
}

// index fills what matters needs, and returns the patterns.
func (s *side) index() (patterns []pathpattern.Pattern) {
	s.at = map[pathpattern.Pattern][]*policy.Applied{}
	for i := range s.statements {
		st := &s.statements[i]
		for _, p := range st.Statement.Pattern.Rooted() {
			s.at[p.Plain()] = append(s.at[p.Plain()], st)
			patterns = append(patterns, p.Plain())
		}
	}
	return patterns
}

// matters reports whether a statement about a pattern can change a state.
func (s *side) matters(is state, given pathpattern.Pattern) bool {
	return slices.ContainsFunc(s.at[given], func(st *policy.Applied) bool {
		allows := s.allows(st.Statement)
		switch {
		case s.other:
			return true
		case is.closed() && allows:
			return s.overrides(st.Statement, is.by)
		case is.closed():
			return s.p.Mode(policy.Decision{Rule: st.Rule}) > is.mode
		case !allows:
			return !s.overrides(is.by, st.Statement)
		}
		return st.Statement.Qualifiers != nil || is.limits != "" || is.verdict == policy.Unstated
	})
}

// overrides reports whether an allow entry may override a disallow entry.
func (s *side) overrides(a, d *policy.Statement) bool {
	if a == nil || d == nil {
		return false
	}
	of := func(st *policy.Statement) (all []*policy.Applied) {
		for _, x := range s.at[st.Pattern.Rooted()[0].Plain()] {
			if x.Statement == st {
				all = append(all, x)
			}
		}
		return all
	}
	denials := of(d)
	return slices.ContainsFunc(of(a), func(a *policy.Applied) bool {
		return slices.ContainsFunc(denials, func(d *policy.Applied) bool { return d.Statement.Allow || s.p.Overrides(a, d) })
	})
}

// line describes a statement, to compare it with statements of another policy.
func (s *side) line(st *policy.Applied) string {
	return fmt.Sprintf("%t %d %q %d %d %t %q %t %t %d %s", st.Statement.Usage == policy.Other, st.Audience.Kind, st.Audience.Name, st.Tier, st.Host, st.Direct,
		st.Statement.Qualifiers.Strings(), s.isOver(st.Statement), st.Statement.Allow, s.p.Mode(policy.Decision{Rule: st.Rule}), st.Statement.Pattern)
}

// key tells what the side states from what another one states.
func (s *side) key() string { return strings.Join(sortedKeys(s.lines), "\n") }

// allows reports whether a statement allows, and no date ends that.
func (s *side) allows(st *policy.Statement) bool { return st.Allow && !s.isOver(st) }

// isOver reports whether a statement allows until a date that has passed.
func (s *side) isOver(st *policy.Statement) bool {
	return st.Qualifiers != nil && st.Qualifiers.TimeLimit.Passed(s.q.Now)
}

// state is the decision about the paths of a pattern.
type state struct {
	verdict policy.Verdict
	limits  string
	mode    policy.Mode       // of a disallowed path
	by      *policy.Statement // that decides
}

func (s *side) state(at pathpattern.Pattern) state {
	d := s.p.DecideAt(s.q, at)
	if d.Verdict == policy.Disallowed {
		return state{verdict: d.Verdict, mode: s.p.Mode(d), by: d.Statement}
	}
	if s.q.Usage == policy.Crawl {
		d.Verdict = policy.Allowed // because nothing disallows it
	}
	return state{verdict: d.Verdict, limits: strings.Join(d.Qualifiers().Strings(), ", "), by: d.Statement}
}

// String is the state in words: "allowed, max-snippet=50".
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
