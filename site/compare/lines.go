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

// values holds the values of a line, such as a crawl-delay, in the old and in the new policy. The zero value means that
// both policies have the same value.
type values [2]string

func (v values) differs() bool { return v[0] != v[1] }

func (v values) same(w values) bool { return v == w }

func (v values) alike(w values) bool { return v == w }

// lines compares what both policies state for the crawlers of s besides decisions about paths: crawl-delays, rate
// limits, values of channels, and rules of search engines.
func (c *comparison) lines(s *subject, host string, id policy.Identity, purpose string) (all []record) {
	q := s.old.Query(host, policy.Crawl, purpose)
	q.Identity, q.Now = id, c.at
	// compare adds a record if the function "says" returns different values for the two policies. The value is "" if a
	// policy has no such line.
	compare := func(name string, patterns []pathpattern.Pattern, says func(*policy.Policy, policy.Query) string) {
		for _, x := range solved(c, patterns, func(at pathpattern.Pattern) (both values) {
			q.Path = sample(at, c.fill)
			for i, p := range []*policy.Policy{c.old, c.now} {
				q.Crawler = s.ids[i]
				both[i] = cmp.Or(says(p, q), noValue)
			}
			if !both.differs() {
				return values{}
			}
			return both
		}, nil) {
			if !x.Value.differs() {
				continue
			}
			old, now := x.Value[0], x.Value[1]
			i := slices.IndexFunc(all, func(r record) bool { return r.usages[0] == name && r.old == old && r.now == now })
			if i < 0 {
				i = len(all)
				all = append(all, record{effect: Line, usages: []string{name}, old: old, now: now})
			}
			all[i].paths = append(all[i].paths, x.Pattern)
		}
	}
	everywhere := []pathpattern.Pattern{pathpattern.All}
	compare("crawl-delay", everywhere, func(p *policy.Policy, q policy.Query) string {
		if r := p.CrawlDelay(q); r != nil {
			return r.CrawlDelay.String()
		}
		return ""
	})
	compare("limit", everywhere, func(p *policy.Policy, q policy.Query) string {
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
		for _, name := range union(values.Names(c.old), values.Names(c.now)) {
			compare(strings.ToLower(ch.Group.Field), c.patterns(values.Patterns), func(p *policy.Policy, q policy.Query) string { return values.Value(p, q, name) })
		}
	}
	for _, name := range union(c.old.EngineRuleNames(), c.now.EngineRuleNames()) {
		compare(name, c.patterns(func(r *policy.Rule) (all []pathpattern.Pattern) {
			for _, e := range r.EngineRules {
				if e.Name == name {
					all = append(all, e.Pattern)
				}
			}
			return all
		}), func(p *policy.Policy, q policy.Query) string {
			set, _, _ := p.EngineRule(q, name)
			return set.String()
		})
	}
	for i := range all {
		all[i].paths = widest(all[i].paths)
	}
	return all
}

// patterns lists the patterns that the function "of" returns for the rules of both policies.
func (c *comparison) patterns(of func(*policy.Rule) []pathpattern.Pattern) (all []pathpattern.Pattern) {
	for _, p := range []*policy.Policy{c.old, c.now} {
		for i := range p.Spec().Rules {
			all = append(all, of(&p.Spec().Rules[i])...)
		}
	}
	return all
}

// noValue is the value of a missing line in a Change.
const noValue = "none"

// sample returns an example of a path that p matches. It replaces each "*" with fill, a text that no pattern of the
// policies contains. Therefore another pattern only matches this path if it matches all paths that p matches.
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
	return "%01" // URLs do not contain this text
}
