// SPDX-License-Identifier: Apache-2.0

package robotsserve

import (
	"slices"
	"strings"

	"github.com/robotspolicy/caddy-robots-policy/pathpattern"
	"github.com/robotspolicy/caddy-robots-policy/policy"
	"github.com/robotspolicy/caddy-robots-policy/policy/solve"
	"github.com/robotspolicy/caddy-robots-policy/rights"
	"github.com/robotspolicy/caddy-robots-policy/robotstxt"
)

// Two kinds of groups are not for crawlers. A control token, such as Google-Extended, stands for what an operator may
// use for AI training: it must not "crawl" what the policy disallows it to crawl or to train-ai. A usage token
// (draft-kelley-aipref-training-preference-signal-00) stands for one usage by everyone.

// controls gives control tokens units of their own where training is disallowed.
func (g *grouping) controls(units []unit) []unit {
	if g.p.Spec().Publish.ControlTokens == policy.Off || !g.disallowsTraining {
		return units
	}
	listed := map[string]bool{}
	var others, more []unit
	split := func(u unit, infos []*crawler) bool {
		if len(infos) == 0 || rights.NewFinder(g.p, u.class, policy.TrainAI, "").Strictest() != policy.Disallowed {
			return false
		}
		u.infos, u.control = infos, true
		more = append(more, u)
		return true
	}
	for i, u := range units {
		var tokens, rest []*crawler
		for _, info := range u.infos {
			if info.ControlsTraining {
				tokens = append(tokens, info)
				listed[info.Token] = true
			} else {
				rest = append(rest, info)
			}
		}
		if split(u, tokens) {
			u.infos = rest
		}
		if i == 0 || len(u.infos) > 0 {
			others = append(others, u)
		}
	}
	var unlisted []*crawler
	for _, id := range g.layout.controls {
		if info := g.crawler(id); !listed[info.Token] {
			unlisted = append(unlisted, info)
		}
	}
	split(units[0], unlisted)
	return append(others, more...)
}

// controlBody is the lines of control tokens. The file below is about crawling only.
func (g *grouping) controlBody(u unit) ([]Line, []Loss) {
	crawl, train := rights.NewFinder(g.p, u.class, policy.Crawl, ""), rights.NewFinder(g.p, u.class, policy.TrainAI, "")
	lines, losses := g.tokenLines([]source{{crawl.Statements(), u.below}, {train.Statements(), nil}}, func(at pathpattern.Pattern) policy.Decision {
		c, t := crawl.At(at), train.At(at)
		if c.Verdict != policy.Disallowed && t.Verdict == policy.Disallowed {
			return t
		}
		return c
	})
	return g.assemble(lines, u.class, "", u.below), losses
}

// addUsageTokens adds the groups of the usage tokens about which the policy states anything.
func (g *grouping) addUsageTokens() {
	tokens := g.p.Spec().Publish.UsageTokens
	if tokens == (policy.UsageTokens{}) {
		return
	}
	view := rights.NewView(g.p, g.host)
	for i, token := range tokens {
		if token == "" || !view.Stated(policy.RightsUsages()[i]) {
			continue
		}
		var below *robotstxt.Group
		if g.below != nil {
			below = g.below.Group(token)
		}
		var sources []source
		for _, said := range view.Statements(i) {
			sources = append(sources, source{said, below})
		}
		lines, losses := g.tokenLines(sources, func(at pathpattern.Pattern) policy.Decision { return view.At(at)[i] })
		gr := &group{tokens: []string{token}}
		for j := range lines {
			gr.lines = append(gr.lines, printed(&lines[j])...)
		}
		if len(gr.lines) == 0 {
			gr.lines = []Line{{Text: allowAll}}
		}
		gr.key = keyOf(gr.lines)
		for j := range losses {
			losses[j].Crawlers = gr.tokens
			g.warn(&losses[j])
		}
		g.losses = append(g.losses, losses...)
		g.groups = append(g.groups, gr)
	}
}

