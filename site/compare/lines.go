// SPDX-License-Identifier: Apache-2.0

package compare

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/robotspolicy/caddy-robots-policy/channels"
	"github.com/robotspolicy/caddy-robots-policy/pathpattern"
	"github.com/robotspolicy/caddy-robots-policy/policy"
)

// maxSampled bounds the patterns about which lines other than decisions are asked.
const maxSampled = 2000

// lines compares what a subject reads besides decisions: crawl-delays, limits,
// values of channels and rules of engines.
func (c *comparison) lines(s *subject, host string, id policy.Identity, purpose string) (all []record) {
	// compare asks both what they say about the paths of a pattern, "" for nothing.
	compare := func(name string, r pathpattern.Pattern, says func(*policy.Policy, policy.Query) string) {
		q := policy.Query{Host: host, Path: sample(r, c.fill), Identity: id, Now: c.at}
		if purpose != "" {
			q.Purposes = []string{purpose}
		}
		q.Crawler = s.ids[0]
		old := cmp.Or(says(c.old, q), noValue)
		q.Crawler = s.ids[1]
		now := cmp.Or(says(c.now, q), noValue)
		if old == now {
			return
		}
		i := slices.IndexFunc(all, func(r record) bool { return r.usages[0] == name && r.old == old && r.now == now })
		if i < 0 {
			i = len(all)
			all = append(all, record{effect: Line, usages: []string{name}, old: old, now: now})
		}
		all[i].paths = append(all[i].paths, r)
	}
	compare("crawl-delay", pathpattern.All, func(p *policy.Policy, q policy.Query) string {
		if r := p.CrawlDelay(q); r != nil {
			return r.CrawlDelay.String()
		}
		return ""
	})
	compare("limit", pathpattern.All, func(p *policy.Policy, q policy.Query) string {
		if r := p.Limit(q); r != nil {
			if r.Limit.Burst != r.Limit.Requests {
				return fmt.Sprintf("%s, %d at once", r.Limit, r.Limit.Burst)
			}
			return r.Limit.String()
		}
		return ""
	})
	for _, ch := range channels.Groups() {
		values := ch.Group.Values
		if values == nil {
			continue
		}
		if names := union(values.Names(c.old), values.Names(c.now)); len(names) > 0 {
			patterns := c.spokenOf(values.Patterns)
			for _, name := range names {
				for _, r := range patterns {
					compare(strings.ToLower(ch.Group.Field), r, func(p *policy.Policy, q policy.Query) string { return values.Value(p, q, name) })
				}
			}
		}
	}
	if names := union(c.old.EngineRuleNames(), c.now.EngineRuleNames()); len(names) > 0 {
		patterns := c.spokenOf(func(r *policy.Rule) (all []pathpattern.Pattern) {
			for _, e := range r.EngineRules {
				all = append(all, e.Pattern)
			}
			return all
		})
		for _, name := range names {
			for _, r := range patterns {
				compare(name, r, func(p *policy.Policy, q policy.Query) string {
					set, _, _ := p.EngineRule(q, name)
					return set.String()
				})
			}
		}
	}
	for i := range all {
		all[i].paths = widest(all[i].paths)
	}
	return all
}

// spokenOf lists patterns of rules of either policy, and what two of them have in common.
func (c *comparison) spokenOf(patterns func(*policy.Rule) []pathpattern.Pattern) []pathpattern.Pattern {
	var all []pathpattern.Pattern
	for _, p := range []*policy.Policy{c.old, c.now} {
		rules := p.Spec().Rules
		for i := range rules {
			for _, x := range patterns(&rules[i]) {
				all = append(all, x.Rooted()...)
			}
		}
	}
	given := union(all, nil)
	all = given
	for i := range given {
		if all = append(all, c.crossings(given[i:i+1], given[i+1:])...); len(all) > maxSampled {
			c.partial = true
			return all[:maxSampled]
		}
	}
	return union(all, nil)
}

// noValue stands for the value of a line that is not there.
const noValue = "none"

// sample is a path that a pattern matches, and that other patterns match only where they
// cover it: fill, which no pattern has, stands for each "*".
func sample(p pathpattern.Pattern, fill string) string {
	text := strings.TrimSuffix(p.String(), "$")
	if !strings.HasPrefix(text, "/") {
		text = "/" + text
	}
	if !p.Anchored() {
		text += "*"
	}
	return strings.ReplaceAll(text, "*", fill)
}

func filler(policies ...*policy.Policy) string {
	used := map[rune]bool{}
	add := func(p pathpattern.Pattern) {
		for _, c := range p.String() {
			used[c] = true
		}
	}
	for _, p := range policies {
		for i := range p.Spec().Rules {
			for pattern := range p.Spec().Rules[i].Patterns {
				add(pattern)
			}
		}
	}
	for _, c := range "~_QXZJKYVWHGUBFMPLDNRTSCOIAE0123456789qxzjkvw" {
		if !used[c] {
			return string(c)
		}
	}
	return "%01" // no address has it
}
