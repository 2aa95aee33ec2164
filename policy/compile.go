// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/robotspolicy/caddy-robots-policy/internal/leaf/ascii"
	"github.com/robotspolicy/caddy-robots-policy/pathpattern"
)

const (
	// joinFactor and joinSpare limit the number of statements after blocks are joined: at most joinFactor times the
	// number of the policy's statements, plus joinSpare.
	joinFactor = 4
	joinSpare  = 1 << 16
)

// Compile builds a policy from spec. Callers must not change spec afterwards.
func Compile(spec *Spec) *Policy {
	table := spec.Table
	if table == nil || !table.lists(spec.Crawlers) {
		table = NewCrawlerTable(spec.Crawlers)
	}
	c := compiler{
		p:      &Policy{spec: spec, table: table, purposes: map[string]*atom{}},
		atoms:  map[Audience]*atom{},
		blocks: map[string]*blockSource{},
		joined: map[string]*block{},
	}
	c.group()
	c.p.hosts.link(c.p.ruleHosts)
	c.place()
	c.crawlers()
	return c.p
}

type compiler struct {
	p      *Policy
	atoms  map[Audience]*atom
	blocks map[string]*blockSource // the key is made of the audiences, hosts and condition
	order  []*blockSource
	joined map[string]*block // the key is made of the ids of the joined sources
	copies int               // the number of statements that joining may still copy
}

// group collects the content of all rules with equal audiences, hosts and conditions in one blockSource.
func (c *compiler) group() {
	p := c.p
	for i := range p.spec.Rules {
		r := &p.spec.Rules[i]
		src := c.source(r)
		p.ruleHosts = append(p.ruleHosts, src.hosts)
		p.demands = p.demands || r.Identity != DemandAny
		src.rules = append(src.rules, int32(i))
		f := &src.entries
		for j := range r.Statements {
			s := &r.Statements[j]
			id := int32(len(p.statements))
			p.statements, p.ruleOf = append(p.statements, s), append(p.ruleOf, r)
			var limits Limits
			if s.Allow && s.Qualifiers != nil {
				limits = Limits{s.Qualifiers}
			}
			p.limits = append(p.limits, limits)
			p.wild = p.wild || (!s.Allow || s.Qualifiers != nil) && !s.Pattern.IsPlain()
			f.usages[s.Usage] = append(f.usages[s.Usage], id)
		}
		for _, d := range r.AppDirectives {
			if !slices.Contains(p.apps, d.App) {
				p.apps = append(p.apps, d.App)
			}
		}
		for j := range r.EngineRules {
			e := &r.EngineRules[j]
			f.addEngine(e.Name, pathpattern.Entry[engineValue]{Pattern: e.Pattern, Value: engineValue{e.Rule, e, r}})
			if !slices.Contains(p.engines, e.Name) {
				p.engines = append(p.engines, e.Name)
			}
		}
		if r.CrawlDelay > 0 || r.NoCrawlDelay {
			f.delay = append(f.delay, r)
		}
		if !r.Limit.IsZero() || r.NoLimit {
			f.limit = append(f.limit, r)
		}
		f.size += len(r.Statements) + len(r.EngineRules)
	}
	p.narrower = narrowerRules(p.spec)
	c.copies = (joinFactor-1)*len(p.statements) + joinSpare
}

func (c *compiler) source(r *Rule) *blockSource {
	audiences := make([]Audience, len(r.For))
	for i, a := range r.For {
		audiences[i] = a.folded()
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
	cond := r.condition()
	key := fmt.Sprintf("%q %v %s", audiences, hosts, cond.key())
	b := c.blocks[key]
	if b == nil {
		b = &blockSource{
			id: len(c.order), audiences: audiences, hosts: hosts, condition: cond,
		}
		c.blocks[key] = b
		c.order = append(c.order, b)
	}
	return b
}

func (p Pos) compare(q Pos) int { return cmp.Or(p.Line-q.Line, p.Column-q.Column) }

func (p Pos) before(q Pos) bool { return p.compare(q) < 0 }

// foldedAll returns the names in lower case, sorted.
func foldedAll(names []string) []string {
	folded := make([]string, len(names))
	for i, n := range names {
		folded[i] = ascii.Lower(n)
	}
	slices.Sort(folded)
	return folded
}

// Folded returns a policy for paths in lower case (see pathpattern.Fold). Its crawlers have the same numbers as in p,
// and its decisions contain the statements of p. It does not have the rules of WithFallback. If all patterns are
// already in lower case and there are no such rules, Folded returns p itself.
func (p *Policy) Folded() *Policy {
	changed := false
	fold := func(pattern *pathpattern.Pattern) {
		folded := pattern.Folded()
		changed = changed || folded != *pattern
		*pattern = folded
	}
	spec := *p.spec
	spec.Table = p.table
	spec.Rules = slices.Clone(p.spec.Rules)
	for i := range spec.Rules {
		r := &spec.Rules[i]
		if r.Fallback { // readers of robots.txt distinguish letter case (RFC 9309 section 2.2.2)
			r.Statements, changed = nil, true
			continue
		}
		r.Statements, r.EngineRules = slices.Clone(r.Statements), slices.Clone(r.EngineRules)
		for j := range r.Statements {
			fold(&r.Statements[j].Pattern)
		}
		for j := range r.EngineRules {
			fold(&r.EngineRules[j].Pattern)
		}
	}
	if !changed {
		return p
	}
	folded := Compile(&spec)
	folded.statements, folded.ruleOf, folded.limits = p.statements, p.ruleOf, p.limits
	return folded
}
