// SPDX-License-Identifier: Apache-2.0

package audit

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/dunglas/httpsfv"

	"github.com/robotspolicy/caddy-robots-policy/crawlers"
)

// said holds the rules and preferences in one response. x has the rules of X-Robots-Tag, tag has the rules of
// Robots-Tag, and meta has the rules of meta tags.
type said struct {
	x, tag, meta pageRules
	usage        []fieldUsage // usage preferences in each header field
	document     document
}

func (a *auditor) read(r *response) said {
	s := said{x: xRobotsTag(r.header, a.now), tag: robotsTag(r.header, a.now), usage: usageOf(r.header), meta: pageRules{}}
	if r.isHTML() {
		s.document = readDocument(r.body, a.tokens())
		for _, m := range s.document.tags {
			if !m.body && !m.misnamed {
				s.meta.of(strings.TrimPrefix(m.name, "robots")).parse(m.content, a.now)
			}
		}
	}
	return s
}

func (s said) rulesFor(names []string) rules {
	return s.x.forCrawler(names).union(s.tag.forCrawler(names)).union(s.meta.forCrawler(names))
}

// tokens returns the product tokens of the catalog in lower case.
func (a *auditor) tokens() map[string]bool {
	tokens := map[string]bool{}
	for _, c := range a.known.All() {
		tokens[strings.ToLower(c.Token)] = true
	}
	return tokens
}

func (a *auditor) checkPages(ctx context.Context) {
	for i, p := range a.pages {
		r := p.got[OwnToken]
		if !a.checkStatus(p, r) {
			continue
		}
		s := a.read(r)
		a.checkNoindex(p, s, i == 0, a.known.OfCategory(crawlers.CategorySearch))
		a.checkContradictions(p, r, s)
		a.checkPolicy(ctx, p, r, a.own)
	}
}

func (a *auditor) checkStatus(p *page, r *response) bool {
	at := p.url.String()
	closed, isClosed := errors.AsType[*closedError](r.err)
	switch {
	case isClosed:
		a.checkClosed(p, closed)
	case r.ok():
		if p.inSitemap && len(r.redirects) > 0 {
			a.add(finding("sitemap-redirect", at, "", "the sitemap lists a page that redirects to "+r.final.String(), "list the final address instead"))
		}
		return true
	case r.refused():
		f := finding("audit-blocked", at, "", "the server blocked the audit: "+r.outcome(), "to have the pages audited, let "+OwnToken+" pass")
		if a.o.Policy != nil {
			f.Message += ". The policy never blocks a crawler that it does not know, so the block comes from something in front of the server. It may also block crawlers that the policy allows"
		}
		a.add(f)
	case p.inSitemap:
		a.add(finding("sitemap-error", at, "", "the sitemap lists a page that cannot be fetched: "+r.outcome(), "take the page out of the sitemap"))
	default:
		a.add(finding("page-error", at, "", "the page cannot be fetched: "+r.outcome(), ""))
	}
	return false
}

// checkClosed reports a page that redirects to an address that robots.txt disallows.
func (a *auditor) checkClosed(p *page, closed *closedError) {
	a.add(finding("not-audited", p.url.String(), "", "the page redirects to "+closed.at.String()+", which was "+closed.Error(), ""))
	if !p.inSitemap || closed.rules == nil {
		return
	}
	for _, name := range searchCrawlers {
		if v := closed.rules.decide(reader{names: []string{name}}, target(closed.at)); !v.Allowed && v.Line > 0 {
			a.add(finding("sitemap-disallowed", p.url.String(), name, "the sitemap lists a page that redirects to "+closed.at.String()+", which robots.txt disallows for search engines, because of line "+closed.rules.describe(v.Line),
				"list the final address instead, or let search engines read it"))
			return
		}
	}
}

// checkNoindex reports noindex rules for search engines in three cases. The page is in the sitemap, the page is the
// home page, or robots.txt disallows the page, so that crawlers never see the noindex. It reports each page once.
func (a *auditor) checkNoindex(p *page, s said, home bool, engines []*crawlers.Crawler) {
	at := p.url.String()
	var unlisted, unmeant, hidden []string
	for _, c := range engines {
		r := readerOf(c)
		if !s.rulesFor(r.names).has("noindex") || slices.Contains(p.noindex, c.Token) {
			continue
		}
		unlisted = append(unlisted, c.Token)
		if !a.policyHas(p.url, agent{Name: c.Token, crawler: c}, "noindex") {
			unmeant = append(unmeant, c.Token)
		}
		if !a.rules.decide(r, target(p.url)).Allowed {
			hidden = append(hidden, c.Token)
		}
	}
	p.noindex = append(p.noindex, unlisted...)
	one := func(tokens []string) string {
		if len(tokens) == len(engines) && len(tokens) > 1 {
			return ""
		}
		return tokens[0]
	}
	names := func(tokens []string) string {
		if len(tokens) == len(engines) && len(tokens) > 1 {
			return "all search engines"
		}
		return names(tokens)
	}
	if len(hidden) > 0 {
		a.add(finding("noindex-hidden", at, one(hidden), "robots.txt keeps "+names(hidden)+" from reading the page, so they never see its noindex; its address may still be listed if other sites link to it", "let search engines read the page, and keep the noindex"))
	}
	switch {
	case len(unlisted) == 0:
	case p.inSitemap:
		a.add(finding("sitemap-noindex", at, one(unlisted), "the sitemap asks search engines to list the page, but the page tells "+names(unlisted)+" not to (noindex)", "take the page out of the sitemap, or remove the noindex"))
	case home && len(unmeant) > 0:
		a.add(finding("home-noindex", at, one(unmeant), "the home page tells "+names(unmeant)+" not to list it (noindex)", "remove the noindex, unless the site must not be found"))
	}
}

