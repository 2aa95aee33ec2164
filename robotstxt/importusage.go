// SPDX-License-Identifier: Apache-2.0

package robotstxt

import (
	"slices"
	"strings"

	"github.com/robotspolicy/caddy-robots-policy/policy"
)

// usagePrefix begins names of groups that stand for a usage, and for no crawler
// (draft-kelley-aipref-training-preference-signal).
const usagePrefix = "__usage_"

// trainingToken is the name of the group for AI training. The draft leaves it open; release
// notes of a third party of 11 November 2026 have it.
const trainingToken = usagePrefix + "ai-training"

// usageGroups takes the groups of usages out of those of crawlers, and states what they say.
func (im *importer) usageGroups() {
	im.f.Groups = slices.DeleteFunc(im.f.Groups, func(g *Group) bool {
		if len(g.Name) < len(usagePrefix) || !strings.EqualFold(g.Name[:len(usagePrefix)], usagePrefix) {
			return false
		}
		delete(im.f.byName, strings.ToLower(g.Name))
		if strings.EqualFold(g.Name, trainingToken) {
			im.usageGroup(g, policy.TrainAI)
		} else {
			im.f.note(g.number, "the group %q stands for a usage that is not known here, and for no crawler; it is left out", g.Name)
		}
		return true
	})
}

// usageGroup states for everyone what the group of a usage says.
func (im *importer) usageGroup(g *Group, u policy.Usage) {
	r := policy.Rule{For: []policy.Audience{{Kind: policy.ForEveryone}}, Pos: position(g.number)}
	for _, line := range g.Decisive() {
		if !im.tooLong(line.number, line.Pattern) {
			s := crawl(line.Allow, line.Pattern, line.number)
			s.Usage, s.Written = u, line.Written
			r.Statements = append(r.Statements, s)
		}
	}
	usages := policy.RightsUsages()
	im.spec.Publish.UsageTokens[slices.Index(usages[:], u)] = g.Name
	if len(r.Statements) > 0 {
		im.commentRule([]*Group{g}, &r)
		im.spec.Rules = append(im.spec.Rules, r)
	}
	for _, l := range g.lines {
		im.f.note(l.number, "a group of a usage has only Allow and Disallow; %q is left out", l.key+": "+l.value)
	}
}
