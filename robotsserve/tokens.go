// SPDX-License-Identifier: Apache-2.0

package robotsserve

import (
	"github.com/robotspolicy/caddy-robots-policy/pathpattern"
	"github.com/robotspolicy/caddy-robots-policy/policy"
	"github.com/robotspolicy/caddy-robots-policy/rights"
)

// Two kinds of groups are not for crawlers. The group of a control token, such as Google-Extended, tells an operator
// which pages it may use for AI training. The group disallows the pages that the policy disallows for crawling or for
// train-ai. The group of a usage token (draft-kelley-aipref-training-preference-signal-00) tells everyone which pages
// may be used in one way.

// controls moves control tokens into separate units if training is disallowed for them.
func (g *grouping) controls(units []unit) []unit {
	if g.p.Spec().Publish.Controls == policy.Off || !g.disallowsTraining {
		return units
	}
	listed := map[string]bool{}
	var others, more []unit
	split := func(u unit, info *crawler) bool {
		token := g.p.ControlToken(g.p.Crawler(info.Token), g.host)
		if !g.p.Spec().Publish.SendsControl(info.Token) || !token.Closes() {
			return false
		}
		u.infos, u.control = []*crawler{info}, &token
		more = append(more, u)
		return true
	}
	for i, u := range units {
		var rest []*crawler
		for _, info := range u.infos {
			if info.ControlsTraining {
				listed[info.Token] = true
			}
			if !info.ControlsTraining || !split(u, info) {
				rest = append(rest, info)
			}
		}
		u.infos = rest
		if i == 0 || len(u.infos) > 0 {
			others = append(others, u)
		}
	}
	for _, id := range g.layout.controls {
		if info := g.crawler(id); !listed[info.Token] {
			split(units[0], info)
		}
	}
	return append(others, more...)
}

// controlBody returns the lines of a control token's group.
func (g *grouping) controlBody(u unit) ([]Line, []Loss) {
	all, crawling := g.crawling(u.class)
	all = append(all, statementsOf(u.control.Statements())...)
	lines, losses := g.lines(all, true, func(at pathpattern.Pattern) []verdict {
		said := crawling(at)
		if d := u.control.At(at); !said[0].closes && (d.Verdict == policy.Disallowed || said[0].Statement == nil) {
			return []verdict{g.verdictOf(d)}
		}
		return said
	})
	return g.assemble(lines, 0, "", u.class), losses
}

// addUsageTokens adds a group for each usage token if the policy states something about its usage.
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
		var all []stated
		for _, said := range view.Statements(i) {
			all = append(all, statementsOf(said)...)
		}
		lines, losses := g.lines(all, true, func(at pathpattern.Pattern) []verdict {
			d := view.At(at)
			v := g.verdictOf(d.Decisions[i])
			v.client = d.Clients[i]
			return []verdict{v}
		})
		gr := &group{tokens: []string{token}}
		for _, l := range lines {
			gr.lines = append(gr.lines, l.printed(0)...)
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
