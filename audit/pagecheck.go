// SPDX-License-Identifier: Apache-2.0

package audit

import (
	"bytes"
	"context"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/dunglas/httpsfv"
	"golang.org/x/net/html"
	"golang.org/x/net/html/atom"

	"github.com/robotspolicy/caddy-robots-policy/crawlers"
	"github.com/robotspolicy/caddy-robots-policy/robotsrule"
	"github.com/robotspolicy/caddy-robots-policy/robotstag"
)

// said is what the channels of one response say.
type said struct {
	x, tag, meta pageRules
	usage        usage
	elements     []metaElement
}

func (a *auditor) read(r *response) said {
	s := said{x: xRobotsTag(r.header), tag: robotsTag(r.header), usage: contentUsage(r.header.Values("Content-Usage")), meta: pageRules{}}
	if r.isHTML() {
		s.elements = metaElements(r.body, a.tokens())
		s.meta = metaRules(s.elements)
	}
	return s
}

func (s said) rulesFor(names []string) robotsrule.Set {
	return s.x.forCrawler(names).Union(s.tag.forCrawler(names)).Union(s.meta.forCrawler(names))
}

// tokens are the product tokens of the catalogue, in lower case.
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
		a.checkNoindex(p, s, i == 0)
		a.checkContradictions(p, r, s)
		a.checkPolicy(ctx, p, r, a.own)
	}
}

func (a *auditor) checkStatus(p *page, r *response) bool {
	at := p.url.String()
	switch {
	case r.ok():
		if p.inSitemap && len(r.redirects) > 0 {
			a.add(finding("sitemap-redirect", at, "", "the sitemap lists a page that redirects to "+r.final.String(), "list the address that answers"))
		}
		return true
	case r.refused():
		f := finding("audit-refused", at, "", "the server refused the audit: "+r.outcome(), "let "+OwnToken+" pass if the pages are to be audited")
		if a.o.Policy != nil {
			f.Message += ". The policy never refuses crawlers that it does not know, so something in front of the server does; it may refuse crawlers that the policy allows too"
		}
		a.add(f)
	case p.inSitemap:
		a.add(finding("sitemap-error", at, "", "the sitemap lists a page that does not answer: "+r.outcome(), "take it out of the sitemap"))
	default:
		a.add(finding("page-error", at, "", "the page does not answer: "+r.outcome(), ""))
	}
	return false
}

// checkNoindex reports noindex on pages of the sitemap, on the home page, and where robots.txt keeps
// crawlers from reading it.
func (a *auditor) checkNoindex(p *page, s said, home bool) {
	at := p.url.String()
	var unlisted, hidden []string
	engines := a.known.OfKind(crawlers.KindSearch)
	for _, c := range engines {
		r := readerOf(c)
		if !s.rulesFor(r.names).Has("noindex") {
			continue
		}
		unlisted = append(unlisted, c.Token)
		if !a.rules.decide(r, target(p.url)).Allowed {
			hidden = append(hidden, c.Token)
		}
	}
	one := func(tokens []string) string {
		if len(tokens) == len(engines) {
			return ""
		}
		return tokens[0]
	}
	names := func(tokens []string) string {
		if len(tokens) == len(engines) {
			return "all search engines"
		}
		return names(tokens)
	}
	if len(hidden) > 0 {
		a.add(finding("noindex-hidden", at, one(hidden), "robots.txt keeps "+names(hidden)+" from reading the page, so the noindex there is never seen: the address can still be listed when others link to it", "let search engines read the page, and keep the noindex"))
	}
	switch {
	case len(unlisted) == 0:
	case p.inSitemap:
		a.add(finding("sitemap-noindex", at, one(unlisted), "the sitemap asks search engines to list the page, and the page tells "+names(unlisted)+" not to (noindex)", "take it out of the sitemap, or drop the noindex"))
	case home && !a.policyHas(p.url, "noindex"):
		a.add(finding("home-noindex", at, one(unlisted), "the home page tells "+names(unlisted)+" not to list it (noindex)", "drop the noindex, unless the site must not be found"))
	}
}

