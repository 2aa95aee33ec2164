// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"encoding/binary"
	"fmt"
	"slices"

	"github.com/robotspolicy/caddy-robots-policy/pathpattern"
	"github.com/robotspolicy/caddy-robots-policy/robotsrule"
)

// cell holds the rules for one audience on one host.
type cell struct {
	rules   []int32 // indexes into Spec.Rules, in ascending order
	sources []*blockSource
	blocks  []*block
}

type condition struct {
	identity Demand
	purposes []string
	fallback bool // the rule is from the site's own robots.txt, see Rule.Fallback
}

func (r *Rule) condition() condition {
	return condition{r.Identity, foldedAll(r.UsagePurposes), r.Fallback}
}

// key returns a string that is equal for two conditions only if the conditions are equal.
func (c *condition) key() string { return fmt.Sprintf("%d %q %t", c.identity, c.purposes, c.fallback) }

// blockSource collects the rules with equal audiences, hosts and conditions. The compiler makes blocks of it.
type blockSource struct {
	id        int
	rules     []int32 // indexes into Spec.Rules
	condition condition
	audiences []Audience
	hosts     []int32
	entries   facets
	compiled  *block
}

type facets struct {
	usages  [numUsages][]int32 // indexes into Policy.statements
	engines map[string][]pathpattern.Entry[engineValue]
	delay   []*Rule
	limit   []*Rule
	size    int
}

// block holds the compiled form of rules that reach the same crawlers on the same hosts.
type block struct {
	condition condition
	usages    [numUsages]*statementIndex
	engines   map[string]*pathpattern.Index[engineValue]
	delay     *Rule
	limit     *Rule
}

// place assigns each block source to the cells of its audiences and hosts, then builds the blocks of the cells.
func (c *compiler) place() {
	var all []*cell
	c.p.atomsOn = make([][]*atom, max(1, len(c.p.hosts.ranks)))
	at := func(m *atom, host int32, b *blockSource) {
		cl := m.cell(host)
		if cl == nil {
			cl = &cell{}
			m.setCell(host, cl)
			all = append(all, cl)
			c.p.atomsOn[host] = append(c.p.atomsOn[host], m)
		}
		cl.sources = append(cl.sources, b)
		cl.rules = append(cl.rules, b.rules...)
	}
	for _, b := range c.order {
		for _, a := range b.audiences {
			m := c.atom(a)
			if len(b.hosts) == 0 {
				at(m, noHost, b)
			}
			for _, h := range b.hosts {
				at(m, h, b)
			}
		}
	}
	for _, cl := range all {
		slices.Sort(cl.rules)
		cl.blocks = c.build(cl.sources)
		cl.sources = nil
	}
}

// build makes the blocks of a cell from its block sources. It joins sources that have the same condition, so a decision
// needs fewer lookups. Joining copies statements, so build stops joining when compiler.copies does not allow more
// copies.
func (c *compiler) build(sources []*blockSource) []*block {
	if len(sources) == 1 {
		return c.join(sources, 0)
	}
	byCondition := map[string][]*blockSource{}
	var keys []string
	for _, s := range sources {
		key := s.condition.key()
		if byCondition[key] == nil {
			keys = append(keys, key)
		}
		byCondition[key] = append(byCondition[key], s)
	}
	var blocks []*block
	for _, key := range keys {
		size := 0
		for _, s := range byCondition[key] {
			size += s.entries.size
		}
		blocks = append(blocks, c.join(byCondition[key], size)...)
	}
	return blocks
}

func (c *compiler) join(same []*blockSource, size int) []*block {
	if len(same) > 1 {
		var ids []byte
		for _, s := range same {
			ids = binary.AppendUvarint(ids, uint64(s.id))
		}
		key := string(ids)
		if b := c.joined[key]; b != nil {
			return []*block{b}
		}
		if size <= c.copies {
			c.copies -= size
			var all facets
			for _, s := range same {
				all.add(&s.entries)
			}
			b := c.compile(same[0].condition, &all)
			c.joined[key] = b
			return []*block{b}
		}
	}
	var blocks []*block
	for _, s := range same {
		if s.compiled == nil {
			s.compiled = c.compile(s.condition, &s.entries)
		}
		blocks = append(blocks, s.compiled)
	}
	return blocks
}

func (f *facets) add(g *facets) {
	for u := range f.usages {
		f.usages[u] = append(f.usages[u], g.usages[u]...)
	}
	for name, es := range g.engines {
		f.addEngine(name, es...)
	}
	f.delay = append(f.delay, g.delay...)
	f.limit = append(f.limit, g.limit...)
}

func (f *facets) addEngine(name string, es ...pathpattern.Entry[engineValue]) {
	if f.engines == nil {
		f.engines = map[string][]pathpattern.Entry[engineValue]{}
	}
	f.engines[name] = append(f.engines[name], es...)
}

func (c *compiler) compile(cond condition, f *facets) *block {
	b := &block{condition: cond}
	for u, ids := range f.usages {
		if len(ids) > 0 {
			b.usages[u] = c.p.index(ids)
		}
	}
	if len(f.engines) > 0 {
		b.engines = map[string]*pathpattern.Index[engineValue]{}
		for name, es := range f.engines {
			b.engines[name] = pathpattern.NewIndex(es, engineValue.union)
		}
	}
	for _, r := range f.delay {
		b.delay = longerDelay(b.delay, r)
	}
	for _, r := range f.limit {
		b.limit = stricterLimit(b.limit, r)
	}
	return b
}

// engineValue holds a search engine's own rule, such as max-snippet, with the policy's first entry that sets it (by)
// and the policy rule that contains the entry (of).
type engineValue struct {
	rule robotsrule.Set
	by   *EngineRule
	of   *Rule
}

func (a engineValue) union(b engineValue) engineValue {
	first := a
	if b.by.Pos.before(a.by.Pos) {
		first = b
	}
	first.rule = a.rule.Union(b.rule)
	return first
}

// longerDelay returns the rule with the longer crawl-delay. It treats "crawl-delay: none" as the shortest delay.
func longerDelay(a, b *Rule) *Rule {
	if a == nil || b.CrawlDelay > a.CrawlDelay {
		return b
	}
	return a
}
