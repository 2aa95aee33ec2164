// SPDX-License-Identifier: Apache-2.0

package policy

import "strings"

// CrawlerTable is the crawlers of a Spec by number. The catalogue takes more memory than
// most policies, so that policies with the same crawlers share one.
type CrawlerTable struct {
	crawlers []Crawler // by CrawlerID; 0 is the unknown crawler
	byToken  map[string]CrawlerID
	families []CrawlerID // see Policy.Family
}

// NewCrawlerTable numbers crawlers. Of several with one token the first counts.
func NewCrawlerTable(crawlers []Crawler) *CrawlerTable {
	t := &CrawlerTable{crawlers: make([]Crawler, 1, len(crawlers)+1), byToken: make(map[string]CrawlerID, len(crawlers))}
	for _, c := range crawlers {
		key := lower(c.Token)
		if _, ok := t.byToken[key]; !ok {
			t.byToken[key] = CrawlerID(len(t.crawlers))
			t.crawlers = append(t.crawlers, c)
		}
	}
	p := &Policy{table: t}
	t.families = p.familiesOf()
	return t
}

// Crawlers are the known crawlers, in order. They must not be changed.
func (t *CrawlerTable) Crawlers() []Crawler { return t.crawlers[1:len(t.crawlers):len(t.crawlers)] }

// lists reports whether crawlers are those of the table.
func (t *CrawlerTable) lists(crawlers []Crawler) bool {
	own := t.Crawlers()
	return len(crawlers) == len(own) && (len(own) == 0 || &crawlers[0] == &own[0])
}

// familiesOf finds for each crawler the one whose group it is documented to follow, if
// both are of the same operator.
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

// numCrawlers returns the number of crawlers, the unknown one included.
func (p *Policy) numCrawlers() int { return len(p.table.crawlers) + len(p.own) }

// crawler returns what is known of a crawler.
func (p *Policy) crawler(id CrawlerID) *Crawler {
	if n := len(p.table.crawlers); int(id) >= n {
		return &p.own[int(id)-n]
	}
	return &p.table.crawlers[id]
}

// addOwn adds a crawler that only a rule names, unless it is known.
func (p *Policy) addOwn(token string) {
	if p.Crawler(token) != 0 {
		return
	}
	if p.ownByToken == nil {
		p.ownByToken = map[string]CrawlerID{}
	}
	p.ownByToken[lower(token)] = CrawlerID(p.numCrawlers())
	p.own = append(p.own, Crawler{Token: token})
}
