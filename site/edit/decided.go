// SPDX-License-Identifier: Apache-2.0

package edit

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/robotspolicy/caddy-robots-policy/internal/leaf/english"
	"github.com/robotspolicy/caddy-robots-policy/policy"
	"github.com/robotspolicy/caddy-robots-policy/robotsrule"
	"github.com/robotspolicy/caddy-robots-policy/robotsserve"
	"github.com/robotspolicy/caddy-robots-policy/robotstag"
)

// Unmet lists chosen crawlers that the chosen decision does not apply to on a host. Usually another rule decides there.
type Unmet struct {
	Crawlers []string     // product tokens, and "" for unlisted clients
	Host     string       // "" for any host that the policy does not name
	Stays    string       // the actual decision, such as "allowed"
	Rule     *policy.Rule // the rule that decides instead, or nil
}

// count returns the number of combinations of a crawler and a host in all.
func count(all []Unmet) (n int) {
	for _, u := range all {
		n += len(u.Crawlers)
	}
	return n
}

// String describes the crawlers that the choice does not decide for, the actual decision, and its rule.
func (u *Unmet) String() string {
	names := slices.Clone(u.Crawlers)
	if i := slices.Index(names, ""); i >= 0 {
		names[i] = "unlisted clients"
	}
	text := fmt.Sprintf("the policy still says %q for %s", u.Stays, english.Some(names, 3))
	if u.Host != "" {
		text += " on " + u.Host
	}
	if u.Rule != nil {
		text += fmt.Sprintf(", in the rule on line %d", u.Rule.Pos.Line)
		if u.Rule.Name != "" {
			text += fmt.Sprintf(" (%s)", u.Rule.Name)
		}
	}
	return text
}

// isMember reports whether a crawler is among the chosen ones. 0 stands for an unlisted client.
func (e *editor) isMember(p *policy.Policy, id policy.CrawlerID) bool {
	info, who := p.CrawlerInfo(id), e.choice.Who
	switch who.Kind {
	case policy.ForEveryone, policy.ForEveryoneElse:
		return true
	case policy.ForCategory, policy.ForOperator, policy.ForPurpose, policy.ForAI:
		return who.Includes(info)
	case policy.ForToken:
	}
	chosen := p.Crawler(who.Name)
	return id != 0 && (id == chosen || p.Family(id) == chosen)
}

// maxHosts limits the number of hosts that a choice is checked for.
const maxHosts = 500

// hosts returns the chosen host, and the hosts in rules that the choice also applies to.
func (e *editor) hosts(p *policy.Policy) []policy.Host {
	all := []policy.Host{e.choice.Host}
	for _, h := range robotsserve.Hosts(p) {
		covered := e.choice.Host == "" || e.choice.Host.Wildcard() && e.choice.Host.Covers(h.Example())
		if covered && !slices.Contains(all, h) && len(all) < maxHosts {
			all = append(all, h)
		}
	}
	return all
}

// unmet returns the crawlers and hosts that the chosen decision does not apply to. asked is the number of combinations
// of a chosen crawler and a host. Crawlers with the same rules are checked together.
func (e *editor) unmet(p *policy.Policy) (all []Unmet, asked int) {
	identities := []policy.Identity{policy.Verified}
	if p.DemandsIdentity() {
		identities = append(identities, policy.Unknown)
	}
	for _, host := range e.hosts(p) {
		for _, members := range e.byClass(p, host.Example()) {
			asked += len(members)
			if len(members) == 0 {
				continue
			}
			stays, rule := e.insteadOf(p, host, members[0], identities)
			if stays == "" {
				continue
			}
			u := Unmet{Host: string(host), Stays: stays, Rule: rule}
			for _, id := range members {
				u.Crawlers = append(u.Crawlers, p.CrawlerInfo(id).Token)
			}
			all = append(all, u)
		}
	}
	return all, asked
}

// insteadOf calls the method e.instead with each identity and with two example paths of the choice. It returns the
// first result that differs from the chosen decision.
func (e *editor) insteadOf(p *policy.Policy, host policy.Host, id policy.CrawlerID, identities []policy.Identity) (stays string, _ *policy.Rule) {
	q := policy.Query{Host: host.Example(), Crawler: id, Usage: e.choice.Usage, Now: e.now}
	for _, q.Identity = range identities {
		for _, q.Path = range []string{e.choice.Path.Example(), e.choice.Path.NarrowExample()} {
			if stays, rule := e.instead(p, q); stays != "" {
				return stays, rule
			}
		}
	}
	return "", nil
}

// byClass groups the chosen crawlers by the rules that apply to them on a host. The first group holds the ID 0 for
// unlisted clients, and the crawlers that only rules for everyone apply to.
func (e *editor) byClass(p *policy.Policy, host string) [][]policy.CrawlerID {
	classes, of := p.ClassIndex(host)
	members := make([][]policy.CrawlerID, len(classes))
	add := func(id policy.CrawlerID) {
		if e.isMember(p, id) {
			members[of[id]] = append(members[of[id]], id)
		}
	}
	add(0)
	for id := range p.Crawlers {
		add(id)
	}
	return members
}

// instead returns the actual decision about a crawler, and the deciding rule. It returns "" if this is the chosen
// decision.
func (e *editor) instead(p *policy.Policy, q policy.Query) (stays string, _ *policy.Rule) {
	if e.choice.Do == Slow {
		rule, found := p.Limit(q), "none"
		if rule != nil {
			found = rule.Limit.String()
		}
		if found == e.choice.Rate {
			return "", rule
		}
		return "limited (" + found + ")", rule
	}
	if e.choice.Do == Snippet {
		return e.snippetInstead(p, q)
	}
	d := p.Decide(q)
	if q.Usage != policy.Crawl {
		want := map[Action]policy.Verdict{Allow: policy.Allowed, Ask: policy.Disallowed}[e.choice.Do]
		if d.Verdict == want {
			return "", d.Rule
		}
		return d.Verdict.String(), d.Rule
	}
	does, stays := Allow, "allowed"
	if d.Verdict == policy.Disallowed {
		if does, stays = Ask, "disallowed"; p.Mode(d) == policy.ModeBlock {
			does, stays = Refuse, "blocked"
		}
	}
	if does == e.choice.Do {
		return "", d.Rule
	}
	return stays, d.Rule
}

// snippetInstead does the same as instead, but for a choice about the length of snippets. It examines the rules from
// all sources, such as robots-tag and disallowed usages, because crawlers obey the strictest rule of a page.
func (e *editor) snippetInstead(p *policy.Policy, q policy.Query) (stays string, by *policy.Rule) {
	var strictest robotsrule.Set
	sources, _ := robotstag.Sources(p, q)
	for _, s := range sources {
		if s.Rules.Has("nosnippet") {
			why := "nosnippet"
			if s.Engine == nil {
				why = s.Usage.String() + " is disallowed"
			}
			return "without snippets (" + why + ")", s.Rule
		}
		for text := range strings.SplitSeq(s.Rules.String(), ", ") {
			if set := strictest.Union(robotsrule.Of(text)); strings.HasPrefix(text, maxSnippet) && set != strictest {
				strictest, by = set, s.Rule
			}
		}
	}
	found := cmp.Or(strictest.String(), maxSnippet+":-1")
	if found == e.snippet() {
		return "", by
	}
	return "limited (" + found + ")", by
}
