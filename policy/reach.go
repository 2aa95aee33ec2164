// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"slices"
	"strings"

	"github.com/robotspolicy/caddy-robots-policy/internal/leaf/ascii"
)

// atom is an audience of rules, with the cells that hold these rules for each host.
type atom struct {
	audience Audience // with the name in lower case
	number   int64    // different for each atom of a policy, and never 0
	anyHost  *cell
	byHost   map[int32]*cell // nil if no rule for the audience names a host
	reaches  []int32         // the indexes of the elements of Policy.reaches that contain the atom; unset for everyone
}

func (c *compiler) atom(a Audience) *atom {
	m := c.atoms[a]
	if m == nil {
		m = &atom{audience: a, number: int64(len(c.atoms) + 1)}
		c.atoms[a] = m
	}
	return m
}

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

// crawlers adds the crawlers that only rules name, and links each crawler to its audiences.
func (c *compiler) crawlers() {
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
	p.reachOf = make([]int32, p.numCrawlers())
	var buf []reach
	at := map[reachKey]int32{}
	for id := range p.reachOf {
		buf = c.appendReaches(buf[:0], CrawlerID(id))
		key, ok := reachKeyOf(buf)
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
		p.reachOf[id] = n
		if len(buf) > 0 && buf[0].tier < TierEveryone {
			p.crawlersOf[n] = append(p.crawlersOf[n], CrawlerID(id))
		}
	}
	for a, m := range c.atoms {
		if a.Kind == ForPurpose {
			p.purposes[a.Name] = m
		}
	}
}

// reachKey is a map key for a crawler's list of reaches. Crawlers with the same key are reached by the same rules, so
// they share one element of Policy.reaches. Only lists of at most six reaches have a key.
type reachKey [6]int64

// reachKeyOf returns the key of a crawler's list of reaches. ok is false if the list is too long.
func reachKeyOf(all []reach) (key reachKey, ok bool) {
	if len(all) > len(key) {
		return key, false
	}
	for i, r := range all {
		key[i] = r.number<<8 | int64(r.tier)
	}
	return key, true
}

func (c *compiler) appendReaches(all []reach, id CrawlerID) []reach {
	add := func(t Tier, a Audience) {
		if m := c.atoms[a]; m != nil && !slices.ContainsFunc(all, func(r reach) bool { return r.atom == m }) {
			all = append(all, reach{t, m})
		}
	}
	cr := c.p.crawler(id)
	if cr.Token != "" {
		add(TierToken, Audience{ForToken, ascii.Lower(cr.Token)})
	}
	if head := c.p.Family(id); head != 0 {
		add(TierFamily, Audience{ForToken, ascii.Lower(c.p.crawler(head).Token)})
	}
	if cr.Category != "" {
		add(TierGroup, Audience{ForCategory, ascii.Lower(cr.Category)})
	}
	if cr.Operator != "" {
		add(TierGroup, Audience{ForOperator, ascii.Lower(cr.Operator)})
	}
	for _, name := range cr.Purposes {
		add(TierGroup, Audience{ForPurpose, ascii.Lower(name)})
	}
	if cr.AI {
		add(TierAI, Audience{Kind: ForAI})
	}
	add(TierEveryone, Audience{})
	add(TierEveryone, Audience{Kind: ForEveryoneElse})
	return all
}

// NamedBy returns how closely the rule r names the crawler id, and the audience of r that names it. If several
// audiences of r include the crawler, NamedBy uses the one that names it most closely, for example its token instead of
// its category. If none of them includes it, the tier is NotNamed.
func (p *Policy) NamedBy(r *Rule, id CrawlerID) (Tier, Audience) {
	for _, reach := range p.reachesOf(id) {
		if i := slices.IndexFunc(r.For, func(a Audience) bool { return a.folded() == reach.audience }); i >= 0 {
			return reach.tier, r.For[i]
		}
	}
	return NotNamed, Audience{}
}

// CrawlerTable assigns numbers to the crawlers of a Spec. Several policies can share a table, which saves memory,
// because a catalog is large.
type CrawlerTable struct {
	crawlers []Crawler // the index is the CrawlerID; element 0 is the unknown crawler
	byToken  map[string]CrawlerID
	families []CrawlerID // see Policy.Family

	controlled []CrawlerID // the crawlers with a Control
	pageTokens []CrawlerID // the tokens that headers and meta tags can name, but requests never have
}

// NewCrawlerTable returns a table of crawlers. If several crawlers have the same token, the table has only the first.
func NewCrawlerTable(crawlers []Crawler) *CrawlerTable {
	t := &CrawlerTable{crawlers: make([]Crawler, 1, len(crawlers)+1), byToken: make(map[string]CrawlerID, len(crawlers))}
	for _, c := range crawlers {
		key := ascii.Lower(c.Token)
		if _, ok := t.byToken[key]; !ok {
			t.byToken[key] = CrawlerID(len(t.crawlers))
			if c.Control != nil {
				t.controlled = append(t.controlled, CrawlerID(len(t.crawlers)))
			}
			if c.RobotsOnly && c.ReadsMeta {
				t.pageTokens = append(t.pageTokens, CrawlerID(len(t.crawlers)))
			}
			t.crawlers = append(t.crawlers, c)
		}
	}
	p := &Policy{table: t}
	t.families = p.familiesOf()
	return t
}

// Crawlers returns the crawlers in the order of their numbers. Callers must not change the result.
func (t *CrawlerTable) Crawlers() []Crawler { return t.crawlers[1:len(t.crawlers):len(t.crawlers)] }

func (t *CrawlerTable) lists(crawlers []Crawler) bool {
	own := t.Crawlers()
	return len(crawlers) == len(own) && (len(own) == 0 || &crawlers[0] == &own[0])
}

// familiesOf returns the result of Family for every crawler.
func (p *Policy) familiesOf() []CrawlerID {
	families := make([]CrawlerID, p.numCrawlers())
	for id := range families {
		c := p.crawler(CrawlerID(id))
		for _, token := range c.Follows {
			if head := p.Crawler(token); head != 0 && head != CrawlerID(id) && strings.EqualFold(p.crawler(head).Operator, c.Operator) {
				families[id] = head
				break
			}
		}
	}
	return families
}

func (p *Policy) numCrawlers() int { return len(p.table.crawlers) + len(p.own) }

func (p *Policy) crawler(id CrawlerID) *Crawler {
	if n := len(p.table.crawlers); int(id) >= n {
		return &p.own[int(id)-n]
	}
	return &p.table.crawlers[id]
}

// addOwn adds a crawler that only a rule names.
func (p *Policy) addOwn(token string) {
	if p.Crawler(token) != 0 {
		return
	}
	if p.ownByToken == nil {
		p.ownByToken = map[string]CrawlerID{}
	}
	p.ownByToken[ascii.Lower(token)] = CrawlerID(p.numCrawlers())
	p.own = append(p.own, Crawler{Token: token})
}
