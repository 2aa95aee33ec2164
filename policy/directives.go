// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"fmt"
	"slices"
	"time"

	"github.com/robotspolicy/caddy-robots-policy/pathpattern"
	"github.com/robotspolicy/caddy-robots-policy/robotsrule"
)

// placed is a block that applies to a query, with the scope of the rules in the block.
type placed struct {
	scope
	*block
}

// blocksFor lists the blocks that apply to a query. Blocks with the narrowest scope come first.
func (p *Policy) blocksFor(q *Query) (all []placed) {
	hosts := p.hosts.class(q.Host).hosts
	add := func(t Tier, a *atom) {
		for _, h := range hosts {
			c := a.cell(h)
			if c == nil {
				continue
			}
			for _, b := range c.blocks {
				if b.condition.holds(q) {
					all = append(all, placed{scope{t, &a.audience, p.hosts.rank(h), true, b.condition.fallback}, b})
				}
			}
		}
	}
	for _, r := range p.reachesOf(q.Crawler) {
		add(r.tier, r.atom)
	}
	for _, name := range q.Purposes {
		if a := p.purposes[name]; a != nil {
			add(TierGroup, a)
		}
	}
	slices.SortStableFunc(all, func(a, b placed) int { return a.compare(&b.scope) })
	return all
}

// ranks calls visit with the blocks that apply to a query, the narrowest first, until visit returns true. Blocks with
// equally narrow scopes are passed in one call.
func (p *Policy) ranks(q *Query, visit func([]placed) bool) {
	for rest := p.blocksFor(q); len(rest) > 0; {
		n := 1
		for n < len(rest) && rest[n].compare(&rest[0].scope) == 0 {
			n++
		}
		if visit(rest[:n]) {
			return
		}
		rest = rest[n:]
	}
}

// AppDirective returns the directive for an application and the query's path, or nil if there is none. If several
// directives match, the narrowest audience wins, then the narrowest host, then the longest pattern, then the first in
// the file. The query's usage is ignored.
func (p *Policy) AppDirective(q Query, app string) (found *AppDirective) {
	path := pathpattern.NormalizePath(q.Path)
	c := p.classOf(&q)
	for _, rank := range p.Ranks(&c) {
		for _, r := range rank {
			if cond := r.condition(); !cond.holds(&q) {
				continue
			}
			for i := range r.AppDirectives {
				d := &r.AppDirectives[i]
				if d.App == app && (found == nil || d.Pattern.Len() > found.Pattern.Len()) && d.Pattern.Match(path) {
					found = d
				}
			}
		}
		if found != nil {
			break
		}
	}
	return found
}

// CrawlDelay returns the rule whose crawl-delay applies to the query. If several rules have one, the narrowest
// audience wins, then the narrowest host, then the longest delay. CrawlDelay returns nil if no rule has a
// crawl-delay, or if "crawl-delay: none" applies. The query's path and usage are ignored.
func (p *Policy) CrawlDelay(q Query) *Rule {
	r := p.strictest(&q, func(b *block) *Rule { return b.delay }, longerDelay)
	if r == nil || r.CrawlDelay == 0 {
		return nil
	}
	return r
}

// strictest looks for a rule in the blocks that apply to a query. The function "of" returns a block's rule, or nil.
// strictest returns the strictest rule of the narrowest blocks that have a rule, or nil if no block has a rule.
func (p *Policy) strictest(q *Query, of func(*block) *Rule, stricter func(a, b *Rule) *Rule) (found *Rule) {
	p.ranks(q, func(blocks []placed) bool {
		for _, b := range blocks {
			if r := of(b.block); r != nil {
				found = stricter(found, r)
			}
		}
		return found != nil
	})
	return found
}

// maxEngineRules limits how many matching rules with the same name EngineRule compares. If more rules match, all of
// them apply.
const maxEngineRules = 64

// EngineRule returns a search engine's own rule for the query's path. If the values of several entries match, narrower
// entries set aside wider ones. EngineRule combines the values of the remaining entries into the strictest value. It
// also returns the narrowest of these entries, and the Rule that contains it. Both are nil if no entry matches. The
// query's usage is ignored.
func (p *Policy) EngineRule(q Query, name string) (robotsrule.Set, *EngineRule, *Rule) {
	type match struct {
		*scope
		engineValue
	}
	path := pathpattern.NormalizePath(q.Path)
	var all []match
	blocks := p.blocksFor(&q)
	for i := range blocks {
		add := func(v engineValue) { all = append(all, match{&blocks[i].scope, v}) }
		switch x := blocks[i].engines[name]; {
		case x == nil:
		case q.AnyPath:
			x.Overlapping(pathpattern.All, add)
		default:
			x.Matches(path, add)
		}
	}
	setsAside := func(a, b match) bool {
		switch r, _ := a.against(b.scope, false); r {
		case byLength:
			return a.by.Pattern.Len() > b.by.Pattern.Len()
		case byPattern:
			return a.by.Pattern.Within(b.by.Pattern)
		case never, always:
		}
		return false
	}
	var rules robotsrule.Set
	var best match
	for i, m := range all {
		if len(all) <= maxEngineRules && !q.AnyPath && slices.ContainsFunc(all, func(a match) bool { return setsAside(a, m) }) {
			continue
		}
		rules = rules.Union(m.rule)
		if best.by != nil {
			c := m.compare(best.scope)
			if c == 0 {
				c = best.by.Pattern.Len() - m.by.Pattern.Len()
			}
			if c > 0 || c == 0 && !m.by.Pos.before(best.by.Pos) {
				continue
			}
		}
		best = all[i]
	}
	return rules, best.by, best.of
}

// Limit is a rate limit for the requests of a crawler. The zero value means that there is no limit.
type Limit struct {
	Requests int           // requests allowed in each period Per
	Per      time.Duration // a second, a minute, an hour or a day
	Burst    int           // requests allowed at once after a pause
}

// IsZero reports whether the limit is unset.
func (l Limit) IsZero() bool { return l.Requests == 0 }

// Interval returns the average time between two allowed requests. It returns Per if Requests is 0.
func (l Limit) Interval() time.Duration { return l.Per / time.Duration(max(l.Requests, 1)) }

var periods = map[time.Duration]string{time.Second: "s", time.Minute: "m", time.Hour: "h", 24 * time.Hour: "d"}

// String returns the limit without the burst, in the notation of policy files, such as 60/m.
func (l Limit) String() string {
	if period := periods[l.Per]; period != "" {
		return fmt.Sprintf("%d/%s", l.Requests, period)
	}
	return fmt.Sprintf("%d in %v", l.Requests, l.Per)
}

// Limit returns the rule whose rate limit applies to the query. If several rules have a limit, the narrowest audience
// wins, then the narrowest host, then the strictest limit. Limit returns nil if no rule has a limit, or if "limit:
// none" applies. The query's path and usage are ignored.
func (p *Policy) Limit(q Query) *Rule {
	r := p.strictest(&q, func(b *block) *Rule { return b.limit }, stricterLimit)
	if r == nil || r.Limit.IsZero() {
		return nil
	}
	return r
}

// stricterLimit returns the rule with the stricter limit. It treats "limit: none" as the least strict limit.
func stricterLimit(a, b *Rule) *Rule {
	switch {
	case a == nil || a.Limit.IsZero():
		return b
	case b.Limit.IsZero():
		return a
	case b.Limit.Interval() > a.Limit.Interval(),
		b.Limit.Interval() == a.Limit.Interval() && b.Limit.Burst < a.Limit.Burst:
		return b
	}
	return a
}
