// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"slices"
	"strings"

	"github.com/robotspolicy/caddy-robots-policy/pathpattern"
	"github.com/robotspolicy/caddy-robots-policy/robotsrule"
)

// Controlled lists the crawlers with a Control.
func (p *Policy) Controlled() []CrawlerID { return p.table.controlled }

// PageTokens lists the tokens that no client sends, but that the operator looks for in the pages that this crawler
// fetches.
func (p *Policy) PageTokens(fetches CrawlerID) (tokens []CrawlerID) {
	for _, id := range p.table.pageTokens {
		if p.Family(id) == fetches {
			tokens = append(tokens, id)
		}
	}
	return tokens
}

// ControlOf returns the rules that the server sends because of the Control of the query's crawler, with a usage and
// the decision that cause them. The rules are empty if the policy does not disallow all usages of the Control, or
// if the crawler may not fetch anything. It ignores the usage of the query.
func (p *Policy) ControlOf(q Query) (rules robotsrule.Set, usage Usage, by Decision) {
	if p.crawler(q.Crawler).Control == nil || p.StaysOut(q) {
		return rules, usage, by
	}
	rules = p.ControlWhere(q.Crawler, func(u Usage) bool {
		q.Usage = u
		d := p.Decide(q)
		if d.Verdict == Disallowed && (by.Rule == nil || !usage.IsRight()) {
			usage, by = u, d
		}
		return d.Verdict == Disallowed
	})
	return rules, usage, by
}

// StaysOut reports whether the query's crawler may fetch no page of the host, and so reads no header. The answer
// depends on the host alone.
func (p *Policy) StaysOut(q Query) bool {
	q.Usage = Crawl
	p = p.WithoutFallback() // as the server, which sends headers by the policy alone
	c := p.ClassOf(q.Crawler, q.Host)
	return p.DecideAt(q, pathpattern.All).Verdict == Disallowed &&
		!slices.ContainsFunc(p.Statements(&c, Crawl, ""), func(a Applied) bool { return a.Statement.Allow })
}

// ControlWhere returns the rules of a crawler's Control if all its usages are disallowed, and otherwise no rules.
func (p *Policy) ControlWhere(id CrawlerID, disallowed func(Usage) bool) robotsrule.Set {
	info := p.crawler(id)
	if info.Control == nil {
		return robotsrule.Set{}
	}
	enough := false
	switch choice := p.spec.Publish.ControlChoice(info.Token); choice {
	case NoControl:
	case "":
		enough = !slices.ContainsFunc(info.Control.Takes, func(u Usage) bool { return !disallowed(u) })
	default:
		enough = slices.ContainsFunc(info.Control.Takes, func(u Usage) bool { return u.IsRight() && disallowed(u) })
	}
	if !enough {
		return robotsrule.Set{}
	}
	return info.Control.Rules
}

// SendsControl reports whether a crawler's Control, or a control token, is sent anywhere.
func (b *Publish) SendsControl(token string) bool { return b.ControlChoice(token) != NoControl }

// ControlChoice returns the policy's setting for the Control of a crawler, or for a control token: rules,
// NoControl, or "" if there is no setting.
func (b *Publish) ControlChoice(token string) string {
	if b.Controls == Off {
		return NoControl
	}
	for _, c := range b.ControlChoices {
		if strings.EqualFold(c.Crawler, token) {
			return c.Value
		}
	}
	return ""
}

// ControlToken decides which paths a control token closes to training: paths disallowed to the token, or to the
// crawler whose pages the token is about. An allow entry wins if it names the token, or reaches the token more
// closely than the disallow entry reaches the crawler.
type ControlToken struct {
	p           *Policy
	token, main Class
	host        string
}

// ControlToken returns the decisions of a control token on a host.
func (p *Policy) ControlToken(id CrawlerID, host string) ControlToken {
	c := ControlToken{p: p, token: p.ClassOf(id, host), host: host}
	c.main = c.token
	if main := p.Crawler(p.crawler(id).Main); main != 0 {
		c.main = p.ClassOf(main, host)
	}
	return c
}

// At decides about the paths that match a pattern but none of the policy's narrower patterns.
func (c *ControlToken) At(at pathpattern.Pattern) Decision {
	return c.decide(func(of *Class) Decision { return c.p.DecideAt(of.Query(c.host, TrainAI, ""), at) })
}

// Decide decides about the path of a query at its time.
func (c *ControlToken) Decide(q Query) Decision {
	return c.decide(func(of *Class) Decision {
		own := of.Query(c.host, TrainAI, "")
		own.Path, own.Now = q.Path, q.Now
		return c.p.Decide(own)
	})
}

func (c *ControlToken) decide(of func(*Class) Decision) Decision {
	own := of(&c.token)
	if len(c.main.Crawlers) == 0 {
		return own
	}
	main := of(&c.main)
	switch {
	case own.Verdict == Disallowed && main.Verdict == Allowed:
		if c.tier(&c.main, main) < c.tier(&c.token, own) {
			return main
		}
		return own
	case own.Verdict == Allowed && main.Verdict == Disallowed:
		if tier := c.tier(&c.token, own); tier == TierToken || tier < c.tier(&c.main, main) {
			return own
		}
		return main
	case main.Verdict == Disallowed && own.Verdict != Disallowed:
		return main
	}
	return own
}

// tier returns how closely the deciding rule names the crawler of a class.
func (c *ControlToken) tier(of *Class, d Decision) Tier {
	tier, _ := c.p.NamedBy(d.Rule, of.Crawlers[0])
	return tier
}

// Statements lists the policy's statements about training for the token and for its crawler.
func (c *ControlToken) Statements() (all []Applied) {
	for _, of := range []*Class{&c.token, &c.main} {
		for _, u := range []Usage{TrainAI, Other} {
			all = append(all, c.p.Statements(of, u, "")...)
		}
	}
	return all
}

// Closes reports whether training is disallowed on at least one path.
func (c *ControlToken) Closes() bool {
	if c.At(pathpattern.All).Verdict == Disallowed {
		return true
	}
	for _, a := range c.Statements() {
		for _, pattern := range a.Statement.Pattern.Rooted() {
			if c.At(pattern).Verdict == Disallowed {
				return true
			}
		}
	}
	return false
}