func (a *auditor) checkContradictions(p *page, r *response, s said) {
	at := p.url.String()
	for _, pair := range [][2]string{{"noindex", "index"}, {"nofollow", "follow"}} {
		for _, c := range [][2]channel{{{"a header", s.x[""]}, {"the page", s.meta[""]}}, {{"the page", s.meta[""]}, {"a header", s.x[""]}}} {
			strict, lax := c[0], c[1]
			if strict.rules.Has(pair[0]) && !lax.rules.Has(pair[0]) && (lax.rules.Has(pair[1]) || lax.rules.Has("all")) {
				a.add(finding("channels-disagree", at, "", fmt.Sprintf("%s says %s and %s says %s; search engines take the stricter", strict.name, pair[0], lax.name, pair[1]), "say the same in both"))
			}
		}
	}
	for _, m := range s.elements {
		if unknown := unknownRules(m.content); len(unknown) > 0 {
			a.add(finding("unknown-rule", at, "", fmt.Sprintf("no crawler documents the rule %q in the robots meta elements", unknown[0]), "check its spelling"))
			break
		}
	}
	a.checkUsage(p, r, s)
}

type channel struct {
	name  string
	rules robotsrule.Set
}

// checkUsage compares the preferences about AI in the header with robots.txt and TDM reservation.
func (a *auditor) checkUsage(p *page, r *response, s said) {
	reported := map[string]bool{}
	for _, l := range a.rules.usages {
		if !l.everyone {
			continue
		}
		var u usage
		if l.key == "content-signal" {
			u = contentSignal(l.value)
		} else if u = usageForPath(l.value, target(p.url)); u == nil {
			continue
		}
		for key, v := range u {
			if h := s.usage[key]; h != "" && h != v && !reported[key] {
				reported[key] = true
				a.add(finding("usage-disagrees", p.url.String(), "", fmt.Sprintf("the Content-Usage header says %s=%s and line %d of robots.txt says %s", key, h, l.number, shorten(l.key+": "+l.value)), "say the same in both"))
			}
		}
	}
	if r.header.Get("Tdm-Reservation") == "1" && s.usage["train-ai"] == "y" {
		a.add(finding("usage-disagrees", p.url.String(), "", "the header tdm-reservation reserves the rights for text and data mining, and Content-Usage allows AI training (train-ai=y)", "say the same in both"))
	}
}

// usageForPath reads the value of a Content-Usage line, which may begin with a path. It is nil if
// the line is for other paths.
func usageForPath(value, target string) usage {
	if strings.HasPrefix(value, "/") || strings.HasPrefix(value, "*") {
		path, rest, _ := strings.Cut(value, " ")
		f := readRobots([]byte("User-agent: *\nDisallow: "+path), nil)
		if f.decide(reader{}, target).Allowed {
			return nil
		}
		value = rest
	}
	return contentUsage([]string{value})
}

// policyHas reports whether the policy says a robots control rule about a page itself.
func (a *auditor) policyHas(u *url.URL, name string) bool {
	if a.o.Policy == nil {
		return false
	}
	want, _ := a.wanted(u, a.own)
	return want.Has(name)
}

// pageRules are the robots control rules of one channel, by product token in lower case; "" is for every crawler.
type pageRules map[string]robotsrule.Set

func (p pageRules) add(token, rules string) {
	token = strings.ToLower(strings.TrimSpace(token))
	p[token] = p[token].Union(robotsrule.Parse(rules))
}

// forCrawler returns the rules that a crawler of some names obeys: everyone's and its own.
func (p pageRules) forCrawler(names []string) robotsrule.Set {
	s := p[""]
	for _, n := range names {
		s = s.Union(p[strings.ToLower(n)])
	}
	return s
}

// xRobotsTag reads X-Robots-Tag lines: rules, with the name of a crawler before them or none.
func xRobotsTag(h http.Header) pageRules {
	p := pageRules{}
	for _, line := range h.Values(robotstag.XRobotsTagField) {
		token := ""
		for rest := line; rest != ""; {
			var item string
			item, rest = robotsrule.Cut(rest)
			if name, rules, ok := strings.Cut(item, ":"); ok && !robotsrule.IsRule(strings.ToLower(strings.TrimSpace(name))) {
				token, item = name, rules
			}
			p.add(token, item)
		}
	}
	return p
}

