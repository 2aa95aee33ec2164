// SPDX-License-Identifier: Apache-2.0

package effect

import (
	"net/url"

	"github.com/robotspolicy/caddy-robots-policy/pathpattern"
	"github.com/robotspolicy/caddy-robots-policy/policy"
)

// Verdict is the policy's decision on a request.
type Verdict struct {
	Crawler  policy.CrawlerID // 0: no crawler that the policy knows
	Decision policy.Decision  // about crawling; empty where Crawler is 0
	Mode     policy.Mode      // what to do about the request, where Blocked
	Impostor bool             // Mode is the mode for impostors, and not the mode of Decision
	AnyCase  bool             // Decision disallows the path in another letter case only
}

// Blocked reports whether the policy objects to the request, whatever Mode says to do about it.
func (v Verdict) Blocked() bool { return v.Impostor || v.Decision.Verdict == policy.Disallowed }

// Edge decides in the same way as EdgeOf about a request for the query's host and path, as a client sends them.
func (e *Engine) Edge(q policy.Query) Verdict {
	t := NewTarget(q.Host, q.Path)
	return e.EdgeOf(&t, q)
}

// EdgeOf decides about a request of a crawler for a target. It ignores the host, path and usage of the query. The
// target is evaluated in every way in which servers may read it (see policy.OtherHost and pathpattern.Readings), and
// with and without letter case. Crawling is disallowed if it is for one of them, and the one with the strictest mode
// decides. Only crawlers that the policy knows are ever blocked, and never for /robots.txt, /.well-known/ and the
// license, from which they learn the rules. An impostor gets the mode for impostors if that is stricter.
func (e *Engine) EdgeOf(sent *Target, q policy.Query) Verdict {
	v := Verdict{Crawler: q.Crawler}
	if q.Crawler == 0 || e.Policy.OnlyFallback(q.Crawler) { // the server does not know the latter
		return v
	}
	t := e.Read(sent)
	if e.Open(t) {
		return v
	}
	q.Usage, q.Host, q.Path = policy.Crawl, t.Host, t.Normal
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

func (v *Verdict) evaluate(e *Engine, q policy.Query, t PolicyTarget) {
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

// EvaluateLong applies the strictest prohibition for the crawler, if there is one, because the target is too long
// to compare.
func (v *Verdict) EvaluateLong(e *Engine, q policy.Query) {
	q.AnyPath = true
	d := e.Policy.Decide(q)
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

// Client is a crawler that a request may be from, with its identity.
type Client struct {
	Crawler  policy.CrawlerID
	Identity policy.Identity
}

// EdgeOfAll decides about a request that several crawlers may have sent. It returns the strictest decision about them,
// the first of equally strict ones, and the query that led to it, or q for no crawler.
func (e *Engine) EdgeOfAll(t *Target, clients []Client, q policy.Query) (policy.Query, Verdict) {
	var strictest Verdict
	by := q
	for i, c := range clients {
		q.Crawler, q.Identity = c.Crawler, c.Identity
		if v := e.EdgeOf(t, q); i == 0 || v.Blocked() && (!strictest.Blocked() || v.Mode > strictest.Mode) {
			strictest, by = v, q
		}
	}
	return by, strictest
}
