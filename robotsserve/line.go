// SPDX-License-Identifier: Apache-2.0

package robotsserve

import (
	"cmp"
	"slices"
	"strings"

	"github.com/robotspolicy/caddy-robots-policy/internal/leaf/english"
	"github.com/robotspolicy/caddy-robots-policy/pathpattern"
	"github.com/robotspolicy/caddy-robots-policy/policy"
)

// line is an Allow or Disallow line about the paths of a pattern, which starts with "/" and has no "*" at its end. Some
// crawlers combine several groups. The line can then be an Allow in some of these groups and a Disallow in others.
type line struct {
	pattern   pathpattern.Pattern
	verdicts  []verdict // one for each group
	spelled   pathpattern.Spellings
	allows    []string // texts after Allow
	disallows []string // texts after Disallow
	low, high int      // lengths in bytes of the shortest and the longest of these texts and of pattern
	guard     bool     // the line prevents a misreading by Google's parser; see lining.guards
	starred   int      // number of bytes that star added
}

// newLine returns the line of the pattern p. The statements are those with this pattern, and can write it differently,
// such as /%7Ea and /~a. A Disallow line has a text for each of these spellings. An Allow line has only the spellings
// in the rule that decides.
func newLine(p pathpattern.Pattern, verdicts []verdict, statements []stated) *line {
	l := &line{pattern: p, verdicts: verdicts}
	var spelled []pathpattern.Spellings
	for _, s := range statements {
		if s.Allow == l.opens() && (!s.Allow || s.rule == l.deciding(false).rule) {
			spelled = append(spelled, pathpattern.Spell(p, s.rooted(p)))
		}
	}
	if spelled == nil {
		spelled = []pathpattern.Spellings{pathpattern.Spell(p, "")}
		// An Allow line is spelled like the deciding statement.
		if by := l.deciding(false); l.opens() && by.Statement != nil && by.Written != "" {
			like := pathpattern.Spell(by.Pattern.Rooted()[0], by.rooted(by.Pattern.Rooted()[0]))
			spelled[0].Written = cmp.Or(spelled[0].Like(&like), spelled[0].BeginningOf(&like))
		}
	}
	l.spelled = spelled[0]
	for i := range spelled {
		if l.opens() {
			l.allows = appendNew(l.allows, spelled[i].Written)
		}
		if l.closes() {
			l.disallows = appendNew(l.disallows, spelled[i].Prohibition()...)
		}
	}
	l.measure(l.pattern.Len())
	return l
}

func (l *line) measure(n int) {
	l.low, l.high = n, n
	for _, t := range slices.Concat(l.allows, l.disallows) {
		l.low, l.high = min(l.low, len(t)), max(l.high, len(t))
	}
}

// star adds "*" to the line's texts, so that they are n bytes longer than the pattern and the line wins over other
// lines. It adds a "*" only where it does not change which paths match. If the pattern has no such place, star does
// nothing. If the pattern has no wildcard, star also keeps the shorter texts, for readers that do not support "*".
func (l *line) star(n int) {
	if n <= 0 || l.pattern.Longer(n) == l.pattern {
		return
	}
	plain := [2][]string{l.allows, l.disallows}
	l.starred = n
	for i, texts := range []*[]string{&l.allows, &l.disallows} {
		*texts = nil
		for _, t := range plain[i] {
			*texts = append(*texts, pathpattern.Raw(t).Longer(l.padded(t)-len(t)).String())
		}
	}
	l.measure(l.len())
	if l.pattern.IsPlain() {
		l.allows, l.disallows = appendNew(plain[0], l.allows...), appendNew(plain[1], l.disallows...)
	}
}

func appendNew(all []string, more ...string) []string {
	for _, t := range more {
		if !slices.Contains(all, t) {
			all = append(all, t)
		}
	}
	return all
}