func (a *auditor) checkContradictions(p *page, r *response, s said) {
	at := p.url.String()
	for _, pair := range [][2]string{{"noindex", "index"}, {"nofollow", "follow"}} {
		for _, c := range [][2]channel{{{"a header", s.x[""]}, {"the page", s.meta[""]}}, {{"the page", s.meta[""]}, {"a header", s.x[""]}}} {
			strict, lax := c[0], c[1]
			if strict.rules.has(pair[0]) && !lax.rules.has(pair[0]) && (lax.rules.has(pair[1]) || lax.rules.has("all")) {
				a.add(finding("channels-disagree", at, "", fmt.Sprintf("%s says %s, but %s says %s; search engines obey the stricter rule", strict.name, pair[0], lax.name, pair[1]), "write the same rule in both"))
			}
		}
	}
	a.checkTags(at, s.document.tags)
	a.checkUsage(p, r, s)
}

// checkTags reports meta tags that some or all crawlers do not read or understand.
func (a *auditor) checkTags(at string, tags []metaTag) {
	reported := map[string]bool{}
	report := func(code, message, fix string) {
		if !reported[code] {
			reported[code] = true
			a.add(finding(code, at, "", message, fix))
		}
	}
	for _, m := range tags {
		switch unknown := unknownRules(m.content); {
		case m.misnamed:
			report("meta-misnamed", fmt.Sprintf("no crawler reads the meta tag with the content %s, because its name is not \"robots\"", shorten(m.content)), `write <meta name="robots" content="…">`)
		case m.body:
			report("meta-in-body", fmt.Sprintf("the meta tag %q with the content %s is in the body of the page, where crawlers do not have to look for it", m.name, shorten(m.content)), "move the meta tag into the head; the head ends at the first element or text that belongs in the body")
		case len(unknown) > 0:
			report("unknown-rule", fmt.Sprintf("the robots meta tags have the rule %q, which the documentation of crawlers does not mention", unknown[0]), "check its spelling")
		}
	}
}

type channel struct {
	name  string
	rules rules
}

// policyHas reports whether the policy itself states a robots control rule for an agent about a page.
func (a *auditor) policyHas(u *url.URL, as agent, name string) bool {
	if a.o.Policy == nil {
		return false
	}
	want, _ := a.wanted(u, as)
	return want.has(name)
}

// pageRules maps product tokens in lower case to the robots control rules of one channel. The key "" has the rules for
// all crawlers.
type pageRules map[string]rules

// of returns the rules for a token. If p has no rules for the token, the method adds an empty set to p.
func (p pageRules) of(token string) rules {
	token = strings.ToLower(strings.TrimSpace(token))
	if p[token] == nil {
		p[token] = rules{}
	}
	return p[token]
}

// forCrawler returns the rules that a crawler obeys: the rules for all crawlers, together with the rules for each name
// in names. names contains all names that the crawler obeys, such as "Googlebot-News" and "Googlebot".
func (p pageRules) forCrawler(names []string) rules {
	s := p[""]
	for _, n := range names {
		s = s.union(p[strings.ToLower(n)])
	}
	return s
}

// xRobotsTag parses the lines of X-Robots-Tag.
func xRobotsTag(h http.Header, now time.Time) pageRules {
	p := pageRules{}
	for _, line := range h.Values("X-Robots-Tag") {
		token := ""
		for rest := line; rest != ""; {
			item, _, _ := strings.Cut(rest, ",")
			if name, _, ok := strings.Cut(item, ":"); ok && !strings.Contains(name, "=") && !isRule(strings.ToLower(strings.TrimSpace(name))) {
				token, rest = name, rest[len(name)+1:]
			}
			var name, value string
			if name, value, rest = cutRule(rest); name != "" {
				p.of(token).add(name, value, now)
			}
		}
	}
	return p
}

// robotsTag reads the Robots-Tag field of a response (draft-illyes-repext-03).
func robotsTag(h http.Header, now time.Time) pageRules {
	p := pageRules{}
	list, err := httpsfv.UnmarshalList(h.Values("Robots-Tag"))
	if err != nil {
		return p
	}
	for _, m := range list {
		if item, ok := m.(httpsfv.Item); ok {
			if token, ok := item.Value.(httpsfv.Token); ok {
				p.of(strings.TrimPrefix(string(token), "*")).parameters(item.Params, now)
			}
		}
	}
	return p
}

// unknownRules returns the names of undocumented rules in a list.
func unknownRules(list string) (unknown []string) {
	for list != "" {
		var name string
		if name, _, list = cutRule(list); name != "" && !isRule(name) && !slices.Contains(unknown, name) {
			unknown = append(unknown, name)
		}
	}
	return unknown
}
