// SPDX-License-Identifier: Apache-2.0

package robotsserve

import (
	"slices"
	"strings"

	"github.com/robotspolicy/caddy-robots-policy/pathpattern"
	"github.com/robotspolicy/caddy-robots-policy/policy/solve"
)

// lose adds a Loss, which says that the lines do not express the statement s for the given paths. If spelling is true,
// the lines express it for these paths, but not for other spellings of them, such as /~a for /%7Ea.
func (m *lining) lose(s stated, paths pathpattern.Pattern, spelling bool) {
	if s.Statement != nil {
		l := Loss{Paths: paths, Pattern: s.Pattern, Rule: s.rule, Pos: s.pos(), written: s.Written, spelling: spelling, allow: s.Allow}
		if l.written == "" {
			l.written = s.Pattern.String()
		}
		m.losses = append(m.losses, l)
	}
}

// loseDropped adds a Loss for each omitted Allow line if the remaining lines disallow some of its paths.
func (m *lining) loseDropped(lines []*line) {
	var closing solve.Set
	for i, l := range lines {
		if l.closes() {
			closing.Add(l.pattern, i)
		}
	}
	opens := func(p pathpattern.Pattern) bool {
		return !m.budget.Spend(costOfMeeting) || slices.ContainsFunc(m.value(p), func(v verdict) bool { return !v.closes })
	}
	var allows solve.Set // an allow statement can allow some of the paths that two lines match
	var allowed []pathpattern.Pattern
	if len(m.dropped) > 0 {
		for p, all := range m.all {
			if slices.ContainsFunc(all, func(s stated) bool { return s.Allow }) {
				allowed = append(allowed, p)
			}
		}
		slices.SortFunc(allowed, func(a, b pathpattern.Pattern) int { return strings.Compare(a.String(), b.String()) })
	}
	for i, p := range allowed {
		allows.Add(p, i)
	}
	opensPart := func(p pathpattern.Pattern) bool {
		return opens(p) || slices.ContainsFunc(allows.Overlapping(p), func(i int) bool {
			meet, ok := m.budget.Cross(p, allowed[i])
			return !ok || slices.ContainsFunc(meet, opens)
		})
	}
	for _, a := range m.dropped {
		if len(closing.Covering(a.pattern)) > 0 || slices.ContainsFunc(closing.Overlapping(a.pattern), func(i int) bool {
			d := solve.Cell[*line]{Value: lines[i]}
			if own := m.all[a.pattern]; len(own) > 0 && !m.matters(&d)(a.pattern) {
				return false
			}
			meet, ok := m.budget.Cross(a.pattern, lines[i].pattern)
			return !ok || slices.ContainsFunc(meet, opensPart)
		}) {
			m.lose(m.permission(a), a.pattern, false)
		}
	}
}

// permission returns the statement that allows the paths of a line. If there is none, it returns a permission with the
// pattern of the line.
func (m *lining) permission(l *line) stated {
	s := l.deciding(false)
	if i := slices.IndexFunc(m.all[l.pattern], func(s stated) bool { return s.Allow }); s.Statement == nil && i >= 0 {
		return m.all[l.pattern][i]
	}
	return s
}

// loseClosed adds a Loss for each Allow line that one group needs, but the file omits, because a rule of another group
// disallows its paths. Some crawlers combine the two groups. If the file had the Allow line, these crawlers would
// ignore the rule that disallows the paths.
func (m *lining) loseClosed(lines []*line) {
	for _, l := range lines {
		for _, v := range l.verdicts {
			if had := len(m.losses); !v.closes && !l.opens() {
				m.lose(v.stated, l.pattern, false)
				for i := range m.losses[had:] {
					m.losses[had+i].combined = true
				}
			}
		}
	}
}

// loseSpellings is about readers that compare URLs as sent. It adds a Loss for each statement that such readers
// understand more strictly than the policy means. One reason is that a URL has another spelling than the printed Allow
// line. Another reason is that a Disallow is printed in a spelling that is longer than the Allow. Some of these readers
// also treat a literal "$" in a Disallow as the end of the path.
func (m *lining) loseSpellings(lines []*line) {
	var opens solve.Set
	for i, l := range lines {
		if l.opens() {
			opens.Add(l.pattern, i)
			if l.spelled.Octets > 0 {
				m.lose(l.deciding(false), l.pattern, true)
			}
		}
	}
	for _, d := range lines {
		if !d.closes() {
			continue
		}
		for _, i := range opens.Overlapping(d.pattern) {
			if a := lines[i]; a.len() >= d.len() && a.low < d.high && a.spelled.Octets == 0 {
				m.lose(a.deciding(false), a.pattern, true)
			}
		}
		if d.spelled.Octets == 0 {
			continue
		}
		if to := strings.IndexByte(d.spelled.Decoded, '$'); to >= 0 && strings.Contains(d.pattern.String(), "%24") {
			if p, err := pathpattern.Parse(d.spelled.Decoded[:to+1]); err == nil {
				m.lose(d.deciding(true), p, true)
			}
		}
	}
}