// rooted returns the text of the statement s as its author wrote it, but beginning with "/". For example, if the author
// wrote "*/x", the statement has the two rooted patterns "/*/x" and "/x". p is one of these patterns, and rooted
// returns the text for p. It returns "" if the statement has no written text.
func (s stated) rooted(p pathpattern.Pattern) string {
	switch {
	case s.Written == "" || p.Plain() == s.Pattern.Plain():
		return s.Written
	case p.Plain().String() == "/"+s.Pattern.Plain().String():
		return "/" + s.Written
	}
	return s.Written[1:] // the pattern "*/x" also has the rooted pattern "/x"
}

// closes reports whether some group disallows the paths.
func (l *line) closes() bool {
	return slices.ContainsFunc(l.verdicts, func(v verdict) bool { return v.closes })
}

// opens reports whether the line can be an Allow. At least one group must allow the paths. If a rule of another group
// disallows them, opens returns false, because crawlers may combine the two groups, and the Allow could override that
// rule.
func (l *line) opens() bool {
	return slices.ContainsFunc(l.verdicts, func(v verdict) bool { return !v.closes }) &&
		!slices.ContainsFunc(l.verdicts, func(v verdict) bool { return v.closes && v.own })
}

// deciding returns the deciding statement of the first group that disallows the paths or, if closes is false, allows
// them.
func (l *line) deciding(closes bool) stated {
	for i := range l.verdicts {
		if l.verdicts[i].closes == closes {
			return l.verdicts[i].stated
		}
	}
	return stated{}
}

// same reports whether two lines allow and disallow the paths in the same groups. If m is nil, there is no such line,
// and everything is allowed.
func (l *line) same(m *line) bool {
	if m == nil {
		return !l.closes()
	}
	return slices.EqualFunc(l.verdicts, m.verdicts, func(a, b verdict) bool { return a.closes == b.closes && a.own == b.own })
}

// alike reports whether two lines allow and disallow the paths in the same groups, and the groups that disallow them
// have the same reason.
func (l *line) alike(m *line) bool {
	return slices.EqualFunc(l.verdicts, m.verdicts, func(a, b verdict) bool {
		return a.closes == b.closes && a.own == b.own && (!a.closes || a.Statement == b.Statement && a.client == b.client)
	})
}

// padded returns the length of a text after star has padded it.
func (l *line) padded(text string) int {
	if l.starred == 0 {
		return len(text)
	}
	return max(len(text), l.len())
}

func (l *line) len() int { return l.pattern.Len() + l.starred }

// beats reports whether l wins over m for the paths that both lines match. If l is a Disallow, it must win over an
// Allow for every reader. If l is an Allow, it must win for readers that normalize URLs.
func (l *line) beats(m *line) bool {
	switch {
	case !l.closes():
		return l.len() >= m.len()
	case !m.opens():
		return l.len() > m.len()
	// Some readers decode both lines, and others encode both, so l must be longer in both forms.
	case l.len() <= m.len() || len(l.spelled.Upper)+l.starred <= len(m.spelled.Upper)+m.starred:
		return false
	}
	return !slices.ContainsFunc(m.allows, func(text string) bool {
		// For readers that do not normalize, the Allow only matches URLs in its own spelling.
		if a := m.spelled; a.Octets > 0 {
			if pathpattern.Raw(text).Overlaps(pathpattern.Raw(l.spelled.Written)) && l.padded(l.spelled.Written) <= len(text) {
				return true
			}
			a.Written = text
			if same := l.spelled.Like(&a); same != "" {
				return l.padded(same) <= len(text)
			}
		}
		return l.low <= len(text)
	})
}

// isBelow reports whether a statement of the site's own file decides about the line.
func (l *line) isBelow() bool {
	return slices.ContainsFunc(l.verdicts, func(v verdict) bool { return v.isBelow() })
}

