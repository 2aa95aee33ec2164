// SPDX-License-Identifier: Apache-2.0

package effect

import (
	"net/url"

	"github.com/robotspolicy/caddy-robots-policy/pathpattern"
	"github.com/robotspolicy/caddy-robots-policy/policy"
)

// Verdict is what the edge finds about a request.
type Verdict struct {
	Crawler  policy.CrawlerID // 0: no crawler that the policy knows
	Decision policy.Decision  // about crawling; empty where Crawler is 0
	Mode     policy.Mode      // what to do about the request, where Blocked
	Impostor bool             // Mode is that for impostors, and not that of Decision
	AnyCase  bool             // Decision disallows the path in another letter case only
}

// Blocked reports whether the policy objects to the request, whatever Mode says to do about it.
func (v Verdict) Blocked() bool { return v.Impostor || v.Decision.Verdict == policy.Disallowed }

// Edge decides about a request of a crawler; the query has the host and the target as the client sent them, and its
// usage is not looked at. They are evaluated in every way in which servers may read them (see policy.OtherHost and
// pathpattern.Readings) and with and without letter case: crawling is disallowed if it is for one of them, and of
// several the one with the strictest mode decides. Only crawlers that the policy knows are ever blocked, and never
// /robots.txt, /.well-known/ and the license, from which they learn the rules. An impostor gets the mode for
// impostors where that is stricter.
func (e *Engine) Edge(q policy.Query) Verdict {
	v := Verdict{Crawler: q.Crawler}
	if q.Crawler == 0 {
		return v
	}
	t := e.TargetOf(q.Host, q.Path)
	if e.Open(t) {
		return v
	}
	q.Usage, q.Path = policy.Crawl, t.Path
	v.Decision = e.Policy.Decide(q)
	if v.Decision.Verdict == policy.Disallowed {
		v.Mode = e.Policy.Mode(v.Decision)
	}
	if t.More != nil || t.Other != "" || t.Long || t.Folds {
		v.evaluate(e, q, t)
	}
	if q.Identity == policy.Impostor {
		if mode := e.Policy.Spec().Enforcement.Impostors; mode > policy.ModeOff && mode > v.Mode {
			v.Mode, v.Impostor = mode, true
		}
	}
	return v
}

func (v *Verdict) evaluate(e *Engine, q policy.Query, t Target) {
	for p, q := range e.Queries(t, q) {
		if d := p.Decide(q); d.Verdict == policy.Disallowed {
			v.AnyCase = p.AnyCase && (v.AnyCase || v.Decision.Verdict != policy.Disallowed)
			if mode := e.Policy.Mode(d); v.Mode == policy.ModeUnset || mode > v.Mode {
				v.Decision, v.Mode = d, mode
			}
		}
	}
	if !t.Long {
		return
	}
	v.EvaluateLong(e, q)
	if t.Other != "" {
		q.Host = t.Other
		v.EvaluateLong(e, q)
	}
}

// EvaluateLong adds a prohibition that blocks, if there is any for the crawler.
func (v *Verdict) EvaluateLong(e *Engine, q policy.Query) {
	d := e.Policy.Strictest(q)
	if v.Mode < policy.ModeBlock && d.Verdict == policy.Disallowed && e.Policy.Mode(d) == policy.ModeBlock {
		v.Decision, v.Mode = d, policy.ModeBlock
	}
}

type license struct {
	host string // empty: on every host of the site
	path string // empty: nowhere on the site
}

// licenseOf reads the URL of the policy's license. A license at the root of a site does not open the root.
func licenseOf(text string) license {
	u, err := url.Parse(text)
	if err != nil || text == "" || u.EscapedPath() == "" || u.EscapedPath() == "/" {
		return license{}
	}
	return license{policy.NormalizeHost(u.Host), pathpattern.NormalizePath(u.EscapedPath())}
}

// EdgeOfAll decides about a request that names several crawlers: the strictest of the decisions about each, and the
// first of equally strict ones. It returns the query that led to it, or q for no crawler. identify verifies the
// client as one of them.
func (e *Engine) EdgeOfAll(ids []policy.CrawlerID, q policy.Query, identify func(policy.CrawlerID) policy.Identity) (policy.Query, Verdict) {
	var strictest Verdict
	by := q
	for i, id := range ids {
		q.Crawler, q.Identity = id, identify(id)
		if v := e.Edge(q); i == 0 || v.Blocked() && (!strictest.Blocked() || v.Mode > strictest.Mode) {
			strictest, by = v, q
		}
	}
	return by, strictest
}
