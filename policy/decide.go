// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"time"
	"unsafe"

	"github.com/robotspolicy/caddy-robots-policy/pathpattern"
	"github.com/robotspolicy/caddy-robots-policy/robotsrule"
)

// Query is a question to a Policy.
type Query struct {
	Crawler  CrawlerID
	Identity Identity
	Purposes []string // named by the client beside what the catalogue says; lower case
	Host     string   // as sent: case and port do not matter
	Path     string   // the path and query of the request target, as sent
	Usage    Usage
	Now      time.Time
}

// Verdict is the answer to a Query.
type Verdict uint8

// The verdicts. Nothing in the policy speaks of what is Unstated; for Crawl
// that means allowed (RFC 9309 section 2.2.2).
const (
	Unstated Verdict = iota
	Allowed
	Disallowed
)

var verdictNames = [...]string{"unstated", "allowed", "disallowed"}

// String is the verdict in words.
func (v Verdict) String() string { return verdictNames[v] }

// Decision is a verdict with its reasons.
type Decision struct {
	Verdict   Verdict
	Rule      *Rule      // that decided; nil when unstated, and for /robots.txt
	Statement *Statement // of that rule
	Expired   bool       // a permission whose time limit has passed
}

// Qualifiers are the restrictions on what is allowed, or nil.
func (d Decision) Qualifiers() *Qualifiers {
	if d.Verdict != Allowed || d.Statement == nil {
		return nil
	}
	return d.Statement.Qualifiers
}

// robotsTxt is always allowed to be crawled (RFC 9309 section 2.2.2).
const robotsTxt = "/robots.txt"

// Decide answers a query. Among the statements that speak of it, the first
// difference decides:
//
//  1. audience: the crawler's token, then its category, operator and purposes,
//     then everyone;
//  2. host: the very name, then a wildcard, then rules without hosts;
//  3. usage: the usage itself, then Present for what is derived from it;
//  4. the longest pattern (RFC 9309 section 2.2.2);
//  5. a tie: allowed, except between two rules of the middle audience tier,
//     where it is disallowed.
//
// Other is asked last, when none spoke, and never about Crawl. Of several
// permissions of equal rank the first that is qualified answers for all.
//
// It takes time in proportion to the length of the path and does not allocate,
// but for a path over 2 KiB that is not in normal form.
func (p *Policy) Decide(q Query) Decision {
	if !pathpattern.IsNormal(q.Path) {
		return p.decideOdd(q)
	}
	return p.decide(&q, q.Path)
}

// decideOdd puts the path into normal form on the stack.
func (p *Policy) decideOdd(q Query) Decision {
	var buf [2048]byte
	path := pathpattern.AppendNormalPath(buf[:0], q.Path)
	return p.decide(&q, unsafe.String(&path[0], len(path))) // never empty, and not kept
}

// decide has the path beside the query because what else is in the query may
// escape to the heap.
func (p *Policy) decide(q *Query, path string) Decision {
	if q.Usage == Crawl && path == robotsTxt {
		return Decision{Verdict: Allowed}
	}
	m := p.match(q)
	d, ok := p.ask(q, path, &m, q.Usage)
	if !ok && q.Usage != Crawl && q.Usage != Other {
		d, _ = p.ask(q, path, &m, Other)
	}
	return d
}

// ask looks for the statement of the highest rank that speaks of usage u.
func (p *Policy) ask(q *Query, path string, m *matching, u Usage) (Decision, bool) {
	fallback, hasFallback := u.fallback()
	for tier := range numTiers {
		atoms := m.atoms(tier)
		if len(atoms) == 0 {
			continue
		}
		for level := range numHostLevels {
			hosts := m.hosts.level(level)
			if len(hosts) == 0 {
				continue
			}
			v, ok := p.longest(q, path, atoms, hosts, u)
			if !ok && hasFallback {
				v, ok = p.longest(q, path, atoms, hosts, fallback)
			}
			if ok {
				return p.resolve(v, tier, q.Now), true
			}
		}
	}
	return Decision{}, false
}

// longest returns the verdicts of the longest patterns that match in the cells
// of some audiences and hosts of equal rank.
func (p *Policy) longest(q *Query, path string, atoms []*atom, hosts []int32, u Usage) (best verdicts, ok bool) {
	length := 0
	for _, a := range atoms {
		for _, h := range hosts {
			c := a.cell(h)
			if c == nil {
				continue
			}
			for _, b := range c.blocks {
				x := b.usages[u]
				if x == nil || !b.condition.holds(q) {
					continue
				}
				n, v := x.Longest(path)
				switch {
				case n > length:
					length, best = n, v
				case n > 0 && n == length:
					best = p.combine(best, v)
				}
			}
		}
	}
	return best, length > 0
}

// verdicts are the statements of equal rank that speak of a query: the one to
// name of either verdict, by its place in Policy.statements, and the rules that
// they are from. -1 is none; a rule of several means more than one.
type verdicts struct {
	allow, disallow         int32
	allowRule, disallowRule int32
}

const (
	none    = -1
	several = -2
)

func one(s *Statement, id, rule int32) verdicts {
	if s.Allow {
		return verdicts{id, none, rule, none}
	}
	return verdicts{none, id, none, rule}
}

// combine joins verdicts of equal rank.
func (p *Policy) combine(a, b verdicts) verdicts {
	return verdicts{
		allow: p.named(a.allow, b.allow), disallow: p.named(a.disallow, b.disallow),
		allowRule: sameRule(a.allowRule, b.allowRule), disallowRule: sameRule(a.disallowRule, b.disallowRule),
	}
}

