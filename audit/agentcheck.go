// SPDX-License-Identifier: Apache-2.0

package audit

import (
	"bytes"
	"context"
	"maps"
	"net/http"

	"github.com/robotspolicy/caddy-robots-policy/crawlers"
	"github.com/robotspolicy/caddy-robots-policy/policy"
)

// maxAgentPages limits the number of pages that the audit requests with each User-Agent other than its own.
const maxAgentPages = 3

func (a *auditor) checkAgents(ctx context.Context) {
	for _, as := range a.agents {
		a.checkRobotsAs(ctx, as)
		for _, p := range a.pages[:min(len(a.pages), maxAgentPages)] {
			r := a.get(ctx, p.url, as)
			p.got[as.Name] = r
			if as.crawler != nil {
				a.checkAgentPage(ctx, p, r)
			}
		}
	}
	a.checkVary()
	a.checkCachedRefusal(ctx)
}

// checkRobotsAs requests robots.txt with the User-Agent of as, which is a crawler or a browser. It reports a finding if
// the request is blocked. It also does so if the server sends another file than a.robots, which it sent to the audit's
// own User-Agent.
func (a *auditor) checkRobotsAs(ctx context.Context, as agent) {
	if !a.robots.ok() {
		return
	}
	at := a.robotsURL()
	switch r := a.fetch.get(ctx, at, as); {
	case r.refused():
		a.add(a.refusal(at.String(), as, "robots.txt is blocked for "+as.Name+" ("+r.outcome()+"). The crawler then treats the whole site as allowed", "let everyone read /robots.txt"))
	case r.ok() && !bytes.Equal(r.body, a.robots.body):
		a.add(finding("robots-varies", at.String(), as.crawlerName(), as.Name+" gets a different robots.txt than other clients"+because(r.cached()), "serve one robots.txt to everyone, with a group for each crawler"))
	}
}

func (a *auditor) checkAgentPage(ctx context.Context, p *page, r *response) {
	refused, allowedBy := r.refused(), "robots.txt allows"
	if a.o.Policy != nil {
		allowedBy = "the policy allows"
		edge := a.o.Policy.Edge(a.query(a.crawler(r.agent), p.url))
		if edge.Blocked() && edge.Mode == policy.ModeBlock {
			if !refused && r.ok() {
				a.reportNotRefused(ctx, p, r)
			}
			return
		}
	} else if refused && !a.rules.decide(readerOf(r.agent.crawler), target(p.url)).Allowed {
		return // the server blocks a crawler that robots.txt disallows
	}
	switch {
	case refused:
		if other := a.letIn(p); other != "" {
			a.add(a.refusal(p.url.String(), r.agent, r.agent.Name+" is blocked ("+r.outcome()+"), but "+other+" is not, and "+allowedBy+" this crawler", "look for a rule against this crawler in the settings of the CDN or firewall"))
		}
	case r.ok():
		s := a.read(r)
		if own := p.got[OwnToken]; !own.ok() || saysOther(a.read(own), s) {
			a.checkContradictions(p, r, s)
		}
		if r.agent.crawler.Category == crawlers.CategorySearch {
			a.checkNoindex(p, s, p == a.pages[0], []*crawlers.Crawler{r.agent.crawler})
		}
		a.checkPolicy(ctx, p, r, r.agent)
	case p.got[OwnToken].ok():
		a.add(finding("page-error", p.url.String(), r.agent.crawlerName(), r.agent.Name+" does not get the page ("+r.outcome()+"), but the audit does", "look in the log of the server or CDN for the reason"))
	}
}

// letIn looks for a client that received the page p, although it does not have a crawler's name in its User-Agent: the
// browser or the audit itself. It returns the client's name, or "" if neither of them received the page.
func (a *auditor) letIn(p *page) string {
	for _, as := range []agent{browserAgent, a.own} {
		if p.got[as.Name].ok() {
			return as.Name
		}
	}
	return ""
}

// refusal returns a finding that the client as was blocked. If as has the name of a crawler that servers can verify,
// the finding is only a warning, because the server may know that the audit is not the real crawler. A finding about
// the browser is also only a warning.
func (a *auditor) refusal(at string, as agent, message, fix string) Finding {
	f := finding("blocked", at, as.crawlerName(), message, fix)
	if as.crawler == nil || !as.crawler.Verification.IsEmpty() {
		f = f.as(Warning)
		f.Message += ". This is inconclusive: the server may verify crawlers, and the audit only used the crawler's name"
		f.Fix = "check in the log of the server or CDN whether the real crawler gets the page"
	}
	return f
}

// reportNotRefused reports that a page was served to a crawler although the policy blocks the crawler. It requests the
// page again without caches. If this request is blocked, it reports that a cache served the page.
func (a *auditor) reportNotRefused(ctx context.Context, p *page, r *response) {
	if a.refetch(ctx, p, r.agent).refused() {
		a.add(finding("cached-for-another", p.url.String(), r.agent.crawlerName(), "a cache serves the page to "+r.agent.Name+because(r.cached())+", although the server itself blocks this crawler", cacheFix+" (docs/how-to/behind-a-cdn.md)"))
		return
	}
	a.add(finding("not-blocked", p.url.String(), r.agent.crawlerName(), "the policy blocks "+r.agent.Name+", but the page was served to it ("+r.outcome()+")", "check that requests reach robots_policy, and that enforce is block in the Caddyfile"))
}

// checkVary reports pages whose headers or meta tags differ between crawlers, but whose responses lack the header Vary:
// User-Agent.
func (a *auditor) checkVary() {
	for _, p := range a.pages {
		own := p.got[OwnToken]
		if !own.ok() || own.varies() || !own.storable() {
			continue
		}
		for _, as := range a.agents {
			r := p.got[as.Name]
			if r.ok() && r.storable() && !r.varies() && saysOther(a.read(own), a.read(r)) {
				a.add(finding("vary-missing", p.url.String(), as.crawlerName(), "the headers or meta tags differ for "+as.Name+", but the response has no Vary: User-Agent. So caches may serve one crawler the response meant for another", "send Vary: User-Agent, or send the same headers and meta tags to everyone"))
				break
			}
		}
	}
}

func saysOther(a, b said) bool {
	return !sameRules(a.x, b.x) || !sameRules(a.tag, b.tag) || !sameRules(a.meta, b.meta) || a.preferences().String() != b.preferences().String()
}

func sameRules(a, b pageRules) bool { return maps.EqualFunc(a, b, maps.Equal[rules, rules]) }

// checkCachedRefusal determines whether a cache stores the response that blocks one crawler, and serves this response
// to other clients.
func (a *auditor) checkCachedRefusal(ctx context.Context) {
	for _, as := range a.agents {
		for _, p := range a.pages {
			if as.crawler == nil || !p.got[as.Name].refused() || !p.got[OwnToken].ok() {
				continue
			}
			first := a.refetch(ctx, p, as)
			if !first.refused() {
				return
			}
			second := a.get(ctx, first.requested, a.own)
			if second.refused() && second.status != http.StatusTooManyRequests {
				a.add(finding("cached-for-another", p.url.String(), as.crawlerName(), "a cache stores the block of "+as.Name+" ("+first.outcome()+") and serves it to other clients"+because(second.cached()), "do not let the cache store responses with status 403"))
			}
			return // one page for one crawler is enough to find out how the cache works
		}
	}
}
