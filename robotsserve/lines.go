// SPDX-License-Identifier: Apache-2.0

package robotsserve

import (
	"cmp"
	"slices"
	"strings"
	"sync"

	"github.com/robotspolicy/caddy-robots-policy/pathpattern"
	"github.com/robotspolicy/caddy-robots-policy/policy"
	"github.com/robotspolicy/caddy-robots-policy/policy/solve"
)

// stated is a statement for the crawlers of a group.
type stated struct {
	*policy.Statement
	rule    *policy.Rule
	applied *policy.Applied // nil for the deciding statement of a verdict
}

// isBelow reports whether the statement comes from the site's own file, which is merged.
func (s stated) isBelow() bool { return s.rule != nil && s.rule.Fallback }

// verdict is the decision about some paths for the crawlers of a group.
type verdict struct {
	stated      // the deciding statement; zero if no statement decides
	client int  // for a usage token, the index of the rights.Client that the verdict is about
	closes bool // the paths are disallowed
	silent bool // the group needs no line, because a wider line has the same effect
	own    bool // the policy states the verdict; in the group of a purpose: a rule for this purpose disallows the paths
}

func (g *grouping) verdictOf(d policy.Decision) verdict {
	return verdict{stated: stated{Statement: d.Statement, rule: d.Rule}, closes: d.Verdict == policy.Disallowed, own: d.Verdict != policy.Unstated}
}

// crawling returns the statements about crawling for the class c and the classes in alike. It also returns a function,
// which returns the verdict about the paths of a pattern for c. If the policy disallows these paths for one of the
// classes in alike, this verdict is that they are disallowed.
func (g *grouping) crawling(c *policy.Class, alike ...*policy.Class) (all []stated, value func(pathpattern.Pattern) []verdict) {
	queries := make([]policy.Query, 0, 1+len(alike))
	for i, c := range append([]*policy.Class{c}, alike...) {
		statements := statementsOf(g.p.Statements(c, policy.Crawl, ""))
		if i > 0 {
			statements = slices.DeleteFunc(statements, func(s stated) bool { return s.rule.Fallback })
		}
		all = append(all, statements...)
		queries = append(queries, c.Query(g.host, policy.Crawl, ""))
	}
	return all, func(at pathpattern.Pattern) []verdict {
		v := g.verdictOf(g.p.DecideAt(queries[0], at))
		for i := 1; i < len(queries) && !v.closes; i++ {
			if other := g.verdictOf(g.p.DecideAt(queries[i], at)); other.closes && !other.rule.Fallback {
				v = other
			}
		}
		return []verdict{v}
	}
}

func (s stated) pos() policy.Pos {
	if s.rule == nil || s.rule.Fallback {
		return policy.Pos{}
	}
	return s.Statement.Pos
}

func statementsOf(applied []policy.Applied) []stated {
	all := make([]stated, len(applied))
	for i := range applied {
		all[i] = stated{applied[i].Statement, applied[i].Rule, &applied[i]}
	}
	return all
}

// lining computes the lines of a group from the verdicts.
type lining struct {
	p       *policy.Policy
	budget  *solve.Budget
	apart   bool                             // the statements are for several groups of crawlers or several usages
	starred bool                             // star makes lines as long as the deciding statements
	all     map[pathpattern.Pattern][]stated // statements by their rooted patterns
	given   []pathpattern.Pattern            // the patterns of the statements in all, in order
	set     solve.Set                        // the set of the patterns in given
	value   func(pathpattern.Pattern) []verdict
	lines   map[pathpattern.Pattern]*line // lines whose verdicts differ from the results of value
	places  map[*policy.Statement]int     // the index of each statement in the group
	dropped []*line
	left    []stated // omitted Allow lines, which would allow more for Google's parser than for other readers
	losses  []Loss
}

