// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"fmt"
	"slices"
)

// siteRobots is the name of a site's own robots.txt in explanations.
const siteRobots = "the site's own robots.txt"

// PlaceInFallback returns a text for a line of the site's own robots.txt. If line is 0, the text is about the whole
// file. If the name of the file is known, file is this name, and the text includes it.
func PlaceInFallback(file string, line int) string {
	place := siteRobots
	if line > 0 {
		place = fmt.Sprintf("%s:%d", siteRobots, line)
	}
	if file != "" {
		place += " (" + file + ")"
	}
	return place
}

// WithFallback returns a policy that consists of p and rules from the site's own robots.txt. These rules apply only to
// paths where p does not state whether a crawler may crawl. They must be for all hosts and contain only entries about
// crawling and crawl-delays. The server never enforces them. The crawlers of p keep their numbers.
func (p *Policy) WithFallback(rules []Rule) *Policy {
	spec := *p.spec
	spec.Table = p.table
	spec.Rules = slices.Concat(p.spec.Rules, rules)
	for i := range rules {
		spec.Rules[len(p.spec.Rules)+i].Fallback = true
	}
	with := Compile(&spec)
	with.above = p.WithoutFallback()
	return with
}

// WithoutFallback returns the policy without the rules that WithFallback added.
func (p *Policy) WithoutFallback() *Policy {
	if p.above != nil {
		return p.above
	}
	return p
}

// OnlyFallback reports whether only the site's own robots.txt names a crawler, but not the policy's rules or its
// catalog.
func (p *Policy) OnlyFallback(id CrawlerID) bool { return int(id) >= p.WithoutFallback().numCrawlers() }
