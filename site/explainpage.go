// SPDX-License-Identifier: Apache-2.0

package site

import (
	"fmt"
	"net/http"
	"slices"
	"strings"

	"github.com/robotspolicy/caddy-robots-policy/policy"
	"github.com/robotspolicy/caddy-robots-policy/rights"
	"github.com/robotspolicy/caddy-robots-policy/robotsrule"
	"github.com/robotspolicy/caddy-robots-policy/robotstag"
)

func (s *Site) explainHeaders(q policy.Query) Channel {
	c := Channel{Name: ChannelHeaders}
	page := s.Page(q.Host, q.Path, q.Now)
	h := page.header()
	names := robotstag.Fields()
	for d := range page.published {
		names = append(names, d.Channel.Page.Fields...)
	}
	for _, name := range names {
		for _, v := range h[name] {
			c.Sends = append(c.Sends, name+": "+v)
		}
	}
	c.Reasons = s.reasons(s.Sources(q))
	for p, everyone := range s.PageQueries(q) {
		everyone.Crawler = 0
		if !s.preferencesPublished() {
			break
		}
		prefs, _ := robotstag.Preferences(p.Policy, everyone)
		for _, d := range prefs {
			if d.Verdict == policy.Disallowed || d.Verdict == policy.Allowed && !p.AnyCase {
				c.add(s.reason(d))
			}
		}
	}
	if info := s.Policy.CrawlerInfo(q.Crawler); !info.ReadsPages() {
		c.Summary = "no crawler uses this token when it fetches pages, so headers for this token have no effect"
		return c
	}
	sent := s.restrictions(q)
	switch {
	case len(c.Sends) == 0:
		c.Summary = "the policy does not add any headers"
	case sent.IsEmpty() && slices.ContainsFunc(page.Declared, func(d Declared) bool { return d.Published && d.Restricts() }):
		c.Summary = "no robots rule in the headers restricts this crawler"
	case sent.IsEmpty() && stated(h) != "":
		c.Summary = "no robots rule in the headers restricts this crawler; for everyone, the headers state the preferences " + stated(h)
	case sent.IsEmpty():
		c.Summary = "nothing in the headers restricts this crawler"
	default:
		c.Summary = "the rules for this crawler are " + sent.String()
	}
	c.Differs = s.headerDiffers(q, sent)
	s.addLifted(&c, q)
	return c
}

// addLifted adds the reasons why the policy removes restrictions, such as noindex, that the site itself sends with a
// page.
func (s *Site) addLifted(c *Channel, q policy.Query) {
	pg := s.Page(q.Host, q.Path, q.Now)
	if pg.Values == nil || pg.Values.Lift == 0 {
		return
	}
	q.Crawler = 0
	for u, rules := range robotstag.Lifts(pg.Values.Lift) {
		q.Usage = u
		reason := s.reason(s.Policy.Decide(q))
		reason.Says += ", which removes the site's own " + rules
		c.add(reason)
	}
}

// stated returns the value of the first preference field in a header, or "".
func stated(h http.Header) string {
	for _, f := range rights.Vocabularies {
		if text := h.Get(f.Field); text != "" {
			return text
		}
	}
	return ""
}

// preferencesPublished reports whether the policy publishes a header with preferences.
func (s *Site) preferencesPublished() bool {
	return slices.ContainsFunc(rights.Vocabularies[:], func(f *rights.Vocabulary) bool { return f.On(&s.File.Spec.Publish) })
}

// restrictions returns the rules for a crawler in headers and meta tags. The rules for everyone and the rules for its
// token apply together (draft-illyes-repext-03).
func (s *Site) restrictions(q policy.Query) (all robotsrule.Set) {
	token := s.Policy.CrawlerInfo(q.Crawler).Token
	for p, q := range s.PageQueries(q) {
		said, _ := robotstag.Members(p.Policy, q)
		for _, m := range said {
			if m.Token == robotstag.Everyone || m.Token == token {
				all = all.Union(m.Rules)
			}
		}
	}
	return all
}

// headerDiffers describes where headers cannot express the policy's decisions for the query's crawler.
func (s *Site) headerDiffers(q policy.Query, sent robotsrule.Set) (differs []string) {
	var own robotsrule.Set
	for p, q := range s.PageQueries(q) {
		rules, _ := robotstag.Rules(p.Policy, q)
		own = own.Union(rules)
	}
	if extra := sent.Beyond(own); !extra.IsEmpty() {
		differs = append(differs, fmt.Sprintf("%q in headers and meta tags also applies to this crawler, although the policy does not restrict it in this way. "+
			"Headers and meta tags cannot exempt one crawler from the rules for everyone (with \"headers tailored\" in the Caddyfile, headers can)", extra.String()))
	}
	if info := s.Policy.CrawlerInfo(q.Crawler); q.Crawler != 0 && s.preferencesPublished() {
		for _, u := range []policy.Usage{policy.TrainAI, policy.AIUse, policy.Search} {
			q.Usage = u
			its := s.Policy.Decide(q)
			all := q
			all.Crawler = 0
			if everyone := s.Policy.Decide(all); its.Verdict != everyone.Verdict {
				differs = append(differs, fmt.Sprintf("the header with AI preferences cannot address single crawlers, so only robots.txt says that %s is %s for %s",
					u, its.Verdict, info.Token))
			}
		}
	}
	for _, u := range policy.Usages() {
		q.Usage = u
		d := s.Policy.Decide(q)
		for _, lost := range robotstag.Lost(u, d) {
			differs = append(differs, fmt.Sprintf("headers and meta tags cannot express %s for %s (%s)", lost, u, s.Place(d.Statement.Pos)))
		}
	}
	return differs
}

func (s *Site) reasons(sources []robotstag.Source) []Reason {
	var c Channel
	for _, src := range sources {
		if src.Engine != nil {
			c.add(Reason{Place: s.Place(src.Engine.Pos), Rule: s.RuleName(src.Rule), Says: "robots-tag " + src.Rules.String() + " for " + src.Engine.Pattern.String()})
			continue
		}
		reason := s.reason(src.Decision)
		if src.Control {
			reason.Says += ", so Caddy sends the AI control that the crawler's operator offers: " + src.Rules.String()
		}
		c.add(reason)
	}
	return c.Reasons
}

func (c *Channel) add(r Reason) {
	if !slices.Contains(c.Reasons, r) {
		c.Reasons = append(c.Reasons, r)
	}
}

func (s *Site) explainPage(q policy.Query) Channel {
	c := Channel{Name: ChannelPage, Summary: "an HTML page is not changed", Reasons: s.reasons(s.Sources(q))}
	if info := s.Policy.CrawlerInfo(q.Crawler); !info.ReadsPages() {
		c.Summary, c.Reasons = "no crawler uses this token when it fetches pages", nil
		return c
	}
	for element := range strings.SplitAfterSeq(s.Page(q.Host, q.Path, q.Now).Elements.HTML(), ">") {
		if element != "" {
			c.Sends = append(c.Sends, element)
		}
	}
	if len(c.Sends) > 0 {
		c.Summary = "an HTML page gets these meta tags in its head, combined with the page's own meta tags"
	}
	s.addLifted(&c, q)
	return c
}
