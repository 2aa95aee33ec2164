// SPDX-License-Identifier: Apache-2.0

package effect

import (
	"net/url"

	"github.com/robotspolicy/caddy-robots-policy/pathpattern"
	"github.com/robotspolicy/caddy-robots-policy/policy"
)

// Verdict holds the decision about a request.
type Verdict struct {
	Crawler  policy.CrawlerID // 0 means that the policy does not know the crawler
	Decision policy.Decision  // the decision about crawling; empty if Crawler is 0
	Mode     policy.Mode      // how to handle the request if Blocked returns true
	Impostor bool             // Mode is the mode for impostors, and not the mode of Decision
	AnyCase  bool             // Decision disallows the path only in another letter case
}

// Blocked reports whether the policy disallows the request, or has a mode for impostors that applies to the request.
// The server then handles the request according to Mode, for example by blocking or only logging it.
func (v Verdict) Blocked() bool { return v.Impostor || v.Decision.Verdict == policy.Disallowed }

// Edge decides about a request of the query's crawler in the same way as EdgeOf. The query's host and path must be
// unchanged from the request.
func (e *Engine) Edge(q policy.Query) Verdict {
	t := NewTarget(q.Host, q.Path)
	return e.EdgeOf(&t, q)
}

// EdgeOf decides about a request of the query's crawler for a target. It ignores the host, path and usage of the query.
//
// EdgeOf examines all hosts and paths that servers may understand the target to mean (see policy.OtherHost and
// pathpattern.Readings), with and without regard to letter case. If the policy disallows crawling of at least one of
// them, the request is disallowed. If the policy disallows several, the path with the strictest mode decides.
//
// EdgeOf never disallows requests of crawlers that the policy does not know. It never disallows requests for documents
// with the rules, such as /robots.txt (see Open). If the client is an impostor, and the mode for impostors is stricter,
// Mode is the mode for impostors.
func (e *Engine) EdgeOf(sent *Target, q policy.Query) Verdict {
	v := Verdict{Crawler: q.Crawler}
	// Some crawlers are named only in the site's own robots.txt, which is the policy's fallback. The server does not
	// recognize these crawlers.
	if q.Crawler == 0 || e.Policy.OnlyFallback(q.Crawler) {
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

// EvaluateLong is for targets that are too long to compare with patterns. If the policy blocks the query's crawler on
// at least one path of the host, EvaluateLong blocks the request.
func (v *Verdict) EvaluateLong(e *Engine, q policy.Query) {
	q.AnyPath = true
	d := e.Policy.Decide(q)
	if v.Mode < policy.ModeBlock && d.Verdict == policy.Disallowed && e.Policy.Mode(d) == policy.ModeBlock {
		v.Decision, v.Mode = d, policy.ModeBlock
	}
}

type license struct {
	host string // empty means every host of the site
	path string // empty means that the license is not on the site
}

// licenseOf returns the host and path in the URL of the policy's license. For the root of a site, it returns an empty
// license, because a license at the root must not exempt the root from the rules.
func licenseOf(text string) license {
	u, err := url.Parse(text)
	if err != nil || text == "" || u.EscapedPath() == "" || u.EscapedPath() == "/" {
		return license{}
	}
	return license{policy.NormalizeHost(u.Host), pathpattern.NormalizePath(u.EscapedPath())}
}

// Client is a crawler that may have sent a request, with its identity.
type Client struct {
	Crawler  policy.CrawlerID
	Identity policy.Identity
}

// EdgeOfAll decides about a request when it is not known which of the clients sent it. It returns the strictest of the
// verdicts for these clients, and the query for this verdict. If several verdicts are equally strict, it returns the
// first. If there are no clients, it returns q and an empty verdict.
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
