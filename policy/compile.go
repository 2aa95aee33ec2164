// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/robotspolicy/caddy-robots-policy/pathpattern"
	"github.com/robotspolicy/caddy-robots-policy/robotsrule"
)

// ErrTooLarge is the error of a policy whose rules, spelled out for every
// crawler and host that they name, pass the limits of Compile.
var ErrTooLarge = errors.New("the rules name too many different combinations of crawlers and hosts")

const (
	maxCells = 1 << 20 // pairs of an audience and a host that have rules
	// What all blocks may hold together once blocks that speak of the same
	// audience and host are joined: so many times what the rules state, and some.
	joinFactor = 4
	joinSpare  = 1 << 16
)

// Compile builds the policy that spec states. The spec must not be changed
// afterwards. Its only error is ErrTooLarge: everything else is for the reader
// of the policy file to check, and Compile takes a Spec at its word.
func Compile(spec *Spec) (*Policy, error) {
	c := compiler{
		p: &Policy{
			spec:     spec,
			byToken:  make(map[string]CrawlerID, len(spec.Crawlers)),
			purposes: map[string]*atom{},
			everyone: &atom{},
		},
		atoms:  map[Audience]*atom{},
		blocks: map[string]*blockSource{},
		joined: map[string]*block{},
	}
	c.atoms[Audience{}] = c.p.everyone
	c.group()
	c.p.hosts.link()
	if err := c.place(); err != nil {
		return nil, err
	}
	c.crawlers()
	return c.p, nil
}

type compiler struct {
	p      *Policy
	atoms  map[Audience]*atom
	blocks map[string]*blockSource // by audiences, hosts and condition
	order  []*blockSource
	joined map[string]*block // by the blocks that were joined
	budget int               // entries that joining may still copy
}

// atom is one audience as rules name it, with its blocks for each host.
type atom struct {
	anyHost *cell
	byHost  map[int32]*cell // nil when no rule for it names a host
	rules   []int32         // that name it, by their places in Spec.Rules
}

// cell is what is said to one audience on one host.
type cell struct {
	sources []*blockSource
	blocks  []*block
}

// condition is what a query must meet for a block to speak to it.
type condition struct {
	identity Identity
	purposes []string
}

// blockSource is the rules that share audiences, hosts and condition.
type blockSource struct {
	id        int
	condition condition
	audiences []Audience
	hosts     []int32
	entries   facets
	compiled  *block
}

// facets is what a block says, by what it is about.
type facets struct {
	usages  [numUsages][]pathpattern.Entry[verdicts]
	apps    map[string][]pathpattern.Entry[*AppDirective]
	engines map[string][]pathpattern.Entry[engineValue]
	delay   []*Rule
	size    int
}

// block answers for a set of rules that speak with equal rank.
type block struct {
	condition condition
	usages    [numUsages]*pathpattern.Index[verdicts]
	apps      map[string]*pathpattern.Index[*AppDirective]
	engines   map[string]*pathpattern.Index[engineValue]
	delay     *Rule
}

// group sorts the rules and their statements by audience, host and condition.
func (c *compiler) group() {
	p := c.p
	for i := range p.spec.Rules {
		r := &p.spec.Rules[i]
		src := c.source(r)
		p.ruleHosts = append(p.ruleHosts, src.hosts)
		p.demands = p.demands || r.Identity != Claimed
		for _, a := range src.audiences {
			m := c.atom(a)
			m.rules = append(m.rules, int32(i))
		}
		f := &src.entries
		for j := range r.Statements {
			s := &r.Statements[j]
			id := int32(len(p.statements))
			p.statements, p.ruleOf = append(p.statements, s), append(p.ruleOf, r)
			f.usages[s.Usage] = append(f.usages[s.Usage], pathpattern.Entry[verdicts]{Pattern: s.Pattern, Value: one(s, id, int32(i))})
		}
		for j := range r.AppDirectives {
			d := &r.AppDirectives[j]
			if f.apps == nil {
				f.apps = map[string][]pathpattern.Entry[*AppDirective]{}
			}
			f.apps[d.App] = append(f.apps[d.App], pathpattern.Entry[*AppDirective]{Pattern: d.Pattern, Value: d})
			if !slices.Contains(p.apps, d.App) {
				p.apps = append(p.apps, d.App)
			}
		}
		for j := range r.EngineRules {
			e := &r.EngineRules[j]
			if f.engines == nil {
				f.engines = map[string][]pathpattern.Entry[engineValue]{}
			}
			f.engines[e.Name] = append(f.engines[e.Name], pathpattern.Entry[engineValue]{Pattern: e.Pattern, Value: engineValue{e.Rule, e, r}})
			if !slices.Contains(p.engines, e.Name) {
				p.engines = append(p.engines, e.Name)
			}
		}
		if r.CrawlDelay > 0 {
			f.delay = append(f.delay, r)
		}
		f.size += len(r.Statements) + len(r.AppDirectives) + len(r.EngineRules)
	}
	p.narrower = narrowerRules(p.spec)
	c.budget = (joinFactor-1)*len(p.statements) + joinSpare
}

func (c *compiler) atom(a Audience) *atom {
	m := c.atoms[a]
	if m == nil {
		m = &atom{}
		c.atoms[a] = m
	}
	return m
}

