// SPDX-License-Identifier: Apache-2.0

// Package effect computes the effect of a policy on a crawler at one page, through every channel that reaches the
// crawler. It also computes the losses when another policy replaces it.
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

// Engine answers for one policy. It does not change, and may be shared.
type Engine struct {
	Projection

	Policy *policy.Policy
	Robots *robotsserve.Server // the robots.txt of every host, for sites with https
	Below  *robotstxt.File     // the site's own robots.txt, whose lines are the policy's fallback, or nil if there is none

	catalog *crawlers.Catalog
	license license
	limits  bool        // some rule limits requests
	ends    []time.Time // when dates end what crawlers may do, in order
	catches map[policy.CrawlerID][]policy.CrawlerID
	shown   [2]*pathpattern.Index[struct{}] // what pages can carry, with and without regard to letter case
}

// New returns the engine of a policy whose crawlers are in a catalog.
func New(p *policy.Policy, catalog *crawlers.Catalog) *Engine { return newEngine(p, catalog, nil) }

// Over returns the engine of the same policy with a site's own robots.txt below it, see [robotstxt.File.Below].
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
	e.shown[0] = shownBy(e.Exact)
	if e.shown[1] = e.shown[0]; e.Folded != e.Exact {
		e.shown[1] = shownBy(e.Folded)
	}
	return e
}

// shownBy indexes the patterns of the rules that headers and meta tags can carry.
func shownBy(p *policy.Policy) *pathpattern.Index[struct{}] {
	var entries []pathpattern.Entry[struct{}]
	for _, r := range p.Spec().Rules {
		for pattern := range r.PagePatterns {
			entries = append(entries, pathpattern.Entry[struct{}]{Pattern: pattern})
		}
	}
	return pathpattern.NewIndex(entries, func(a, _ struct{}) struct{} { return a })
}

// shows reports whether the page of a target may carry anything.
func (e *Engine) shows(t PolicyTarget) (shows bool) {
	if t.Long || e.shown[0].Len() == 0 {
		return e.shown[0].Len() > 0
	}
	for p, q := range e.Queries(t, policy.Query{}) {
		index := e.shown[0]
		if p.AnyCase {
			index = e.shown[1]
		}
		index.Matches(q.Path, func(struct{}) { shows = true })
	}
	return shows
}

// maxEnds limits the dates that a comparison considers: the first ones, and the last.
const maxEnds = 16

// endsOf lists the dates on which permissions of a policy end.
func endsOf(spec *policy.Spec) []time.Time {
	ends := spec.Ends()
	if n := len(ends); n > maxEnds {
		ends = append(ends[:maxEnds-1:maxEnds-1], ends[n-1])
	}
	return ends
}

// IsOfCategory reports whether a crawler is of a category by the policy's catalog or the built-in one. A policy can
// only remove a search engine from the safety checks by saying that this is intended.
func IsOfCategory(p *policy.Policy, id policy.CrawlerID, category crawlers.Category) bool {
	c := p.CrawlerInfo(id)
	if id == 0 || c.Category == string(category) {
		return id != 0
	}
	builtIn, _ := crawlers.Default() // the built-in catalog is valid
	known, ok := builtIn.Lookup(c.Token)
	return ok && known.Category == category && !slices.Contains(c.IntendedChecks, SafetyBlocks)
}

// Searches reports whether a crawler is a search engine's.
func (e *Engine) Searches(id policy.CrawlerID) bool {
	return IsOfCategory(e.Policy, id, crawlers.CategorySearch)
}

// SearchesWeb reports whether a crawler is a search engine's whose results are not AI answers: the safety checks and the
// search-loss limit protect it.
func SearchesWeb(p *policy.Policy, id policy.CrawlerID) bool {
	return IsOfCategory(p, id, crawlers.CategorySearch) && !p.CrawlerInfo(id).AI
}