// robotsTag reads the Robots-Tag field of a response (draft-illyes-repext-03).
func robotsTag(h http.Header) pageRules {
	p := pageRules{}
	list, err := httpsfv.UnmarshalList(h.Values(robotstag.RobotsTagField))
	if err != nil {
		return p
	}
	for _, m := range list {
		item, ok := m.(httpsfv.Item)
		if !ok {
			continue
		}
		token, ok := item.Value.(httpsfv.Token)
		if !ok {
			continue
		}
		key := strings.ToLower(string(token))
		if key == robotstag.Everyone {
			key = ""
		}
		p[key] = p[key].Union(robotsrule.FromParams(item.Params))
	}
	return p
}

// metaElement is a meta element of a page that speaks to crawlers.
type metaElement struct{ name, content string }

// metaElements returns the meta elements named "robots" or by a product token in lower case.
func metaElements(body []byte, tokens map[string]bool) (found []metaElement) {
	z := html.NewTokenizer(bytes.NewReader(body))
	for {
		switch z.Next() {
		case html.ErrorToken:
			return found
		case html.StartTagToken, html.SelfClosingTagToken:
			t := z.Token()
			if t.DataAtom == atom.Body {
				return found
			}
			if t.DataAtom != atom.Meta {
				continue
			}
			var m metaElement
			for _, a := range t.Attr {
				switch a.Key {
				case "name":
					m.name = strings.ToLower(strings.TrimSpace(a.Val))
				case "content":
					m.content = a.Val
				}
			}
			if m.name == "robots" || tokens[m.name] {
				found = append(found, m)
			}
		case html.TextToken, html.EndTagToken, html.CommentToken, html.DoctypeToken:
		}
	}
}

func metaRules(elements []metaElement) pageRules {
	p := pageRules{}
	for _, m := range elements {
		name := m.name
		if name == "robots" {
			name = ""
		}
		p.add(name, m.content)
	}
	return p
}

// usage are AIPREF preferences: "y" or "n" by key.
type usage map[string]string

// contentUsage reads a Content-Usage value (draft-ietf-aipref-attach).
func contentUsage(values []string) usage {
	u := usage{}
	d, err := httpsfv.UnmarshalDictionary(values)
	if err != nil {
		return u
	}
	for _, key := range d.Names() {
		m, _ := d.Get(key)
		if item, ok := m.(httpsfv.Item); ok {
			if t, ok := item.Value.(httpsfv.Token); ok && (t == "y" || t == "n") {
				u[key] = string(t)
			}
		}
	}
	return u
}

// signalKeys maps the names of Content-Signal to those of Content-Usage.
var signalKeys = map[string]string{"ai-train": "train-ai", "ai-input": "ai-use", "search": "search"}

// contentSignal reads a Content-Signal value as preferences: "search=yes, ai-train=no".
func contentSignal(value string) usage {
	u := usage{}
	for part := range strings.SplitSeq(value, ",") {
		k, v, _ := strings.Cut(strings.TrimSpace(part), "=")
		key := signalKeys[strings.ToLower(strings.TrimSpace(k))]
		switch strings.ToLower(strings.TrimSpace(v)) {
		case "yes":
			u[key] = "y"
		case "no":
			u[key] = "n"
		}
	}
	delete(u, "")
	return u
}

// String is the value as Content-Usage spells it.
func (u usage) String() string {
	var parts []string
	for _, key := range []string{"train-ai", "ai-use", "search"} {
		if u[key] != "" {
			parts = append(parts, key+"="+u[key])
		}
	}
	return strings.Join(parts, ", ")
}

// unknownRules returns the names in a list of rules that no crawler documents.
func unknownRules(list string) (unknown []string) {
	for rest := list; rest != ""; {
		var item string
		item, rest = robotsrule.Cut(rest)
		name, _, _ := strings.Cut(item, ":")
		name, _, _ = strings.Cut(name, "=")
		if name = strings.ToLower(strings.TrimSpace(name)); name != "" && !robotsrule.IsRule(name) && !slices.Contains(unknown, name) {
			unknown = append(unknown, name)
		}
	}
	return unknown
}
