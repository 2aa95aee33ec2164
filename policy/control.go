// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"slices"
	"strings"

	"github.com/robotspolicy/caddy-robots-policy/pathpattern"
	"github.com/robotspolicy/caddy-robots-policy/robotsrule"
)

// Controlled lists the crawlers with a Control, which is a set of rules that the operator documents (see type Control).
func (p *Policy) Controlled() []CrawlerID { return p.table.controlled }

// PageTokens lists tokens that no client sends in its User-Agent. When the given crawler fetches a page, its operator
// looks for rules for these tokens in the page.
func (p *Policy) PageTokens(fetches CrawlerID) (tokens []CrawlerID) {
	for _, id := range p.table.pageTokens {
		if p.Family(id) == fetches {
			tokens = append(tokens, id)
		}
	}
	return tokens
}

// ControlOf returns the rules that the server sends because of the Control of the query's crawler. It also returns one
// usage that the policy disallows and the decision about this usage. The rules are empty if the policy does not
// disallow enough usages of the Control (see ControlWhere), or if the crawler may not fetch any page. ControlOf ignores
// the usage of the query.
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

// StaysOut reports whether the policy disallows crawling of every page of the host to the query's crawler. Such a
// crawler never reads the headers of a page. The path and the usage of the query are ignored.
func (p *Policy) StaysOut(q Query) bool {
	q.Usage = Crawl
	p = p.WithoutFallback() // like the server, which builds headers from the policy alone
	c := p.ClassOf(q.Crawler, q.Host)
	return p.DecideAt(q, pathpattern.All).Verdict == Disallowed &&
		!slices.ContainsFunc(p.Statements(&c, Crawl, ""), func(a Applied) bool { return a.Statement.Allow })
}

// ControlWhere returns the rules of a crawler's Control if disallowed returns true for all usages of the Control. If
// the policy has a setting for the Control, it is enough that one of these usages is disallowed and is a rights usage
// (see Usage.IsRight). If too few usages are disallowed, or the policy sets the Control to NoControl, ControlWhere
// returns an empty set.
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

// SendsControl reports whether the policy's settings let the server send a Control or a control token. token is the
// product token of the Control's crawler, or the control token.
func (b *Publish) SendsControl(token string) bool { return b.ControlChoice(token) != NoControl }

// ControlChoice returns the policy's setting for the Control of a crawler, or for a control token. The setting is a
// text of rules, NoControl, or "" if there is no setting.
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

// A ControlToken decides on which paths a control token disallows AI training. Training is disallowed on paths that the
// policy disallows to the token, or to the crawler whose pages the token is about (the main crawler). If a rule allows
// training to one of the two and a rule disallows it to the other, the rule that names its crawler or token more
// closely wins. If the two rules are equally close, the rule that disallows training wins. There is one exception: if a
// rule that names the token itself allows training, it always wins.
type ControlToken struct {
	p           *Policy
	token, main Class
	host        string
}

// ControlToken returns a ControlToken for the token id on a host.
func (p *Policy) ControlToken(id CrawlerID, host string) ControlToken {
	c := ControlToken{p: p, token: p.ClassOf(id, host), host: host}
	c.main = c.token
	if main := p.Crawler(p.crawler(id).Main); main != 0 {
		c.main = p.ClassOf(main, host)
	}
	return c
}

// At returns the decision about training on the paths that match a pattern but no narrower pattern of the policy.
func (c *ControlToken) At(at pathpattern.Pattern) Decision {
	return c.decide(func(of *Class) Decision { return c.p.DecideAt(of.Query(c.host, TrainAI, ""), at) })
}

// Decide returns the decision about training on the path of a query at the time of the query.
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

// tier returns how closely the rule of a decision names the crawler of a class.
func (c *ControlToken) tier(of *Class, d Decision) Tier {
	tier, _ := c.p.NamedBy(d.Rule, of.Crawlers[0])
	return tier
}

// Statements lists the policy's statements about training for the token and for its main crawler.
func (c *ControlToken) Statements() (all []Applied) {
	for _, of := range []*Class{&c.token, &c.main} {
		for _, u := range []Usage{TrainAI, Other} {
			all = append(all, c.p.Statements(of, u, "")...)
		}
	}
	return all
}

// Closes reports whether the policy disallows training on at least one path.
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
