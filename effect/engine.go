// SPDX-License-Identifier: Apache-2.0

// Package effect computes the effect of a policy on a crawler at one page. It takes every channel into account that the
// crawler can notice, such as robots.txt, headers, meta tags and blocking. It also computes what a search engine loses
// when another policy replaces this policy.
package effect

import (
	"slices"
	"time"

	"github.com/robotspolicy/caddy-robots-policy/crawlers"
	"github.com/robotspolicy/caddy-robots-policy/pathpattern"
	"github.com/robotspolicy/caddy-robots-policy/policy"
	"github.com/robotspolicy/caddy-robots-policy/robotsserve"
	"github.com/robotspolicy/caddy-robots-policy/robotstxt"
)

// Engine computes the effect of one policy. It is immutable and safe for concurrent use.
type Engine struct {
	Projection

	Policy *policy.Policy
	Robots *robotsserve.Server // the robots.txt of every host, as served over https
	Below  *robotstxt.File     // the site's own robots.txt, which is the policy's fallback, or nil if there is none

	catalog *crawlers.Catalog
	license license
	limits  bool        // at least one rule limits requests
	ends    []time.Time // the result of endsOf, in ascending order
	catches map[policy.CrawlerID][]policy.CrawlerID
	pages   [2]*pathpattern.Index[uint32] // see PageIndex; [1] is in lower case
}

// New returns the engine for a policy. The catalog must also have the crawlers that the policy file itself defines.
func New(p *policy.Policy, catalog *crawlers.Catalog) *Engine { return newEngine(p, catalog, nil) }

// Over returns an engine for the same policy, with the lines of a site's own robots.txt as the policy's fallback. The
// fallback decides about paths that the policy does not mention. See [robotstxt.File.Below].
func (e *Engine) Over(below *robotstxt.File) *Engine {
	b := below.Below(e.Policy.WithoutFallback())
	return newEngine(b.Policy, e.catalog, b.File)
}

func newEngine(p *policy.Policy, catalog *crawlers.Catalog, below *robotstxt.File) *Engine {
	spec := p.Spec()
	e := &Engine{
		Projection: Projection{p, p.Folded()}, Policy: p, Below: below, catalog: catalog, license: licenseOf(spec.Publish.License),
		Robots: robotsserve.NewServer(p, robotsserve.ServeOptions{Options: robotsserve.Options{Scheme: "https", Below: below}}),
		limits: hasLimits(spec.Rules), ends: endsOf(spec),
	}
	e.catches = catchesOf(p, catalog)
	e.pages[0] = pageIndex(e.Exact)
	if e.pages[1] = e.pages[0]; e.Folded != e.Exact {
		e.pages[1] = pageIndex(e.Folded)
	}
	return e
}

// pageIndex returns an index of a policy's page patterns (see policy.Rule.PagePatterns), with a number for each.
func pageIndex(p *policy.Policy) *pathpattern.Index[uint32] {
	var entries []pathpattern.Entry[uint32]
	for _, r := range p.Spec().Rules {
		for pattern := range r.PagePatterns {
			entries = append(entries, pathpattern.Entry[uint32]{Pattern: pattern, Value: uint32(len(entries))})
		}
	}
	return pathpattern.NewIndex(entries, func(a, _ uint32) uint32 { return a })
}

// PageIndex returns an index of page patterns, with a number for each pattern. A page can have rules in headers or meta
// tags only if it matches one of these patterns. If anyCase is true, the patterns are in lower case.
func (e *Engine) PageIndex(anyCase bool) *pathpattern.Index[uint32] {
	if anyCase {
		return e.pages[1]
	}
	return e.pages[0]
}

// shows reports whether headers and meta tags of the target's page may have rules of the policy.
func (e *Engine) shows(t PolicyTarget) (shows bool) {
	if t.Long || e.PageIndex(false).Len() == 0 {
		return e.PageIndex(false).Len() > 0
	}
	for p, q := range e.Queries(t, policy.Query{}) {
		e.PageIndex(p.AnyCase).Matches(q.Path, func(uint32) { shows = true })
	}
	return shows
}

// maxEnds limits how many end dates of a policy Compare considers (see policy.Spec.Ends). If the policy has more,
// Compare considers the first ones and the last one.
const maxEnds = 16

// endsOf lists the times when a permission or a page's availability ends, at most maxEnds.
func endsOf(spec *policy.Spec) []time.Time {
	ends := spec.Ends()
	if n := len(ends); n > maxEnds {
		ends = append(ends[:maxEnds-1:maxEnds-1], ends[n-1])
	}
	return ends
}

// IsOfCategory reports whether a crawler has a category according to the policy or to the crawler catalog. The policy
// can give the crawler another category than the catalog, but this does not exclude a search engine from the safety
// checks. To exclude it, the policy must use the key "intended".
func IsOfCategory(p *policy.Policy, id policy.CrawlerID, category crawlers.Category) bool {
	c := p.CrawlerInfo(id)
	if id == 0 || c.Category == string(category) {
		return id != 0
	}
	builtIn, _ := crawlers.Default() // the built-in catalog is valid
	known, ok := builtIn.Lookup(c.Token)
	return ok && known.Category == category && !slices.Contains(c.IntendedChecks, SafetyBlocks)
}

// Searches reports whether a crawler belongs to a search engine.
func (e *Engine) Searches(id policy.CrawlerID) bool {
	return IsOfCategory(e.Policy, id, crawlers.CategorySearch)
}

// SearchesWeb reports whether a crawler belongs to a web search engine, whose results are not AI answers. The safety
// checks and the search-loss limit protect these crawlers.
func SearchesWeb(p *policy.Policy, id policy.CrawlerID) bool {
	return IsOfCategory(p, id, crawlers.CategorySearch) && !p.CrawlerInfo(id).AI
}