// isUsageToken reports whether a group of a merged file is that of a usage token, which is made from both files.
func (g *grouping) isUsageToken(token string) bool {
	return slices.ContainsFunc(g.p.Spec().Publish.UsageTokens[:], func(t string) bool { return strings.EqualFold(t, token) })
}

// source is the statements for one kind of client and one usage, with a file below.
type source struct {
	said  []policy.Applied
	below *robotstxt.Group
}

// tokenLines makes the lines of a token's group, which disallow what any source disallows, as decide says. Where the
// patterns cross in too many ways for that, the lines are stricter, and in the end disallow everything.
func (g *grouping) tokenLines(sources []source, decide func(pathpattern.Pattern) policy.Decision) ([]line, []Loss) {
	var patterns []pathpattern.Pattern
	for _, v := range sources {
		for i := range v.said {
			patterns = append(patterns, v.said[i].Statement.Pattern)
		}
	}
	if len(patterns) > maxTokenWork {
		return g.closeToken(sources), nil
	}
	g.work += len(patterns)
	if lines, losses, ok := decidedLines(patterns, decide, sources[0].below); ok {
		return lines, losses
	}
	if lines, losses, ok := g.linesBySource(sources); ok {
		return lines, losses
	}
	return g.closeToken(sources), nil
}

// decidedLines makes lines from the paths between which the decision changes, and from a file
// below where the policy leaves room for it.
func decidedLines(patterns []pathpattern.Pattern, decide func(pathpattern.Pattern) policy.Decision, below *robotstxt.Group) ([]line, []Loss, bool) {
	cells, ok := solve.Cells(patterns, decide, func(a, b policy.Decision) bool { return a.Verdict == b.Verdict })
	if !ok {
		return nil, nil, false
	}
	all := make([]stated, 0, len(cells))
	permits := map[*stated]bool{}
	for _, c := range cells {
		statement := c.Value.Statement
		if statement == nil {
			statement = &policy.Statement{Pattern: c.Pattern}
		}
		all = append(all, stated{
			pattern: c.Pattern, allow: c.Value.Verdict != policy.Disallowed, size: c.Pattern.Len(),
			applied: &policy.Applied{Rule: c.Value.Rule, Statement: statement},
		})
	}
	if below != nil {
		all = append(all, statedBelow(below)...)
	}
	for i := range cells {
		permits[&all[i]] = cells[i].Value.Verdict == policy.Allowed
	}
	return flatten(all, func(a, d *stated) bool {
		if (a.applied == nil) == (d.applied == nil) {
			return a.size >= d.size
		}
		return d.applied == nil && permits[a]
	})
}

// linesBySource makes lines from each source by itself: a path that one opens below what another
// closes may stay closed.
func (g *grouping) linesBySource(sources []source) ([]line, []Loss, bool) {
	var all []stated
	for i, v := range sources {
		own := statementsOf(v.said, "")
		if v.below != nil {
			own = append(own, statedBelow(v.below)...)
		}
		for j := range own {
			own[j].source = i
		}
		all = append(all, own...)
	}
	return flatten(all, func(a, d *stated) bool {
		if a.source != d.source {
			return false
		}
		if a.applied != nil && d.applied != nil && (a.applied.Statement.Usage == policy.Other) != (d.applied.Statement.Usage == policy.Other) {
			return d.applied.Statement.Usage == policy.Other // which counts where nothing else is said
		}
		return g.overrides(a, d)
	})
}

// maxTokenWork bounds the statements of which a token's group is made.
const maxTokenWork = 1 << 16

func (g *grouping) closeToken(sources []source) []line {
	closed := stated{pattern: pathpattern.All}
	for _, v := range sources {
		if i := slices.IndexFunc(v.said, func(a policy.Applied) bool { return !a.Statement.Allow }); i >= 0 {
			closed.applied = &v.said[i]
			break
		}
	}
	g.report(policy.Warning, "token-group-disallowed", closed.pos(),
		"the paths for train-ai, ai-use, search and crawl cross in too many ways for the groups of control tokens and usage tokens in robots.txt to say what holds where; they disallow every path; use paths without * and $")
	return []line{newLine(pathpattern.All, "", &closed)}
}