// named chooses which of two statements to name: one with qualifiers, as they
// bind, then the first in the file.
func (p *Policy) named(a, b int32) int32 {
	switch {
	case a == none:
		return b
	case b == none:
		return a
	}
	qa, qb := p.statements[a].Qualifiers != nil, p.statements[b].Qualifiers != nil
	if qa != qb {
		if qa {
			return a
		}
		return b
	}
	return min(a, b)
}

func sameRule(a, b int32) int32 {
	switch {
	case a == none:
		return b
	case b == none || a == b:
		return a
	}
	return several
}

// resolve picks the statement that decides.
func (p *Policy) resolve(v verdicts, tier Tier, now time.Time) Decision {
	id := v.allow
	if id == none || v.disallow != none && tier == TierGroup && (v.allowRule != v.disallowRule || v.allowRule == several) {
		id = v.disallow
	}
	d := Decision{Verdict: Disallowed, Rule: p.ruleOf[id], Statement: p.statements[id]}
	if d.Statement.Allow {
		d.Verdict = Allowed
		if q := d.Statement.Qualifiers; q != nil && q.TimeLimit.Passed(now) {
			d.Verdict, d.Expired = Disallowed, true
		}
	}
	return d
}

// matching is what of a policy speaks to a query's crawler and host.
type matching struct {
	token    [1]*atom
	middle   []*atom
	everyone [1]*atom
	hosts    *hostClass
}

func (p *Policy) match(q *Query) (m matching) {
	cr := &p.crawlers[q.Crawler]
	m.token[0], m.middle, m.everyone[0] = cr.token, cr.middle, p.everyone
	if len(q.Purposes) > 0 && len(p.purposes) > 0 {
		m.middle = p.withPurposes(cr.middle, q.Purposes)
	}
	m.hosts = p.hosts.class(q.Host)
	return m
}

// withPurposes adds the audiences of purposes that the client itself named.
func (p *Policy) withPurposes(middle []*atom, purposes []string) []*atom {
	middle = middle[:len(middle):len(middle)]
	for _, name := range purposes {
		if a := p.purposes[name]; a != nil {
			middle = append(middle, a)
		}
	}
	return middle
}

func (m *matching) atoms(t Tier) []*atom {
	switch t {
	case TierToken:
		if m.token[0] == nil {
			return nil
		}
		return m.token[:]
	case TierGroup:
		return m.middle
	}
	return m.everyone[:]
}

func (a *atom) cell(host int32) *cell {
	if host == noHost {
		return a.anyHost
	}
	return a.byHost[host]
}

func (c *condition) holds(q *Query) bool {
	if c.identity != Claimed && !q.Identity.meets(c.identity) {
		return false
	}
	if len(c.purposes) == 0 {
		return true
	}
	for _, pattern := range c.purposes {
		for _, purpose := range q.Purposes {
			if matchPurpose(pattern, purpose) {
				return true
			}
		}
	}
	return false
}

// each calls visit for the blocks that speak to a query, those of each rank
// together, until it returns true.
func (p *Policy) each(q *Query, visit func(tier Tier, blocks []*block) bool) {
	m := p.match(q)
	for tier := range numTiers {
		for level := range numHostLevels {
			var blocks []*block
			for _, a := range m.atoms(tier) {
				for _, h := range m.hosts.level(level) {
					if c := a.cell(h); c != nil {
						for _, b := range c.blocks {
							if b.condition.holds(q) {
								blocks = append(blocks, b)
							}
						}
					}
				}
			}
			if len(blocks) > 0 && visit(tier, blocks) {
				return
			}
		}
	}
}

// longestOf is the value of the longest pattern in several blocks of one rank.
func longestOf[V any](blocks []*block, path string, index func(*block) *pathpattern.Index[V], merge func(a, b V) V) (best V, ok bool) {
	length := 0
	for _, b := range blocks {
		x := index(b)
		if x == nil {
			continue
		}
		n, v := x.Longest(path)
		switch {
		case n > length:
			length, best = n, v
		case n > 0 && n == length:
			best = merge(best, v)
		}
	}
	return best, length > 0
}

// AppDirective returns what the policy directs an application to do with the
// query's path, by the order of Decide, or nil. The query's usage is not looked
// at.
func (p *Policy) AppDirective(q Query, app string) *AppDirective {
	q.Path = pathpattern.NormalizePath(q.Path)
	var found *AppDirective
	p.each(&q, func(_ Tier, blocks []*block) bool {
		d, ok := longestOf(blocks, q.Path, func(b *block) *pathpattern.Index[*AppDirective] { return b.apps[app] }, firstDirective)
		found = d
		return ok
	})
	return found
}

// EngineRule returns an engine's own rule for the query's path, by the order of
// Decide; rules of equal rank are combined to the stricter. The statement is
// the first of them, with its Rule, both nil for none. The query's usage is not
// looked at.
func (p *Policy) EngineRule(q Query, name string) (robotsrule.Set, *EngineRule, *Rule) {
	q.Path = pathpattern.NormalizePath(q.Path)
	var found engineValue
	p.each(&q, func(_ Tier, blocks []*block) bool {
		v, ok := longestOf(blocks, q.Path, func(b *block) *pathpattern.Index[engineValue] { return b.engines[name] }, engineValue.union)
		found = v
		return ok
	})
	return found.rule, found.by, found.of
}

// CrawlDelay returns the rule whose crawl-delay holds for the query's crawler
// and host, by the order of Decide; of several of equal rank the longest delay.
// It is nil for none. The query's path and usage are not looked at.
func (p *Policy) CrawlDelay(q Query) *Rule {
	var found *Rule
	p.each(&q, func(_ Tier, blocks []*block) bool {
		for _, b := range blocks {
			if b.delay != nil {
				found = longerDelay(found, b.delay)
			}
		}
		return found != nil
	})
	return found
}