// lines returns the Allow and Disallow lines of a group, in the order in which they are printed. For a path, the
// longest matching line decides, and an Allow wins if the lengths are equal (RFC 9309 section 2.2.2). Where robots.txt
// cannot express the policy's verdict, the lines are stricter than the policy, and a Loss reports this. If the budget
// of the file is used up, the lines disallow all paths that at least one statement disallows.
func (g *grouping) lines(all []stated, apart bool, value func(pathpattern.Pattern) []verdict) ([]*line, []Loss) {
	m := lining{
		p: g.p, budget: g.budget, apart: apart, value: value,
		all: map[pathpattern.Pattern][]stated{}, places: map[*policy.Statement]int{},
		lines: map[pathpattern.Pattern]*line{},
	}
	for i, s := range all {
		m.places[s.Statement] = i
		for _, p := range s.Pattern.Rooted() {
			if p = p.Plain(); m.all[p] == nil {
				m.set.Add(p, len(m.given))
				m.given = append(m.given, p)
			}
			m.all[p] = append(m.all[p], s)
		}
	}
	if !m.budget.Spend(costOfStatement * len(all)) {
		return m.disallowing()
	}
	patterns := m.given
	if !apart {
		patterns = m.active()
	}
	cells, ok := m.guarded(patterns)
	if faults := m.faults(cells); faults > 0 {
		starred := m
		starred.starred, starred.lines, starred.losses, starred.dropped, starred.left = true, map[pathpattern.Pattern]*line{}, nil, nil, nil
		if better, fine := starred.guarded(patterns); fine && starred.faults(better) < faults {
			m, cells, ok = starred, better, fine
			m.shed(cells)
		}
	}
	if !ok {
		return m.disallowing()
	}
	lines := m.sorted(cells)
	m.loseDropped(lines)
	m.loseClosed(lines)
	m.shorten(lines)
	m.loseSpellings(lines)
	return lines, m.losses
}

// faults counts the places where the lines in cells are stricter than the policy. These are dropped lines and losses. A
// Disallow also counts if an Allow should win over it, but one of its spellings is longer than the Allow.
func (m *lining) faults(cells []solve.Cell[*line]) int {
	n := len(m.dropped) + len(m.losses)
	for i := range cells {
		d := cells[i].Value
		if d.closes() && d.high > d.len() && m.budget.Spend(len(cells)) && slices.ContainsFunc(cells, func(c solve.Cell[*line]) bool {
			a := c.Value
			return a.opens() && a.len() >= d.len() && a.len() < d.high && a.pattern.Overlaps(d.pattern)
		}) {
			n++
		}
	}
	return n
}

// shed undoes the work of star for lines that do not need it. It removes the added "*" of a line if, without them, the
// line still wins and loses against the same lines.
func (m *lining) shed(cells []solve.Cell[*line]) {
	for again := true; again; {
		again = false
		for i := range cells {
			l := cells[i].Value
			if l.starred > 0 && m.budget.Spend(len(cells)) && !slices.ContainsFunc(cells, func(c solve.Cell[*line]) bool {
				o := c.Value
				against := o.opens() && l.closes() || o.closes() && l.opens()
				return against && o.high >= l.pattern.Len() && o.low <= l.high && o.pattern.Overlaps(l.pattern)
			}) {
				cells[i].Value, again = newLine(l.pattern, l.verdicts, m.all[l.pattern]), true
			}
		}
	}
}

// disallowing returns a Disallow line for each pattern that a statement disallows, and no Allow lines. If there are
// also allow statements, it returns one Loss for all of them.
func (m *lining) disallowing() (lines []*line, losses []Loss) {
	groups := len(m.value(pathpattern.All))
	for _, p := range m.given {
		i := slices.IndexFunc(m.all[p], func(s stated) bool { return !s.Allow })
		if i < 0 {
			continue
		}
		verdicts := slices.Repeat([]verdict{{stated: m.all[p][i], closes: true, own: true}}, groups)
		lines = append(lines, newLine(p, verdicts, m.all[p]))
	}
	for _, p := range m.given {
		if i := slices.IndexFunc(m.all[p], func(s stated) bool { return s.Allow }); i >= 0 && len(lines) > 0 {
			s := m.all[p][i]
			return lines, []Loss{{Paths: pathpattern.All, Pattern: s.Pattern, Rule: s.rule, Pos: s.pos(), all: true}}
		}
	}
	return lines, nil
}

// guarded computes the cells of the patterns. If Google's parser needs additional Disallow lines (see guards), guarded
// computes the cells again with the patterns of these lines.
func (m *lining) guarded(patterns []pathpattern.Pattern) ([]solve.Cell[*line], bool) {
	cells, ok := m.solve(patterns)
	if guards := m.guards(cells); ok && len(guards) > 0 {
		m.losses, m.dropped = nil, nil
		cells, ok = m.solve(append(patterns, guards...))
		for _, s := range m.left {
			m.lose(s, s.Pattern, false)
		}
	}
	return cells, ok
}

func (m *lining) solve(patterns []pathpattern.Pattern) ([]solve.Cell[*line], bool) {
	return (&solve.Form[*line]{
		Value: m.at, Same: (*line).same, Alike: (*line).alike, Matters: m.matters, Unsaid: m.unsaid,
		Added: maxDerived, Budget: m.budget,
		Beats:    func(x, y *solve.Cell[*line]) bool { return x.Value.beats(y.Value) },
		Replaces: func(x, y *solve.Cell[*line]) bool { return x.Value.replaces(y.Value) },
		Keep:     func(c *solve.Cell[*line]) bool { return c.Value.guard && c.Value.closes() },
	}).Cells(patterns)
}