// source returns the block source that r belongs to.
func (c *compiler) source(r *Rule) *blockSource {
	audiences := make([]Audience, len(r.For))
	for i, a := range r.For {
		audiences[i] = Audience{a.Kind, lower(a.Name)}
	}
	slices.SortFunc(audiences, func(a, b Audience) int {
		return cmp.Or(cmp.Compare(a.Kind, b.Kind), strings.Compare(a.Name, b.Name))
	})
	audiences = slices.Compact(audiences)
	hosts := make([]int32, len(r.Hosts))
	for i, h := range r.Hosts {
		hosts[i] = c.p.hosts.intern(h)
	}
	slices.Sort(hosts)
	hosts = slices.Compact(hosts)
	purposes := make([]string, len(r.UsagePurposes))
	for i, u := range r.UsagePurposes {
		purposes[i] = lower(u)
	}
	slices.Sort(purposes)
	key := fmt.Sprintf("%q %v %d %q", audiences, hosts, r.Identity, purposes)
	b := c.blocks[key]
	if b == nil {
		b = &blockSource{
			id: len(c.order), audiences: audiences, hosts: hosts,
			condition: condition{r.Identity, purposes},
		}
		c.blocks[key] = b
		c.order = append(c.order, b)
	}
	return b
}

// place gives each audience its blocks, then builds the blocks.
func (c *compiler) place() error {
	cells := 0
	var all []*cell
	at := func(cl **cell, b *blockSource) {
		if *cl == nil {
			*cl = &cell{}
			all = append(all, *cl)
		}
		(*cl).sources = append((*cl).sources, b)
	}
	for _, b := range c.order {
		cells += len(b.audiences) * max(1, len(b.hosts))
		if cells > maxCells {
			return ErrTooLarge
		}
		for _, a := range b.audiences {
			m := c.atom(a)
			if len(b.hosts) == 0 {
				at(&m.anyHost, b)
				continue
			}
			if m.byHost == nil {
				m.byHost = map[int32]*cell{}
			}
			for _, h := range b.hosts {
				cl := m.byHost[h]
				at(&cl, b)
				m.byHost[h] = cl
			}
		}
	}
	for _, cl := range all {
		cl.blocks = c.build(cl.sources)
		cl.sources = nil
	}
	return nil
}

// build makes the blocks of a cell. Sources with the same condition are joined
// into one block, so that a decision looks once, as long as the copies that it
// takes stay within the budget.
func (c *compiler) build(sources []*blockSource) []*block {
	var blocks []*block
	for len(sources) > 0 {
		same, rest := []*blockSource{sources[0]}, []*blockSource(nil)
		size := sources[0].entries.size
		for _, s := range sources[1:] {
			if s.condition.equal(sources[0].condition) {
				same = append(same, s)
				size += s.entries.size
			} else {
				rest = append(rest, s)
			}
		}
		blocks = append(blocks, c.join(same, size)...)
		sources = rest
	}
	return blocks
}

func (c *compiler) join(same []*blockSource, size int) []*block {
	if len(same) > 1 {
		key := ""
		for _, s := range same {
			key += fmt.Sprint(s.id, " ")
		}
		if b := c.joined[key]; b != nil {
			return []*block{b}
		}
		if size <= c.budget {
			c.budget -= size
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
	for name, es := range g.apps {
		if f.apps == nil {
			f.apps = map[string][]pathpattern.Entry[*AppDirective]{}
		}
		f.apps[name] = append(f.apps[name], es...)
	}
	for name, es := range g.engines {
		if f.engines == nil {
			f.engines = map[string][]pathpattern.Entry[engineValue]{}
		}
		f.engines[name] = append(f.engines[name], es...)
	}
	f.delay = append(f.delay, g.delay...)
}

func (c *compiler) compile(cond condition, f *facets) *block {
	b := &block{condition: cond}
	for u, es := range f.usages {
		if len(es) > 0 {
			b.usages[u] = pathpattern.NewIndex(es, c.p.combine)
		}
	}
	if len(f.apps) > 0 {
		b.apps = map[string]*pathpattern.Index[*AppDirective]{}
		for name, es := range f.apps {
			b.apps[name] = pathpattern.NewIndex(es, firstDirective)
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
	return b
}

// crawlers lists the crawlers of the catalogue and those that only rules name,
// and ties each to the audiences that it belongs to.
func (c *compiler) crawlers() {
	p := c.p
	p.crawlers = make([]crawler, 1, len(p.spec.Crawlers)+1)
	add := func(info Crawler) {
		key := lower(info.Token)
		if _, ok := p.byToken[key]; ok {
			return
		}
		cr := crawler{Crawler: info, token: c.atoms[Audience{ForToken, key}]}
		groups := []Audience{{ForCategory, lower(info.Kind)}, {ForOperator, lower(info.Operator)}}
		for _, name := range info.Purposes {
			groups = append(groups, Audience{ForPurpose, lower(name)})
		}
		for _, g := range groups {
			if m := c.atoms[g]; m != nil && g.Name != "" && !slices.Contains(cr.middle, m) {
				cr.middle = append(cr.middle, m)
			}
		}
		p.byToken[key] = CrawlerID(len(p.crawlers))
		p.crawlers = append(p.crawlers, cr)
	}
	for _, info := range p.spec.Crawlers {
		add(info)
	}
	for i := range p.spec.Rules {
		for _, a := range p.spec.Rules[i].For {
			if a.Kind == ForToken {
				add(Crawler{Token: a.Name})
			}
		}
	}
	for a, m := range c.atoms {
		if a.Kind == ForPurpose {
			p.purposes[a.Name] = m
		}
	}
}

func (c condition) equal(d condition) bool {
	return c.identity == d.identity && slices.Equal(c.purposes, d.purposes)
}

// engineValue is an engine's rule with what stated it first.
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

func firstDirective(a, b *AppDirective) *AppDirective {
	if b.Pos.before(a.Pos) {
		return b
	}
	return a
}

func longerDelay(a, b *Rule) *Rule {
	if a == nil || b.CrawlDelay > a.CrawlDelay {
		return b
	}
	return a
}

func (p Pos) before(q Pos) bool {
	return p.Line < q.Line || p.Line == q.Line && p.Column < q.Column
}
