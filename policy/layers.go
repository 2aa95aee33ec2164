// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"cmp"
	"encoding/binary"
	"slices"

	"github.com/robotspolicy/caddy-robots-policy/pathpattern"
)

// Ref is a statement with its rule.
type Ref struct {
	Rule      *Rule
	Statement *Statement
}

// Layer is the statements of one rank by audience, host and usage, in the order
// of the file. Within a layer the longest pattern decides; between layers the
// first that speaks of a path does.
type Layer struct {
	Tier       Tier
	Usage      Usage // the one asked for, or Present or Other in its stead
	Statements []Ref
}

// Rank is rules that speak with equal rank by audience and host.
type Rank struct {
	Tier  Tier
	Rules []*Rule
}

// Class is crawlers to which the same rules speak on a host.
type Class struct {
	// Crawlers is in the order of Policy.Crawlers. It is empty for the class of
	// everybody that the other classes do not list.
	Crawlers []CrawlerID

	tiers [numTiers][]int32 // the rules, by their places in Spec.Rules
	hosts *hostClass
}

// Classes groups the crawlers by the rules that speak to them on a host,
// whatever their identity. The first class is that of everybody else: the
// crawlers to which only rules for everyone speak. The others stand in the
// order of the first rules that set them apart.
func (p *Policy) Classes(host string) []Class {
	hosts := p.hosts.class(host)
	everyone := p.onHost(hosts, []*atom{p.everyone})
	classes := []Class{{tiers: [numTiers][]int32{TierEveryone: everyone}, hosts: hosts}}
	at := map[string]int{}
	var key []byte
	for id := 1; id < len(p.crawlers); id++ {
		cr := &p.crawlers[id]
		if cr.token == nil && len(cr.middle) == 0 {
			continue
		}
		c := Class{hosts: hosts, tiers: [numTiers][]int32{TierEveryone: everyone, TierGroup: p.onHost(hosts, cr.middle)}}
		if cr.token != nil {
			c.tiers[TierToken] = p.onHost(hosts, []*atom{cr.token})
		}
		if len(c.tiers[TierToken])+len(c.tiers[TierGroup]) == 0 {
			continue
		}
		key = key[:0]
		for _, rules := range c.tiers[:TierEveryone] {
			key = binary.AppendUvarint(key, uint64(len(rules)))
			for _, r := range rules {
				key = binary.AppendUvarint(key, uint64(r))
			}
		}
		n, ok := at[string(key)]
		if !ok {
			n = len(classes)
			at[string(key)] = n
			classes = append(classes, c)
		}
		classes[n].Crawlers = append(classes[n].Crawlers, CrawlerID(id))
	}
	slices.SortStableFunc(classes[1:], func(a, b Class) int { return cmp.Compare(a.first(), b.first()) })
	return classes
}

// ClassOf returns the class of one crawler on a host, with no other in it.
func (p *Policy) ClassOf(id CrawlerID, host string) Class {
	hosts := p.hosts.class(host)
	cr := &p.crawlers[id]
	c := Class{Crawlers: []CrawlerID{id}, hosts: hosts}
	c.tiers[TierEveryone] = p.onHost(hosts, []*atom{p.everyone})
	c.tiers[TierGroup] = p.onHost(hosts, cr.middle)
	if cr.token != nil {
		c.tiers[TierToken] = p.onHost(hosts, []*atom{cr.token})
	}
	return c
}

// ClassesOf is Classes without those that are told of a path what everyone is, but
// for crawling: to which no rule more narrow than those for everyone speaks of the
// path otherwise. The first class always is that of everybody.
func (p *Policy) ClassesOf(host, path string) []Class {
	speak := map[int32]bool{}
	p.narrower.Matches(pathpattern.NormalizePath(path), func(rules []int32) {
		for _, r := range rules {
			speak[r] = true
		}
	})
	if len(speak) == 0 {
		hosts := p.hosts.class(host)
		return []Class{{tiers: [numTiers][]int32{TierEveryone: p.onHost(hosts, []*atom{p.everyone})}, hosts: hosts}}
	}
	classes := p.Classes(host)
	others := slices.DeleteFunc(classes[1:], func(c Class) bool {
		for _, rules := range c.tiers[:TierEveryone] {
			if slices.ContainsFunc(rules, func(r int32) bool { return speak[r] }) {
				return false
			}
		}
		return true
	})
	return classes[:1+len(others)]
}

// narrowerRules finds the rules that are for less than everyone by the paths of
// which they speak, but for crawling.
func narrowerRules(spec *Spec) *pathpattern.Index[[]int32] {
	var entries []pathpattern.Entry[[]int32]
	for i := range spec.Rules {
		r := &spec.Rules[i]
		if !slices.ContainsFunc(r.For, func(a Audience) bool { return a.Kind != ForEveryone }) {
			continue
		}
		for _, s := range r.Statements {
			if s.Usage != Crawl {
				entries = append(entries, pathpattern.Entry[[]int32]{Pattern: s.Pattern, Value: []int32{int32(i)}})
			}
		}
		for _, e := range r.EngineRules {
			entries = append(entries, pathpattern.Entry[[]int32]{Pattern: e.Pattern, Value: []int32{int32(i)}})
		}
	}
	return pathpattern.NewIndex(entries, func(a, b []int32) []int32 { return slices.Concat(a, b) })
}