// at returns the line of a pattern. If m.lines does not have a line for the pattern, it makes one.
func (m *lining) at(p pathpattern.Pattern) *line {
	if l := m.lines[p]; l != nil {
		return l
	}
	l := newLine(p, m.value(p), m.all[p])
	if by := l.deciding(l.closes()); m.starred && by.Statement != nil {
		l.star(by.Pattern.Len() - p.Len())
	}
	return l
}

// matters returns a function for the cell c. The function reports whether the statements with a given pattern can
// change the verdict of the cell. A disallow statement is standing, and can change the verdict, unless an allow
// statement for all paths of the cell overrides it. An allow statement can change the verdict if it overrides at least
// one standing statement, because other allow statements may override the rest.
func (m *lining) matters(c *solve.Cell[*line]) func(given pathpattern.Pattern) bool {
	verdicts, p := c.Value.verdicts, c.Value.pattern
	permissions := sync.OnceValue(func() []stated { return m.permissions(p) })
	standing := sync.OnceValue(func() []stated {
		all := m.covering(p, false)
		if m.apart {
			return all
		}
		return slices.DeleteFunc(all, func(d stated) bool { return m.opened(d, permissions()) })
	})
	return func(given pathpattern.Pattern) bool {
		return slices.ContainsFunc(m.all[given], func(s stated) bool {
			return slices.ContainsFunc(verdicts, func(v verdict) bool {
				switch {
				case s.Allow != v.closes:
					return false
				case v.rule == nil:
					return true
				case s.Allow:
					return s.Usage != v.Usage || slices.ContainsFunc(standing(), func(d stated) bool { return m.p.Overrides(s.applied, d.applied) })
				}
				return m.apart || !m.opened(s, permissions())
			})
		})
	}
}

// covering lists the statements whose patterns cover p: the permissions if allow is true, else the prohibitions.
func (m *lining) covering(p pathpattern.Pattern, allow bool) (all []stated) {
	for _, i := range m.set.Covering(p) {
		for _, s := range m.all[m.given[i]] {
			if s.Allow == allow {
				all = append(all, s)
			}
		}
	}
	return all
}

// permissions lists the permissions whose patterns cover p, the longest first.
func (m *lining) permissions(p pathpattern.Pattern) []stated {
	return longestFirst(m.covering(p, true))
}

// longestFirst sorts the allow statements in permissions. Callers search for a statement that overrides a disallow
// statement. The search ends early, because the longest allow statements usually override the most.
func longestFirst(permissions []stated) []stated {
	slices.SortStableFunc(permissions, func(a, b stated) int { return b.Pattern.Len() - a.Pattern.Len() })
	return permissions
}

// opened reports whether one of the permissions overrides the prohibition d.
func (m *lining) opened(d stated, permissions []stated) bool {
	return slices.ContainsFunc(permissions, func(a stated) bool { return m.p.Overrides(a.applied, d.applied) })
}

// unsaid is called for paths where readers obey the line of c, although the line of other has the right verdict. If the
// line of c is an Allow, unsaid returns true, and the line is dropped. If the line of c is a Disallow, it is kept, and
// unsaid adds a Loss.
func (m *lining) unsaid(c, other *solve.Cell[*line]) bool {
	if c.Value.opens() {
		m.dropped = append(m.dropped, c.Value)
		return true
	}
	if other != nil {
		m.lose(m.permission(other.Value), c.Pattern, false)
	}
	return false
}

// shorten removes needless Disallow lines from groups that crawlers combine. A Disallow is needless if the same group
// has a wider Disallow that covers it. But it is needed if it wins over an Allow in one of the groups, and the wider
// Disallow does not win over this Allow. shorten stops when the budget is spent.
func (m *lining) shorten(lines []*line) {
	for _, l := range lines {
		if len(l.verdicts) == 1 {
			return
		}
		for k := range l.verdicts {
			v := &l.verdicts[k]
			v.silent = m.budget.Spend(len(lines)) && v.closes && slices.ContainsFunc(lines, func(w *line) bool {
				return w != l && w.verdicts[k].closes && w.pattern.Covers(l.pattern) && w.replaces(l) && m.budget.Spend(len(lines)) && !slices.ContainsFunc(lines, func(o *line) bool {
					return o.opens() && o.pattern.Overlaps(l.pattern) && !o.beats(l) && !w.beats(o)
				})
			})
		}
	}
}

