// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"runtime"
	"strings"
	"sync"
	"weak"
)

// roster is the crawlers of a Spec by number. The catalogue takes more memory than
// most policies, so that policies with the same Spec.Crawlers share one.
type roster struct {
	crawlers []Crawler // by CrawlerID; 0 is the unknown crawler
	byToken  map[string]CrawlerID
	families []CrawlerID // see Policy.Family
}

// rosterKey identifies a slice of crawlers, which must not change, without holding on
// to it.
type rosterKey struct {
	first weak.Pointer[Crawler]
	n     int
}

// rosters are those in use.
var rosters = struct {
	mu sync.Mutex
	of map[rosterKey]weak.Pointer[roster]
}{of: map[rosterKey]weak.Pointer[roster]{}}

// rosterOf returns the roster of crawlers. Of several with one token the first counts.
func rosterOf(crawlers []Crawler) *roster {
	if len(crawlers) == 0 {
		return newRoster(nil)
	}
	key := rosterKey{weak.Make(&crawlers[0]), len(crawlers)}
	rosters.mu.Lock()
	defer rosters.mu.Unlock()
	if r := rosters.of[key].Value(); r != nil {
		return r
	}
	r := newRoster(crawlers)
	rosters.of[key] = weak.Make(r)
	runtime.AddCleanup(r, forgetRoster, key)
	return r
}

// forgetRoster removes the roster of a key, unless there is a new one already.
func forgetRoster(key rosterKey) {
	rosters.mu.Lock()
	defer rosters.mu.Unlock()
	if rosters.of[key].Value() == nil {
		delete(rosters.of, key)
	}
}

func newRoster(crawlers []Crawler) *roster {
	r := &roster{crawlers: make([]Crawler, 1, len(crawlers)+1), byToken: make(map[string]CrawlerID, len(crawlers))}
	for _, c := range crawlers {
		key := lower(c.Token)
		if _, ok := r.byToken[key]; !ok {
			r.byToken[key] = CrawlerID(len(r.crawlers))
			r.crawlers = append(r.crawlers, c)
		}
	}
	p := &Policy{roster: r}
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
func (p *Policy) numCrawlers() int { return len(p.roster.crawlers) + len(p.own) }

// crawler returns what is known of a crawler.
func (p *Policy) crawler(id CrawlerID) *Crawler {
	if n := len(p.roster.crawlers); int(id) >= n {
		return &p.own[int(id)-n]
	}
	return &p.roster.crawlers[id]
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
