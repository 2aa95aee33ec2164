// SPDX-License-Identifier: Apache-2.0

package robotsserve

import (
	"slices"
	"strings"

	"github.com/robotspolicy/caddy-robots-policy/pathpattern"
	"github.com/robotspolicy/caddy-robots-policy/policy"
)

// Line is a line of a group, with its origin in the policy.
type Line struct {
	Text      string
	Rule      *policy.Rule // nil for what the policy does not state
	Statement *policy.Statement
	Pos       policy.Pos

	key     string
	pattern pathpattern.Pattern
	raw     pathpattern.Pattern // of an Allow or Disallow: its text as it stands
}

// allowAll is the rule of a group that disallows nothing. A group needs a rule: Google's parser
// joins one without any to the next.
const allowAll = "Disallow:"

// group is the lines that some crawlers obey.
type group struct {
	tokens   []string // product tokens; "*" for everyone who is not named
	purposes []string
	rules    []*policy.Rule // that shape it
	lines    []Line
	key      string // equal for groups of equal lines
	left     int    // crawlers that it does not name, see Options.Short
}

func keyOf(lines []Line) string {
	var b strings.Builder
	for i := range lines {
		b.WriteString(lines[i].Text)
		b.WriteByte('\n')
	}
	return b.String()
}

func (g *group) add(rules []*policy.Rule) {
	for _, r := range rules {
		if shapes(r) && !slices.Contains(g.rules, r) {
			g.rules = append(g.rules, r)
		}
	}
}

// maxNames bounds the names of rules in the comment of a group.
const maxNames = 8

func (g *group) names() (names []string) {
	for _, r := range g.rules {
		if name := commentText(r.Name); name != "" && !slices.Contains(names, name) && len(names) < maxNames {
			names = append(names, name)
		}
	}
	return names
}

func commentText(name string) string {
	return strings.Map(func(c rune) rune {
		if c < ' ' || c == 0x7f || c == '\u2028' || c == '\u2029' || c == '\u0085' {
			return ' '
		}
		return c
	}, name)
}

func (g *group) write(w *writer) {
	w.pos = policy.Pos{}
	if len(g.rules) > 0 {
		w.pos = g.rules[0].Pos
	}
	if names := g.names(); len(names) > 0 {
		w.line("# " + strings.Join(names, ", "))
	}
	if g.left > 0 {
		w.line(g.leftComment())
	}
	for _, t := range g.tokens {
		w.line("User-agent: " + t)
	}
	for _, p := range g.purposes {
		w.line("User-Agent-Purpose: " + p)
	}
	for i := range g.lines {
		w.line(g.lines[i].Text)
	}
}
