// SPDX-License-Identifier: Apache-2.0

package effect

import (
	"github.com/robotspolicy/caddy-robots-policy/policy"
	"github.com/robotspolicy/caddy-robots-policy/robotsrule"
	"github.com/robotspolicy/caddy-robots-policy/robotstag"
)

// Answer holds the result of Engine.Answer: whether a crawler may use a page, and why.
type Answer struct {
	Disallowed bool
	Decision   policy.Decision    // the decision about the usage or, if the server blocks the request, about crawling
	Tag        *policy.EngineRule // the robots-tag that disallows the usage, or nil
	AnyCase    bool               // only the server disallows the path, because the server ignores letter case
	Untold     bool               // crawling is disallowed, but neither robots.txt nor the server stops the crawler
}

// Answer returns whether a crawler may use a page, where q names the crawler, the page and the usage. The usage is
// disallowed if a rule of the policy disallows it, if the server blocks the crawler's requests, or if a robots-tag of
// the policy disallows it.
func (e *Engine) Answer(q policy.Query) (a Answer) {
	a.Decision = e.Policy.Decide(q)
	if a.Disallowed = a.Decision.Verdict == policy.Disallowed; q.Usage == policy.Crawl {
		e.answerCrawl(&a, q)
		return a
	}
	if a.Disallowed {
		return a
	}
	for p, q := range e.PageQueries(q) {
		if d := p.Decide(q); d.Verdict == policy.Disallowed {
			a.Disallowed, a.Decision, a.AnyCase = true, d, p.AnyCase
			return a
		}
		if by := tagOf(p.Policy, q); by != nil {
			a.Disallowed, a.Tag = true, by
			return a
		}
	}
	return a
}

func (e *Engine) answerCrawl(a *Answer, q policy.Query) {
	info := e.Policy.CrawlerInfo(q.Crawler)
	if a.Disallowed {
		a.Untold = info.IgnoresStar && e.MayCrawl(q)
		return
	}
	if info.RobotsOnly {
		return
	}
	if v := e.Edge(q); v.Decision.Verdict == policy.Disallowed && v.Mode == policy.ModeBlock && !v.Impostor {
		a.Disallowed, a.Decision, a.AnyCase = true, v.Decision, v.AnyCase
	}
}

// tagOf returns the robots-tag that disallows the query's usage, or nil if there is none. Sometimes only the rules of
// several robots-tags together disallow the usage. Then it returns the last of these robots-tags.
func tagOf(p *policy.Policy, q policy.Query) (by *policy.EngineRule) {
	var all robotsrule.Set
	for _, name := range p.EngineRuleNames() {
		rules, of, _ := p.EngineRule(q, name)
		if of == nil {
			continue
		}
		before := all
		if all = all.Union(rules.Expired(q.Now)); robotstag.Disallows(all, q.Usage) && !robotstag.Disallows(before, q.Usage) {
			by = of
		}
	}
	return by
}

// Shown returns the robots control rules that headers and meta tags of a page have for the query's crawler.
func (e *Engine) Shown(q policy.Query) (all robotsrule.Set) {
	for _, src := range e.Sources(q) {
		all = all.Union(src.Rules)
	}
	return all
}
