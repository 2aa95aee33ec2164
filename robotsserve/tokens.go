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

// controlBody is the lines of control tokens. The file below speaks of crawling only.
func (g *grouping) controlBody(u unit) ([]Line, []Loss) {
	lines, losses := g.tokenLines([]voice{
		{rights.NewFinder(g.p, u.class, policy.Crawl, "").Statements(), u.below},
		{rights.NewFinder(g.p, u.class, policy.TrainAI, "").Statements(), nil},
	})
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
		var below *foreignGroup
		if g.below != nil {
			below = g.below.byToken[strings.ToLower(token)]
		}
		var voices []voice
		for _, said := range view.Statements(i) {
			voices = append(voices, voice{said, below})
		}
		lines, losses := g.tokenLines(voices)
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

// isUsageToken reports whether a token of a merged file is that of a usage, whose
// group is made from both files.
func (g *grouping) isUsageToken(token string) bool {
	return slices.ContainsFunc(g.p.Spec().Publish.UsageTokens[:], func(t string) bool { return strings.EqualFold(t, token) })
}

// voice is what is said to one kind of asker about one usage, with a file below.
type voice struct {
	said  []policy.Applied
	below *foreignGroup
}

// tokenLines makes the lines of a token's group, which disallow what any voice does.
// Where the patterns cross in too many ways, everything is disallowed.
func (g *grouping) tokenLines(voices []voice) ([]line, []Loss) {
	var all []stated
	for i, v := range voices {
		own := statementsOf(v.said, "")
		if v.below != nil {
			own = append(own, v.below.stated()...)
		}
		for j := range own {
			own[j].voice = i
		}
		all = append(all, own...)
		if len(all) > maxTokenWork {
			return g.closeToken(all), nil
		}
	}
	g.work += len(all)
	lines, losses, ok := flatten(all, func(a, d *stated) bool {
		if a.voice != d.voice {
			return false
		}
		if a.applied != nil && d.applied != nil && (a.applied.Statement.Usage == policy.Other) != (d.applied.Statement.Usage == policy.Other) {
			return d.applied.Statement.Usage == policy.Other // which counts where nothing else is said
		}
		return g.overrides(a, d)
	})
	if !ok {
		return g.closeToken(all), nil
	}
	return lines, losses
}

// maxTokenWork bounds the statements of which a token's group is made.
const maxTokenWork = 1 << 16

// closeToken disallows everything, and reports it.
func (g *grouping) closeToken(all []stated) []line {
	i := slices.IndexFunc(all, func(s stated) bool { return !s.allow && s.applied != nil })
	closed := stated{pattern: pathpattern.All}
	if i >= 0 {
		closed.applied = all[i].applied
	}
	g.problems = append(g.problems, policy.Problem{
		Severity: policy.Warning, Code: "token-group-closed", Pos: closed.pos(),
		Message: "the paths for train-ai, ai-use, search and crawl cross in too many ways for the groups of control tokens and usage tokens in robots.txt to say what holds where; they disallow every path; use paths without * and $",
	})
	return []line{{pattern: pathpattern.All, of: &closed}}
}
