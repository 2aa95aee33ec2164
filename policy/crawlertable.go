// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"runtime"
	"strings"
	"sync"
	"weak"
)

// crawlerTable is the crawlers of a Spec by number. The catalogue takes more memory than
// most policies, so that policies with the same Spec.Crawlers share one.
type crawlerTable struct {
	crawlers []Crawler // by CrawlerID; 0 is the unknown crawler
	byToken  map[string]CrawlerID
	families []CrawlerID // see Policy.Family
}

// crawlerTableKey identifies a slice of crawlers, which must not change, without holding on
// to it.
type crawlerTableKey struct {
	first weak.Pointer[Crawler]
	n     int
}

// crawlerTables are those in use.
var crawlerTables = struct {
	mu sync.Mutex
	of map[crawlerTableKey]weak.Pointer[crawlerTable]
}{of: map[crawlerTableKey]weak.Pointer[crawlerTable]{}}

// crawlerTableOf returns the table of crawlers. Of several with one token the first counts.
func crawlerTableOf(crawlers []Crawler) *crawlerTable {
	if len(crawlers) == 0 {
		return newCrawlerTable(nil)
	}
	key := crawlerTableKey{weak.Make(&crawlers[0]), len(crawlers)}
	crawlerTables.mu.Lock()
	defer crawlerTables.mu.Unlock()
	if r := crawlerTables.of[key].Value(); r != nil {
		return r
	}
	r := newCrawlerTable(crawlers)
	crawlerTables.of[key] = weak.Make(r)
	runtime.AddCleanup(r, forgetTable, key)
	return r
}

// forgetTable removes the table of a key, unless there is a new one already.
func forgetTable(key crawlerTableKey) {
	crawlerTables.mu.Lock()
	defer crawlerTables.mu.Unlock()
	if crawlerTables.of[key].Value() == nil {
		delete(crawlerTables.of, key)
	}
}

func newCrawlerTable(crawlers []Crawler) *crawlerTable {
	r := &crawlerTable{crawlers: make([]Crawler, 1, len(crawlers)+1), byToken: make(map[string]CrawlerID, len(crawlers))}
	for _, c := range crawlers {
		key := lower(c.Token)
		if _, ok := r.byToken[key]; !ok {
			r.byToken[key] = CrawlerID(len(r.crawlers))
			r.crawlers = append(r.crawlers, c)
		}
	}
	p := &Policy{table: r}
	r.families = p.familiesOf()
	return r
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
