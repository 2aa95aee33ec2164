// SPDX-License-Identifier: Apache-2.0

package audit

import (
	"context"
	"net/http"
	"net/url"
	"strings"

	"github.com/robotspolicy/caddy-robots-policy/policy"
	"github.com/robotspolicy/caddy-robots-policy/rights"
	"github.com/robotspolicy/caddy-robots-policy/robotstag"
)

// wanted returns the rules and preferences that the policy has for an agent and a page.
func (a *auditor) wanted(u *url.URL, as agent) (rules, []fieldUsage) {
	p := a.o.Policy.Policy
	set, _ := robotstag.Rules(p, a.query(a.crawler(as), u))
	decisions, _ := robotstag.Preferences(p, a.query(0, u))
	header := http.Header{}
	for _, f := range rights.Vocabularies {
		if publish := &p.Spec().Publish; f.On(publish) {
			header.Set(f.Field, f.Text(decisions.Verdicts(), ""))
		}
	}
	return parseRules(set.Restrictive().String(), a.now), usageOf(header)
}

// crawler returns the ID of an agent in the policy, or 0 if the policy does not have the agent.
func (a *auditor) crawler(as agent) policy.CrawlerID {
	if as.crawler == nil {
		return 0
	}
	return a.o.Policy.Policy.Crawler(as.crawler.Token)
}

type loss struct{ code, what string }

// lost compares the response for a page with the policy. It returns the rules and preferences of the policy that the
// response lacks, and the restrictions that the policy should have removed.
func (a *auditor) lost(u *url.URL, r *response) (all []loss) {
	want, prefs := a.wanted(u, r.agent)
	s, names := a.read(r), r.agent.names()
	if missing := want.beyond(s.x.forCrawler(names)); len(missing) > 0 {
		all = append(all, loss{"headers-lost", "the header X-Robots-Tag lacks " + missing.String()})
	}
	if missing := want.beyond(s.meta.forCrawler(names)); len(missing) > 0 && r.isHTML() {
		all = append(all, loss{"meta-lost", "the robots meta tags lack " + missing.String()})
	}
	lift, _ := robotstag.Lift(a.o.Policy.Policy, a.query(0, u))
	for usage := range robotstag.Lifts(lift) {
		for _, name := range lifted[usage] {
			if (s.x.forCrawler(names).has(name) || r.isHTML() && s.meta.forCrawler(names).has(name)) && !want.has(name) {
				all = append(all, loss{"not-lifted", "the page has " + name})
			}
		}
	}
	for _, f := range prefs {
		lacks, sent := usage{}, s.field(f.name)
		for key, v := range f.says {
			if sent[key] != v {
				lacks[key] = v
			}
		}
		if len(lacks) > 0 {
			all = append(all, loss{"usage-lost", "the header " + f.name + " lacks " + lacks.String()})
		}
	}
	return all
}

// lifted maps usages to robots control rules. An allow entry with the key "over-site" for a usage removes these rules
// from the site's responses.
var lifted = map[policy.Usage][]string{policy.Index: {"noindex", expires}, policy.PresentSnippet: {"nosnippet", "max-snippet"}}

func (g agent) names() []string {
	if g.crawler == nil {
		return []string{g.Name}
	}
	return readerOf(g.crawler).names
}

// checkPolicy compares the response r with the policy, and reports what the response lacks. If the response to a second
// request, which bypasses caches, has everything, checkPolicy reports the cache instead.
func (a *auditor) checkPolicy(ctx context.Context, p *page, r *response, as agent) {
	if a.o.Policy == nil {
		return
	}
	lost := a.lost(p.url, r)
	if len(lost) == 0 {
		return
	}
	if fresh := a.refetch(ctx, p, as); fresh.ok() && len(a.lost(p.url, fresh)) == 0 {
		a.reportCache(p, r, lost)
		return
	}
	for _, l := range lost {
		fix := "look for header rules of a CDN or proxy that remove or replace the header"
		if l.code == "not-lifted" {
			a.add(finding(l.code, p.url.String(), as.crawlerName(), l.what+", which the entry with \"over-site: true\" in the policy should remove", "look for a CDN or proxy that adds the restriction, and for pages that the server cannot rewrite"))
			continue
		}
		if l.code == "meta-lost" {
			fix = "look for a CDN or proxy that rewrites pages, and for an upstream that compresses pages in a way that the server cannot read"
		}
		a.add(finding(l.code, p.url.String(), as.crawlerName(), l.what+", which the policy asks for", fix))
	}
}

func (g agent) crawlerName() string {
	if g.crawler == nil {
		return ""
	}
	return g.crawler.Token
}

// reportCache reports that a cached version of a page lacks parts of the policy.
func (a *auditor) reportCache(p *page, r *response, lost []loss) {
	what := make([]string, len(lost))
	for i, l := range lost {
		what[i] = l.what
	}
	if r.agent.Name == OwnToken {
		a.add(finding("page-stale", p.url.String(), "", "a cache serves an old version of the page"+because(r.cached())+": "+strings.Join(what, "; "), "clear the cache after a change of the policy, or let the cache store pages for a shorter time"))
		return
	}
	a.add(finding("cached-for-another", p.url.String(), r.agent.crawlerName(), "a cache serves "+r.agent.Name+" the response meant for another client"+because(r.cached())+": "+strings.Join(what, "; "), cacheFix))
}

const cacheFix = "configure the cache to obey Vary: User-Agent, or to pass all requests from crawlers to the server"
