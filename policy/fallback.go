// SPDX-License-Identifier: Apache-2.0

package policy

import "slices"

// WithFallback returns a policy that applies rules from the site's own robots.txt to the paths for which p does not
// state whether a crawler may crawl. These rules are for all hosts, state only crawling and crawl-delays, and are
// never enforced. The crawlers of p keep their numbers.
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

// WithoutFallback returns the policy without the rules of WithFallback.
func (p *Policy) WithoutFallback() *Policy {
	if p.above != nil {
		return p.above
	}
	return p
}

// OnlyFallback reports whether only the site's own robots.txt names a crawler: neither the policy's rules nor its
// catalog have it.
func (p *Policy) OnlyFallback(id CrawlerID) bool { return int(id) >= p.WithoutFallback().numCrawlers() }