// onHost merges the rules of some audiences and leaves those for other hosts out.
func (p *Policy) onHost(hosts *hostClass, atoms []*atom) []int32 {
	var rules []int32
	for _, a := range atoms {
		for _, r := range a.rules {
			if p.hostLevel(r, hosts) < numHostLevels {
				rules = append(rules, r)
			}
		}
	}
	if len(atoms) > 1 {
		slices.Sort(rules)
		rules = slices.Compact(rules)
	}
	return rules
}

// hostLevel says how a rule names the hosts of a class; numHostLevels if it
// does not.
func (p *Policy) hostLevel(rule int32, hosts *hostClass) hostLevel {
	named := p.ruleHosts[rule]
	if len(named) == 0 {
		return everyHost
	}
	for l := range everyHost {
		for _, h := range hosts.level(l) {
			if slices.Contains(named, h) {
				return l
			}
		}
	}
	return numHostLevels
}

// first is the place of the first rule that names the crawlers more narrowly
// than everyone.
func (c *Class) first() int32 {
	first := int32(-1)
	for _, rules := range c.tiers[:TierEveryone] {
		if len(rules) > 0 && (first < 0 || rules[0] < first) {
			first = rules[0]
		}
	}
	return first
}

// Rules lists the rules that speak to the class in a tier, in the order of the
// file.
func (p *Policy) Rules(c *Class, t Tier) []*Rule {
	rules := make([]*Rule, len(c.tiers[t]))
	for i, r := range c.tiers[t] {
		rules[i] = &p.spec.Rules[r]
	}
	return rules
}

// Layers returns what the policy states to a class about a usage, in the order
// in which Decide asks. Rules that demand an identity are among them, as no
// robots.txt can ask for one; rules with usage purposes only if they match the
// purpose, in lower case.
func (p *Policy) Layers(c *Class, u Usage, purpose string) []Layer {
	layers := p.layersOf(c, u, purpose, nil)
	if u != Crawl && u != Other {
		layers = p.layersOf(c, Other, purpose, layers)
	}
	return layers
}

func (p *Policy) layersOf(c *Class, u Usage, purpose string, layers []Layer) []Layer {
	usages := []Usage{u}
	if fallback, ok := u.fallback(); ok {
		usages = append(usages, fallback)
	}
	for tier := range numTiers {
		for level := range numHostLevels {
			for _, usage := range usages {
				l := Layer{Tier: tier, Usage: usage}
				for _, r := range c.tiers[tier] {
					if p.hostLevelIs(r, c.hosts, level) && p.spec.Rules[r].speaksOf(purpose) {
						l.add(&p.spec.Rules[r])
					}
				}
				if len(l.Statements) > 0 {
					layers = append(layers, l)
				}
			}
		}
	}
	return layers
}

// Ranks lists the rules that speak to a class, whatever purpose they ask for,
// in the order in which Decide asks: by tier, then by how they name the host.
// The rules of one rank stand in the order of the file; a rank without rules is
// left out.
func (p *Policy) Ranks(c *Class) []Rank {
	var ranks []Rank
	for tier := range numTiers {
		for level := range numHostLevels {
			rank := Rank{Tier: tier}
			for _, r := range c.tiers[tier] {
				if p.hostLevelIs(r, c.hosts, level) {
					rank.Rules = append(rank.Rules, &p.spec.Rules[r])
				}
			}
			if len(rank.Rules) > 0 {
				ranks = append(ranks, rank)
			}
		}
	}
	return ranks
}

// WithPurpose returns the class of the crawlers of c that name a purpose
// themselves: the rules for "purpose:NAME" speak to them too. The purpose is in
// lower case.
func (p *Policy) WithPurpose(c *Class, purpose string) Class {
	with := *c
	if a := p.purposes[purpose]; a != nil {
		rules := slices.Concat(c.tiers[TierGroup], p.onHost(c.hosts, []*atom{a}))
		slices.Sort(rules)
		with.tiers[TierGroup] = slices.Compact(rules)
	}
	return with
}

// hostLevelIs reports whether a rule speaks at a level: a rule that names both
// the host and a wildcard above it speaks at both.
func (p *Policy) hostLevelIs(rule int32, hosts *hostClass, level hostLevel) bool {
	named := p.ruleHosts[rule]
	if level == everyHost || len(named) == 0 {
		return level == everyHost && len(named) == 0
	}
	for _, h := range hosts.level(level) {
		if slices.Contains(named, h) {
			return true
		}
	}
	return false
}

// speaksOf reports whether a rule speaks to queries that name a purpose; an
// empty one stands for none.
func (r *Rule) speaksOf(purpose string) bool {
	if len(r.UsagePurposes) == 0 {
		return true
	}
	for _, u := range r.UsagePurposes {
		if purpose != "" && matchPurpose(lower(u), purpose) {
			return true
		}
	}
	return false
}

func (l *Layer) add(r *Rule) {
	for i := range r.Statements {
		if s := &r.Statements[i]; s.Usage == l.Usage {
			l.Statements = append(l.Statements, Ref{r, s})
		}
	}
}

// Decides returns which of the layer's statements, all of which match a path by
// patterns of equal length, decides about it, by the fifth rule of Decide.
func (l *Layer) Decides(tied []Ref) Ref {
	var allow, disallow *Ref
	across := false
	for i := range tied {
		r := &tied[i]
		first := &allow
		if !r.Statement.Allow {
			first = &disallow
		}
		if *first == nil || (*first).Statement.Qualifiers == nil && r.Statement.Qualifiers != nil {
			*first = r
		}
		across = across || r.Rule != tied[0].Rule
	}
	if allow == nil || disallow != nil && l.Tier == TierGroup && across {
		return *disallow
	}
	return *allow
}
