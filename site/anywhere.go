// SPDX-License-Identifier: Apache-2.0

package site

import (
	"slices"
	"time"

	"github.com/robotspolicy/caddy-robots-policy/effect"
	"github.com/robotspolicy/caddy-robots-policy/policy"
	"github.com/robotspolicy/caddy-robots-policy/rights"
	"github.com/robotspolicy/caddy-robots-policy/robotsrule"
	"github.com/robotspolicy/caddy-robots-policy/robotstag"
)

// anywhere is the content of responses for a long target, which is not compared with patterns. It has every statement
// of the policy about any path on its hosts.
func (ps *pages) anywhere(tailored bool, q policy.Query, t effect.PolicyTarget) *Page {
	pg := &Page{Declared: ps.registers.declared(t)}
	var all []robotstag.Member
	usage := ps.usage()
	for q.Host = range t.Hosts {
		said, disallowed, until := ps.membersAnywhere(tailored, q)
		all, usage = append(all, said...), usage.Combine(disallowed)
		pg.until = earlier(pg.until, until)
	}
	if len(all) > 0 || !usage.IsEmpty() {
		pg.Values, _ = robotstag.Build(all, usage, q.Now)
	}
	pg.Elements = ps.elements(all, pg.Declared, 0)
	return pg
}

// membersAnywhere is members and what is disallowed by preferences, whatever the path.
func (ps *pages) membersAnywhere(tailored bool, q policy.Query) (members []robotstag.Member, disallowed rights.Verdicts, until time.Time) {
	classes := []policy.Class{ps.Exact.ClassOf(q.Crawler, q.Host)}
	if !tailored {
		classes = ps.Exact.PublicClasses(q.Host)
	}
	var everyone robotsrule.Set
	for i := range classes {
		rules, prefs, change := robotstag.Anywhere(&ps.Exact.Spec().Publish, reaching(ps.Exact, &classes[i]), q.Now)
		until = earlier(until, change)
		if i == 0 {
			if everyone = rules; !rules.IsEmpty() {
				members = append(members, robotstag.Member{Token: robotstag.Everyone, Rules: rules})
			}
			disallowed = prefs
			continue
		}
		for _, id := range classes[i].Crawlers {
			if info, own := ps.Exact.CrawlerInfo(id), robotstag.OfOne(rules, everyone); info.ReadsPages() && !own.IsEmpty() {
				members = append(members, robotstag.Member{Token: info.Token, Rules: own})
			}
		}
	}
	if tailored {
		for _, id := range ps.Exact.PageTokens(q.Crawler) {
			class := ps.Exact.ClassOf(id, q.Host)
			rules, _, change := robotstag.Anywhere(&ps.Exact.Spec().Publish, reaching(ps.Exact, &class), q.Now)
			until = earlier(until, change)
			if rules = robotstag.OfOne(rules, everyone); !rules.IsEmpty() {
				members = append(members, robotstag.Member{Token: ps.Exact.CrawlerInfo(id).Token, Rules: rules})
			}
		}
	}
	for _, id := range ps.Exact.Controlled() {
		if tailored && id != q.Crawler {
			continue
		}
		class := ps.Exact.ClassOf(id, q.Host)
		rules := robotstag.ControlAnywhere(ps.Exact, id, reaching(ps.Exact, &class), q.Now)
		if rules = rules.Beyond(everyone); !rules.IsEmpty() {
			token := robotstag.Everyone
			if !tailored {
				token = ps.Exact.CrawlerInfo(id).Token
			}
			members = append(members, robotstag.Member{Token: token, Rules: rules})
		}
	}
	return members, disallowed, until
}

// reaching lists the rules that reach a class without naming purposes.
func reaching(p *policy.Policy, c *policy.Class) []*policy.Rule {
	return slices.DeleteFunc(slices.Concat(p.Ranks(c)...), func(r *policy.Rule) bool { return len(r.UsagePurposes) > 0 })
}

// earlier is the earlier of two times; zero is never.
func earlier(a, b time.Time) time.Time {
	if a.IsZero() || !b.IsZero() && b.Before(a) {
		return b
	}
	return a
}