// replaces reports whether m is unnecessary if the group has l. Every reader that understands m must also understand l,
// so l must not have a wildcard if m has none. For readers that do not normalize URLs, l must also match the unusual
// spellings of m. A line of the site's own file cannot replace a line of the policy.
func (l *line) replaces(m *line) bool {
	if !l.pattern.IsPlain() && m.pattern.IsPlain() || l.isBelow() && !m.isBelow() {
		return false
	}
	return m.spelled.Octets == 0 && m.spelled.Written == m.spelled.Normal || covers(l.allows, m.allows) && covers(l.disallows, m.disallows)
}

func covers(by, texts []string) bool {
	return !slices.ContainsFunc(texts, func(text string) bool {
		return !slices.ContainsFunc(by, func(b string) bool { return pathpattern.Raw(b).Covers(pathpattern.Raw(text)) })
	})
}

// printed returns l as Allow or Disallow lines of one group, one line for each spelling of the path. group is an index
// of l.verdicts.
func (l *line) printed(group int) []Line {
	v, key, texts := &l.verdicts[group], "Allow", l.allows
	switch {
	case v.silent:
		return nil
	case v.closes:
		key, texts = "Disallow", l.disallows
	}
	lines := make([]Line, len(texts))
	for i, text := range texts {
		lines[i] = Line{Text: key + ": " + text, Rule: v.rule, key: strings.ToLower(key), pattern: l.pattern, raw: pathpattern.Raw(text)}
		if p, err := pathpattern.Parse(text); err == nil {
			lines[i].pattern = p // in the text, an unencoded "*" matches any text
		}
		if v.rule != nil {
			lines[i].Statement, lines[i].Pos = v.Statement, v.Statement.Pos
		}
	}
	return lines
}

// maxCounted is the maximum number of reserved octets to count in a pattern, because each of them triples the number of
// spellings.
const maxCounted = 12

// countSpellings collects hints about the Disallow lines if robots.txt does not list all spellings of their paths.
func (g *grouping) countSpellings(lines []*line) {
	for i := range lines {
		l := lines[i]
		if !l.closes() || l.spelled.Octets == 0 {
			continue
		}
		if strings.Contains(l.spelled.Upper, "%2A") {
			h := policy.NewProblem(policy.Hint, "other-spelling", l.deciding(true).pos(),
				"crawlers that compare URLs as they are written may fetch what %q disallows, if * is not percent-encoded in the URL. robots.txt cannot list this spelling, because * matches any text there. To prevent this, disallow the shorter path before the *", l.pattern)
			if !slices.Contains(g.problems, h) {
				g.problems = append(g.problems, h)
			}
		}
		if l.spelled.Octets > 1 {
			g.mixed.add(l.pattern, func(others string) policy.Problem {
				all := 1
				for range min(l.spelled.Octets, maxCounted) {
					all *= 3
				}
				return policy.NewProblem(policy.Hint, "other-spelling", l.deciding(true).pos(),
					"robots.txt has %d of %d spellings of %q%s. Crawlers that compare URLs as they are written may fetch a spelling that mixes plain and encoded characters, but the server blocks every spelling. To prevent this, disallow the shorter path before the first character that can be encoded",
					len(l.disallows), all, l.spelled.Written, others)
			})
		}
	}
}

// spelledHint collects the patterns for one hint. The hint names the first pattern, and the number of the others.
type spelledHint struct {
	patterns map[pathpattern.Pattern]bool
	hint     func(others string) policy.Problem
}

func (h *spelledHint) add(p pathpattern.Pattern, hint func(others string) policy.Problem) {
	if h.patterns == nil {
		h.patterns, h.hint = map[pathpattern.Pattern]bool{}, hint
	}
	h.patterns[p] = true
}

func (h *spelledHint) problem() []policy.Problem {
	switch n := len(h.patterns) - 1; n {
	case -1:
		return nil
	case 0:
		return []policy.Problem{h.hint("")}
	default:
		return []policy.Problem{h.hint(" and " + english.Count(n, "other path"))}
	}
}
