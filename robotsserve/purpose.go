// SPDX-License-Identifier: Apache-2.0

package robotsserve

import (
	"fmt"
	"slices"
	"strings"

	"github.com/robotspolicy/caddy-robots-policy/policy"
)

// sentinel starts the product token that opens the group of a purpose of which
// no crawler is known. No crawler has such a token.
const sentinel = "purpose-"

// purpose is a purpose that rules are for, with what its group says.
type purpose struct {
	name   string
	lines  []string
	losses []Loss
	rules  []*policy.Rule
}

// published finds the purposes that get User-Agent-Purpose lines
// (draft-illyes-rep-purpose-00).
//
// A client combines the groups of all its purposes. What that comes to is what
// the policy says only where the groups say the same: else none is published,
// and the crawlers that are known by a purpose are named all the same.
func (g *grouping) published(everybody *policy.Class) (all []purpose) {
	for _, name := range purposeAudiences(g.p.Spec()) {
		c := g.p.WithPurpose(everybody, strings.ToLower(name))
		rules := g.p.Rules(&c, policy.TierGroup)
		if len(rules) == 0 {
			continue // none for this host
		}
		if !g.isPurpose(name, rules[0]) {
			continue
		}
		lines, losses := g.body(&c, strings.ToLower(name), g.star())
		for i := range losses {
			losses[i].Purpose = strings.ToLower(name)
			g.warn(&losses[i])
		}
		all = append(all, purpose{name, lines, losses, rules})
	}
	for _, p := range all {
		if !slices.Equal(p.lines, all[0].lines) {
			g.problems = append(g.problems, policy.Problem{
				Severity: policy.Warning, Code: "purpose-groups-differ", Pos: p.rules[0].Pos,
				Message: fmt.Sprintf("the rules for the purposes %q and %q differ, and a crawler of both would combine them otherwise than the policy does: no User-Agent-Purpose lines are published, only the names of the crawlers that are known; state the same for both",
					all[0].name, p.name),
			})
			return nil
		}
	}
	return all
}

// addPurposes adds the lines of purposes. Most readers do not know the line, so that
// it only stands after the User-agent lines of a group.
func (g *grouping) addPurposes(all []purpose) {
	for _, p := range all {
		gr := g.byKey[strings.Join(p.lines, "\n")]
		if gr == nil || gr.star || len(gr.tokens) == 0 || !g.hasPurpose(gr, p.name) {
			gr = g.sentinelGroup(p.name, p.lines, p.rules)
		}
		gr.purposes = append(gr.purposes, p.name)
		g.losses = append(g.losses, p.losses...)
	}
}

// isPurpose reports whether a name can stand in a User-Agent-Purpose line.
// Google's parser reads the line as a User-agent line, and letters, "-" and "_"
// only.
func (g *grouping) isPurpose(name string, rule *policy.Rule) bool {
	why := ""
	switch {
	case strings.Trim(name, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ-_") != "" || name == "":
		why = "crawlers only read letters, - and _ there"
	case g.p.Crawler(name) != 0:
		why = "some crawlers would take it for the crawler of that name"
	default:
		return true
	}
	g.problems = append(g.problems, policy.Problem{
		Severity: policy.Warning, Code: "purpose-not-published", Pos: rule.Pos,
		Message: fmt.Sprintf("the purpose %q is not published as User-Agent-Purpose: %s; use another name", name, why),
	})
	return false
}

// hasPurpose reports whether a group names a crawler that is known by a purpose.
func (g *grouping) hasPurpose(gr *group, purpose string) bool {
	return slices.ContainsFunc(gr.tokens, func(t string) bool {
		return slices.ContainsFunc(g.p.CrawlerInfo(g.p.Crawler(t)).Purposes, func(p string) bool { return strings.EqualFold(p, purpose) })
	})
}

// star is what a file that is merged says to everybody.
func (g *grouping) star() *foreignGroup {
	if g.below == nil {
		return nil
	}
	return g.below.byToken["*"]
}

// sentinelGroup adds a group that no crawler is named in.
func (g *grouping) sentinelGroup(name string, lines []string, rules []*policy.Rule) *group {
	gr := &group{tokens: []string{sentinel + strings.ToLower(name)}, lines: lines, key: strings.Join(lines, "\n")}
	gr.label(rules)
	g.groups = append(g.groups, gr)
	return gr
}
