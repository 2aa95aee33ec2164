// SPDX-License-Identifier: Apache-2.0

package robotsserve

import (
	"slices"
	"strings"

	"github.com/robotspolicy/caddy-robots-policy/pathpattern"
	"github.com/robotspolicy/caddy-robots-policy/policy"
	"github.com/robotspolicy/caddy-robots-policy/rights"
)

// Two kinds of groups are not for crawlers. That of a control token, such as
// Google-Extended, says what an operator may use for AI training: the token may not
// "crawl" what the policy disallows it to crawl or to train-ai. That of a usage token
// (draft-kelley-aipref-training-preference-signal-00) says for one usage what holds for
// everyone.

// controls gives control tokens units of their own where training is disallowed.
func (g *grouping) controls(units []unit) []unit {
	if g.p.Spec().Publish.ControlTokens == policy.Off {
		return units
	}
	listed := map[string]bool{}
	var others, more []unit
	split := func(u unit, infos []policy.Crawler) bool {
		if len(infos) == 0 || rights.NewFinder(g.p, u.class, policy.TrainAI, "").Strictest() != policy.Disallowed {
			return false
		}
		u.infos, u.control = infos, true
		more = append(more, u)
		return true
	}
	for i, u := range units {
		var tokens, rest []policy.Crawler
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
	var unlisted []policy.Crawler
	for _, id := range g.layout.controls {
		if info := g.p.CrawlerInfo(id); !listed[info.Token] {
			unlisted = append(unlisted, info)
		}
	}
	split(units[0], unlisted)
	return append(others, more...)
}

// controlBody is the lines of control tokens.
func (g *grouping) controlBody(u unit) ([]Line, []Loss) {
	crawl, train := rights.NewFinder(g.p, u.class, policy.Crawl, ""), rights.NewFinder(g.p, u.class, policy.TrainAI, "")
	lines, losses := g.tokenLines(slices.Concat(crawl.Patterns(), train.Patterns()), func(at pathpattern.Pattern) policy.Decision {
		c, t := crawl.At(at), train.At(at)
		if c.Verdict != policy.Disallowed && t.Verdict == policy.Disallowed {
			return t
		}
		return c
	}, u.below)
	return g.assemble(lines, u.class, "", u.below), losses
}

// addUsageTokens adds the groups of usage tokens, of those usages of which the policy
// states anything.
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
		patterns := view.Patterns(i)
		var below *foreignGroup
		if g.below != nil {
			below = g.below.byToken[strings.ToLower(token)]
		}
		lines, losses := g.tokenLines(patterns, func(at pathpattern.Pattern) policy.Decision { return view.At(at)[i] }, below)
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
		}
		g.losses = append(g.losses, losses...)
		g.groups = append(g.groups, gr)
	}
}

// isUsageToken reports whether a token of a merged file is that of a usage, whose
// group is made from both files.
func (g *grouping) isUsageToken(token string) bool {
	return slices.ContainsFunc(g.p.Spec().Publish.UsageTokens[:], func(t string) bool { return strings.EqualFold(t, token) })
}

// tokenLines makes the lines of a token's group: what decide disallows, and what a
// merged file disallows where decide does not allow it. Where the patterns cross in too
// many ways, everything is disallowed.
func (g *grouping) tokenLines(patterns []pathpattern.Pattern, decide func(pathpattern.Pattern) policy.Decision, below *foreignGroup) ([]line, []Loss) {
	cells, ok := pathpattern.Tile(patterns, decide, func(a, b policy.Decision) bool { return a.Verdict == b.Verdict })
	var all []stated
	permits := map[*stated]bool{}
	if ok {
		all = make([]stated, 0, len(cells))
		for _, c := range cells {
			s := stated{pattern: c.Pattern, allow: c.Value.Verdict != policy.Disallowed, size: c.Pattern.Len(), applied: &policy.Applied{}}
			if c.Value.Statement != nil {
				s.applied = &policy.Applied{Rule: c.Value.Rule, Statement: c.Value.Statement}
			} else {
				s.applied = &policy.Applied{Statement: &policy.Statement{Pattern: c.Pattern}}
			}
			all = append(all, s)
		}
		if below != nil {
			all = append(all, below.stated()...)
		}
		for i := range cells {
			permits[&all[i]] = cells[i].Value.Verdict == policy.Allowed
		}
		lines, losses, fits := flatten(all, func(a, d *stated) bool {
			switch {
			case (a.applied == nil) == (d.applied == nil):
				return a.size >= d.size
			case d.applied == nil:
				return permits[a]
			}
			return false
		})
		if fits {
			return lines, losses
		}
	}
	pos := policy.Pos{}
	for _, p := range patterns {
		if d := decide(p); d.Verdict == policy.Disallowed && d.Statement != nil {
			pos = d.Statement.Pos
			break
		}
	}
	g.problems = append(g.problems, policy.Problem{
		Severity: policy.Warning, Code: "token-group-closed", Pos: pos,
		Message: "the paths for train-ai, ai-use, search and crawl cross in too many ways for the groups of control tokens and usage tokens in robots.txt to say what holds where; they disallow every path; use paths without * and $",
	})
	return []line{{pattern: pathpattern.All, of: &stated{pattern: pathpattern.All}}}, nil
}