// maxDerived limits the number of lines added because the patterns of two other lines overlap.
const maxDerived = 100

// The costs of operations, in steps of the budget.
const (
	costOfStatement = 24
	costOfMeeting   = 64 // the cost of a decision about paths that two patterns match
)

// sorted returns the lines in the order of the policy. However, a line that loses to another line comes after it,
// because some readers use the first match.
func (m *lining) sorted(cells []solve.Cell[*line]) []*line {
	var set solve.Set
	byLength := make([]int, len(cells))
	for i := range cells {
		set.Add(cells[i].Pattern, i)
		byLength[i] = i
	}
	slices.SortStableFunc(byLength, func(x, y int) int {
		a, b := cells[x].Value, cells[y].Value
		switch {
		case a.len() != b.len():
			return a.len() - b.len()
		case a.opens() != b.opens() && b.opens():
			return -1
		case a.opens() != b.opens():
			return 1
		}
		return cells[x].Order - cells[y].Order
	})
	// depth holds, for each line, the length of the longest chain of lines that ends with it and in which each line
	// loses to the next.
	depth := make([]int, len(cells))
	for n, i := range byLength {
		depth[i] = 1
		overlapping := set.Overlapping(cells[i].Pattern)
		if !m.budget.Spend(len(overlapping)) {
			depth[i] = n + 1 // without the budget, sort by length, the longest first
			continue
		}
		for _, j := range overlapping {
			if depth[j] > 0 && i != j && !cells[i].Value.same(cells[j].Value) {
				depth[i] = max(depth[i], depth[j]+1)
			}
		}
	}
	order := slices.Clone(byLength)
	slices.SortFunc(order, func(x, y int) int {
		return cmp.Or(cmp.Compare(depth[y], depth[x]), cmp.Compare(m.place(&cells[x]), m.place(&cells[y])), cmp.Compare(cells[x].Order, cells[y].Order))
	})
	lines := make([]*line, len(order))
	for n, i := range order {
		lines[n] = cells[i].Value
	}
	return lines
}

// place returns the index of the statement that decides about a cell. If statements have the cell's pattern and none of
// them decides, place returns the index of the first of them.
func (m *lining) place(c *solve.Cell[*line]) int {
	s := c.Value.deciding(c.Value.closes()).Statement
	if own := m.all[c.Pattern]; len(own) > 0 && !slices.ContainsFunc(own, func(o stated) bool { return o.Statement == s }) {
		s = own[0].Statement
	}
	return m.places[s]
}

// indexPage returns the directory of an Allow for an index page, or "". Google's parser also reads
// "Allow: /x/index.html" as "Allow: /x/$".
func (l *line) indexPage() string {
	text := l.pattern.String()
	i := strings.LastIndexByte(text, '/')
	if !l.opens() || !strings.HasPrefix(text[i:], "/index.htm") {
		return ""
	}
	return text[:i+1]
}

// guards returns patterns for Disallow lines that keep a directory disallowed although its index page is allowed. For
// Google's parser, such an Allow also applies to the directory itself (see indexPage). A longer Disallow for the
// directory prevents this, as in the example below. If such a Disallow is not possible, the Allow is left out.
//
//	disallow /x/, allow /x/a/index.html     →     Disallow: /x/*a/$
func (m *lining) guards(cells []solve.Cell[*line]) (patterns []pathpattern.Pattern) {
	for _, c := range cells {
		dir := c.Value.indexPage()
		if dir == "" {
			continue
		}
		d := decides(cells, dir)
		if d == nil || !d.closes() || d.low > len(dir)+1 {
			continue
		}
		rest, within := strings.CutPrefix(dir, d.pattern.String())
		if !within || rest == "" || strings.Contains(dir, "*") {
			m.left = append(m.left, c.Value.deciding(false))
			m.lines[c.Pattern] = newLine(c.Pattern, d.verdicts, nil)
			patterns = append(patterns, c.Pattern)
			continue
		}
		p := pathpattern.MustParse(d.pattern.String() + "*" + rest + "$")
		l := m.at(p)
		l.guard = true
		m.lines[p] = l
		patterns = append(patterns, p)
	}
	return patterns
}

// decides returns the line that decides about a path, or nil if no line matches.
func decides(cells []solve.Cell[*line], path string) (found *line) {
	for _, c := range cells {
		if l := c.Value; l.pattern.Match(path) && (found == nil || l.len() > found.len() || l.len() == found.len() && l.opens()) {
			found = l
		}
	}
	return found
}
