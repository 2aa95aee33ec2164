// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"math"
	"slices"
)

// atom is one audience as rules name it, with its blocks for each host.
type atom struct {
	audience Audience // with the name in lower case
	anyHost  *cell
	byHost   map[int32]*cell // nil when no rule for it names a host
	reaches  []int32         // that it is part of, by their places in Policy.reaches; not for everyone
}

func (c *compiler) atom(a Audience) *atom {
	m := c.atoms[a]
	if m == nil {
		m = &atom{audience: a}
		c.atoms[a] = m
	}
	return m
}

// cell returns what is said to the audience on a host, or nil.
func (a *atom) cell(host int32) *cell {
	if host == noHost {
		return a.anyHost
	}
	return a.byHost[host]
}

func (a *atom) setCell(host int32, c *cell) {
	switch {
	case host == noHost:
		a.anyHost = c
	case a.byHost == nil:
		a.byHost = map[int32]*cell{host: c}
	default:
		a.byHost[host] = c
	}
}

// crawlers adds the crawlers that only rules name to those of the catalogue, and ties
// each to the audiences that it belongs to.
func (c *compiler) crawlers() error {
	p := c.p
	for i := range p.spec.Rules {
		for _, a := range p.spec.Rules[i].For {
			if a.Kind == ForToken {
				p.addOwn(a.Name)
			}
		}
	}
	p.families = p.table.families
	if len(p.own) > 0 {
		p.families = p.familiesOf()
	}
	p.reachOf = make([]uint16, p.numCrawlers())
	var buf []reach
	at := map[reachKey]int32{}
	for id := range p.reachOf {
		buf = c.appendReaches(buf[:0], CrawlerID(id))
		key, ok := keyOf(buf)
		n, known := at[key]
		if !ok || !known {
			n = int32(len(p.reaches))
			p.reaches = append(p.reaches, slices.Clone(buf))
			p.crawlersOf = append(p.crawlersOf, nil)
			for _, r := range buf {
				if r.tier < TierEveryone {
					r.reaches = append(r.reaches, n)
				}
			}
		}
		if ok {
			at[key] = n
		}
		p.reachOf[id] = uint16(n)
		if len(buf) > 0 && buf[0].tier < TierEveryone {
			p.crawlersOf[n] = append(p.crawlersOf[n], CrawlerID(id))
		}
	}
	if len(p.reaches) > math.MaxUint16 {
		return ErrTooLarge
	}
	for a, m := range c.atoms {
		if a.Kind == ForPurpose {
			p.purposes[a.Name] = m
		}
	}
	return nil
}

// reachKey is the audiences of a crawler, to find others with the same.
type reachKey [6]reach

// keyOf returns the key of a few audiences; false if they are too many.
func keyOf(all []reach) (key reachKey, ok bool) {
	ok = copy(key[:], all) == len(all)
	return key, ok
}

// appendReaches appends the audiences of rules that name a crawler.
func (c *compiler) appendReaches(all []reach, id CrawlerID) []reach {
	add := func(t Tier, a Audience) {
		if m := c.atoms[a]; m != nil && !slices.ContainsFunc(all, func(r reach) bool { return r.atom == m }) {
			all = append(all, reach{t, m})
		}
	}
	cr := c.p.crawler(id)
	if cr.Token != "" {
		add(TierToken, Audience{ForToken, lower(cr.Token)})
	}
	if head := c.p.Family(id); head != 0 {
		add(TierFamily, Audience{ForToken, lower(c.p.crawler(head).Token)})
	}
	if cr.Kind != "" {
		add(TierGroup, Audience{ForCategory, lower(cr.Kind)})
	}
	if cr.Operator != "" {
		add(TierGroup, Audience{ForOperator, lower(cr.Operator)})
	}
	for _, name := range cr.Purposes {
		add(TierGroup, Audience{ForPurpose, lower(name)})
	}
	add(TierEveryone, Audience{})
	add(TierEveryone, Audience{Kind: ForEveryoneElse})
	return all
}
