// SPDX-License-Identifier: Apache-2.0

package effect

import (
	"slices"

	"github.com/robotspolicy/caddy-robots-policy/crawlers"
	"github.com/robotspolicy/caddy-robots-policy/policy"
)

// catchesOf maps each crawler of the catalog to the crawlers that the server may mistake it for. These are crawlers
// that the policy itself defines, with a pattern that also matches the User-Agent of the catalog's crawler. For
// example, if the policy defines a crawler with the pattern "Googlebot/2.1", the server may mistake Googlebot for that
// crawler.
func catchesOf(p *policy.Policy, catalog *crawlers.Catalog) map[policy.CrawlerID][]policy.CrawlerID {
	own := map[policy.CrawlerID][]string{}
	for i := range catalog.Len() {
		if row := catalog.At(i); row.FromPolicy {
			own[p.Crawler(row.Token)] = row.Patterns()
		}
	}
	if delete(own, 0); len(own) == 0 {
		return nil
	}
	var others []crawlers.Pattern
	for id, c := range p.Crawlers {
		row, ok := catalog.Lookup(c.Token)
		if !ok || row.FromPolicy {
			continue
		}
		for _, name := range row.Patterns() {
			others = append(others, crawlers.Pattern{Token: name, Index: int(id)})
		}
	}
	caught, byName := map[policy.CrawlerID][]policy.CrawlerID{}, crawlers.NewRecognizer(others)
	for by, names := range own {
		for _, i := range byName.RecognizeEach(nil, names) {
			caught[policy.CrawlerID(i)] = append(caught[policy.CrawlerID(i)], by)
		}
	}
	for _, all := range caught {
		slices.Sort(all)
	}
	return caught
}

// Catches reports whether the server may mistake requests of the crawler "crawler" for requests of the crawler "by".
func (e *Engine) Catches(by, crawler policy.CrawlerID) bool {
	return slices.Contains(e.catches[crawler], by)
}

// Caught lists the crawlers of the policy that the server may mistake the given crawler for.
func (e *Engine) Caught(crawler policy.CrawlerID) []policy.CrawlerID { return e.catches[crawler] }
