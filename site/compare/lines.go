// SPDX-License-Identifier: Apache-2.0

package compare

import (
	"slices"
	"strings"

	"github.com/robotspolicy/caddy-robots-policy/pathpattern"
	"github.com/robotspolicy/caddy-robots-policy/policy"
)

// maxSampled bounds the patterns about which lines other than decisions are asked.
const maxSampled = 2000

// lines compares what is said to a subject beside decisions: crawl-delays, application
// directives and rules of engines.
func (c *comparison) lines(s *subject, host string) (all []record) {
	ask := func(p *policy.Policy, i int, path string) policy.Query {
		return policy.Query{Crawler: s.ids[i], Host: host, Path: path, Identity: policy.Verified, Now: c.at}
	}
	add := func(usage, old, now string, paths ...pathpattern.Pattern) {
		if old == now {
			return
		}
		i := slices.IndexFunc(all, func(r record) bool { return r.usages[0] == usage && r.old == old && r.now == now })
		if i < 0 {
			i = len(all)
			all = append(all, record{effect: Line, usages: []string{usage}, old: old, now: now, identities: everyIdentity})
		}
		all[i].paths = append(all[i].paths, paths...)
	}
	delay := func(p *policy.Policy, i int) string {
		if r := p.CrawlDelay(ask(p, i, "/")); r != nil {
			return r.CrawlDelay.String()
		}
		return "none"
	}
	add("crawl-delay", delay(c.old, 0), delay(c.now, 1), pathpattern.All)
	limit := func(p *policy.Policy, i int) string {
		if r := p.Limit(ask(p, i, "/")); r != nil {
			return r.Limit.String()
		}
		return "none"
	}
	add("limit", limit(c.old, 0), limit(c.now, 1), pathpattern.All)
	for _, app := range union(c.old.Apps(), c.now.Apps()) {
		says := func(p *policy.Policy, i int, path string) string {
			if d := p.AppDirective(ask(p, i, path), app); d != nil && d.Text != d.App { // the name alone directs to nothing
				return d.Text
			}
			return "none"
		}
		for _, r := range c.spokenOf(func(r *policy.Rule) (all []pathpattern.Pattern) {
			for _, d := range r.AppDirectives {
				all = append(all, d.Pattern)
			}
			return all
		}) {
			path := sample(r)
			add("app-directives", says(c.old, 0, path), says(c.now, 1, path), r)
		}
	}
	for _, name := range union(c.old.EngineRuleNames(), c.now.EngineRuleNames()) {
		says := func(p *policy.Policy, i int, path string) string {
			set, rule, _ := p.EngineRule(ask(p, i, path), name)
			if rule == nil {
				return "none"
			}
			return set.String()
		}
		for _, r := range c.spokenOf(func(r *policy.Rule) (all []pathpattern.Pattern) {
			for _, e := range r.EngineRules {
				all = append(all, e.Pattern)
			}
			return all
		}) {
			path := sample(r)
			add(name, says(c.old, 0, path), says(c.now, 1, path), r)
		}
	}
	for i := range all {
		all[i].paths = widest(all[i].paths)
	}
	return all
}

// spokenOf lists patterns of rules of either policy, and what two of them have in
// common.
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
	all = union(all, nil)
	given := all
	for i, a := range given {
		for _, b := range given[i+1:] {
			if a.Covers(b) || b.Covers(a) || !a.Overlaps(b) {
				continue
			}
			meet, ok := pathpattern.Intersect(a, b, maxCrossing)
			c.gaveUp = c.gaveUp || !ok
			if all = append(all, meet...); len(all) > maxSampled {
				c.gaveUp = true
				return all[:maxSampled]
			}
		}
	}
	return union(all, nil)
}

// sample is a path that a pattern matches, with a byte for each "*" that no pattern
// is likely to have.
func sample(p pathpattern.Pattern) string {
	text := strings.TrimSuffix(p.String(), "$")
	if !strings.HasPrefix(text, "/") {
		text = "/" + text
	}
	if !p.Anchored() && p.String() != "/" {
		text += "*"
	}
	return strings.ReplaceAll(text, "*", "~0~")
}

// published lists what changes in robots.txt for everybody.
func published(old, now *policy.Spec) (all []Change) {
	for _, s := range []struct {
		name     string
		old, now []string
	}{
		{"sitemap", old.Sitemaps, now.Sitemaps},
		{"license", []string{old.Publish.License}, []string{now.Publish.License}},
	} {
		for _, v := range s.old {
			if v != "" && !slices.Contains(s.now, v) {
				all = append(all, Change{Effect: Line, Usages: []string{s.name}, Old: v, New: "none", Crawlers: []string{Everyone}})
			}
		}
		for _, v := range s.now {
			if v != "" && !slices.Contains(s.old, v) {
				all = append(all, Change{Effect: Line, Usages: []string{s.name}, Old: "none", New: v, Crawlers: []string{Everyone}})
			}
		}
	}
	return all
}
