// SPDX-License-Identifier: Apache-2.0

package compare

import (
	"cmp"
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

// state is the decision about paths that match a region and of the side's patterns only those that cover it.
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

// maxSampled bounds the patterns about which lines other than decisions are asked.
const maxSampled = 2000

// lines compares what is said to a subject beside decisions: crawl-delays, limits,
// application directives and rules of engines.
func (c *comparison) lines(s *subject, host string, id policy.Identity, purpose string) (all []record) {
	// compare asks both what they say about the paths of a pattern, "" for nothing.
	compare := func(name string, r pathpattern.Pattern, says func(*policy.Policy, policy.Query) string) {
		q := policy.Query{Host: host, Path: sample(r, c.fill), Identity: id, Now: c.at}
		if purpose != "" {
			q.Purposes = []string{purpose}
		}
		q.Crawler = s.ids[0]
		old := cmp.Or(says(c.old, q), noValue)
		q.Crawler = s.ids[1]
		now := cmp.Or(says(c.now, q), noValue)
		if old == now {
			return
		}
		i := slices.IndexFunc(all, func(r record) bool { return r.usages[0] == name && r.old == old && r.now == now })
		if i < 0 {
			i = len(all)
			all = append(all, record{effect: Line, usages: []string{name}, old: old, now: now})
		}
		all[i].paths = append(all[i].paths, r)
	}
	compare("crawl-delay", pathpattern.All, func(p *policy.Policy, q policy.Query) string {
		if r := p.CrawlDelay(q); r != nil {
			return r.CrawlDelay.String()
		}
		return ""
	})
	compare("limit", pathpattern.All, func(p *policy.Policy, q policy.Query) string {
		if r := p.Limit(q); r != nil {
			if r.Limit.Burst != r.Limit.Requests {
				return fmt.Sprintf("%s, %d at once", r.Limit, r.Limit.Burst)
			}
			return r.Limit.String()
		}
		return ""
	})
	if apps := union(c.old.Apps(), c.now.Apps()); len(apps) > 0 {
		patterns := c.spokenOf(func(r *policy.Rule) (all []pathpattern.Pattern) {
			for _, d := range r.AppDirectives {
				all = append(all, d.Pattern)
			}
			return all
		})
		for _, app := range apps {
			for _, r := range patterns {
				compare("app-directives", r, func(p *policy.Policy, q policy.Query) string {
					if d := p.AppDirective(q, app); d != nil && d.Text != d.App { // the name alone directs to nothing
						return d.Text
					}
					return ""
				})
			}
		}
	}
	if names := union(c.old.EngineRuleNames(), c.now.EngineRuleNames()); len(names) > 0 {
		patterns := c.spokenOf(func(r *policy.Rule) (all []pathpattern.Pattern) {
			for _, e := range r.EngineRules {
				all = append(all, e.Pattern)
			}
			return all
		})
		for _, name := range names {
			for _, r := range patterns {
				compare(name, r, func(p *policy.Policy, q policy.Query) string {
					set, _, _ := p.EngineRule(q, name)
					return set.String()
				})
			}
		}
	}
	for i := range all {
		all[i].paths = widest(all[i].paths)
	}
	return all
}

// spokenOf lists patterns of rules of either policy, and what two of them have in common.
func (c *comparison) spokenOf(patterns func(*policy.Rule) []pathpattern.Pattern) []pathpattern.Pattern {
	var all []pathpattern.Pattern
	for _, p := range []*policy.Policy{c.old, c.now} {
		rules := p.Spec().Rules
		for i := range rules {
			for _, x := range patterns(&rules[i]) {
				all = append(all, x.Rooted()...)
			}
		}
	}
	given := union(all, nil)
	all = given
	for i := range given {
		if all = append(all, c.crossings(given[i:i+1], given[i+1:])...); len(all) > maxSampled {
			c.budget.Exceeded = true
			return all[:maxSampled]
		}
	}
	return union(all, nil)
}

// noValue stands for the value of a line that is not there.
const noValue = "none"

// sample is a path that a pattern matches, and that other patterns match only where they
// cover it: fill, which no pattern has, stands for each "*".
func sample(p pathpattern.Pattern, fill string) string {
	text := strings.TrimSuffix(p.String(), "$")
	if !strings.HasPrefix(text, "/") {
		text = "/" + text
	}
	if !p.Anchored() {
		text += "*"
	}
	return strings.ReplaceAll(text, "*", fill)
}

func filler(policies ...*policy.Policy) string {
	used := map[rune]bool{}
	add := func(p pathpattern.Pattern) {
		for _, c := range p.String() {
			used[c] = true
		}
	}
	for _, p := range policies {
		for _, r := range p.Spec().Rules {
			for _, s := range r.Statements {
				add(s.Pattern)
			}
			for _, e := range r.EngineRules {
				add(e.Pattern)
			}
			for _, d := range r.AppDirectives {
				add(d.Pattern)
			}
		}
	}
	for _, c := range "~_QXZJKYVWHGUBFMPLDNRTSCOIAE0123456789qxzjkvw" {
		if !used[c] {
			return string(c)
		}
	}
	return "%01" // in an address, nobody has it
}
