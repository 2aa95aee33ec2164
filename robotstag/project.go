// SPDX-License-Identifier: Apache-2.0

package robotstag

import (
	"slices"
	"strings"
	"time"

	"github.com/robotspolicy/caddy-robots-policy/channels"
	"github.com/robotspolicy/caddy-robots-policy/policy"
	"github.com/robotspolicy/caddy-robots-policy/rights"
	"github.com/robotspolicy/caddy-robots-policy/robotsrule"
)

// spelling maps each usage to the rules that disallow it in headers and meta tags. If no rule disallows exactly
// the usage, the map has the next stricter rule. Usages that are not in the map only appear in robots.txt.
var spelling = map[policy.Usage]robotsrule.Set{
	policy.Follow:              robotsrule.Of("nofollow"),
	policy.Index:               robotsrule.Of("noindex"),
	policy.Preserve:            robotsrule.Of("noarchive"),
	policy.PresentLink:         robotsrule.Of("noindex"),
	policy.PresentSnippet:      robotsrule.Of("nosnippet"),
	policy.PresentThumbnail:    robotsrule.Of("max-image-preview:none", "max-video-preview:0"),
	policy.PresentCurrentCopy:  robotsrule.Of("noarchive"),
	policy.PresentOldCopy:      robotsrule.Of("noarchive"),
	policy.PresentOldSnippet:   robotsrule.Of("noarchive"),
	policy.PresentOldThumbnail: robotsrule.Of("noarchive"),
}

// spellingOf returns the rules with which a policy disallows a usage in headers and meta tags. ok is false if there
// are none.
func spellingOf(publish *policy.Publish, u policy.Usage) (text robotsrule.Set, ok bool) {
	if words := channels.WordsFor(publish, u); !words.IsEmpty() {
		return words, true
	}
	text, ok = spelling[u]
	return text, ok
}

// Disallows reports whether robots control rules include the rules with which headers and meta tags disallow a usage.
func Disallows(rules robotsrule.Set, u policy.Usage) bool {
	word, ok := spelling[u]
	return ok && word.Beyond(rules.WithoutEmbedding()).IsEmpty()
}

// Members returns the policy's rules about a host and path for each audience, everyone first. until is the time of the
// next change of these rules, or zero. The crawler and usage of q are ignored. A member for a crawler has only the
// rules that the member for everyone lacks. Crawlers that headers and meta tags cannot name are left out (see
// policy.Crawler.ReadsPages).
func Members(p *policy.Policy, q policy.Query) (members []Member, until time.Time) {
	q.Crawler = 0
	everyone, until := Rules(p, q)
	if !everyone.IsEmpty() {
		members = append(members, Member{Token: Everyone, Rules: everyone})
	}
	add := func(id policy.CrawlerID, rules robotsrule.Set) {
		if head := p.Family(id); head != 0 && p.CrawlerInfo(id).RobotsOnly {
			q := q
			q.Crawler = head // head fetches the page for the crawler id, so the rules for head also apply
			theirs, change := Rules(p, q)
			rules, until = rules.Beyond(theirs), Earlier(until, change)
		}
		if info, own := p.CrawlerInfo(id), OfOne(rules, everyone); info.ReadsPages() && !own.IsEmpty() {
			members = append(members, Member{Token: info.Token, Rules: own})
		}
	}
	alone := slices.Clone(p.Controlled())
	for _, c := range p.ClassesOf(q)[1:] {
		q.Crawler = c.Crawlers[0]
		rules, change := rulesOf(stated(p, q))
		until = Earlier(until, change)
		for _, id := range c.Crawlers {
			own := rules
			if i := slices.Index(alone, id); i >= 0 {
				q.Crawler, alone = id, slices.Delete(alone, i, i+1)
				own, change = Rules(p, q)
				until = Earlier(until, change)
			}
			add(id, own)
		}
	}
	for _, q.Crawler = range alone {
		rules, change := Rules(p, q)
		until = Earlier(until, change)
		add(q.Crawler, rules)
	}
	return members, until
}

// OfOne returns the rules that the member for one crawler must have in addition to the rules for everyone. It leaves
// out words that other channels add to the rules, because readers of these words only look at the rules for everyone.
func OfOne(rules, everyone robotsrule.Set) robotsrule.Set {
	return rules.Without(channels.Words().Has).Beyond(everyone)
}

// Source is a reason for robots control rules: either a decision or a rule for an engine.
type Source struct {
	Rules    robotsrule.Set
	Usage    policy.Usage // the usage of Decision
	Decision policy.Decision
	Engine   *policy.EngineRule // nil if Decision is the reason
	Rule     *policy.Rule
	Control  bool // Rules are the operator's own control, which is about Usage and possibly other usages
}

// Rules returns the robots control rules for a crawler, host and path. until is the time when a date next changes
// them, or zero. The usage of q is ignored. A header cannot distinguish verified clients, so the rules for all
// identities are combined to the strictest.
func Rules(p *policy.Policy, q policy.Query) (robotsrule.Set, time.Time) {
	return rulesOf(Sources(p, q))
}

func rulesOf(sources []Source, until time.Time) (rules robotsrule.Set, _ time.Time) {
	for _, s := range sources {
		rules = rules.Union(s.Rules)
	}
	return rules, until
}

// Sources returns the reasons for the results of Rules, in a fixed order. It returns a reason once for each
// identity that it applies to.
func Sources(p *policy.Policy, q policy.Query) (sources []Source, until time.Time) {
	sources, until = stated(p, q)
	if p.CrawlerInfo(q.Crawler).Control == nil {
		return sources, until
	}
	for _, q.Identity = range p.Identities() {
		if rules, u, d := p.ControlOf(q); !rules.IsEmpty() {
			sources = append(sources, Source{Rules: rules, Usage: u, Decision: d, Rule: d.Rule, Control: true})
			until = Earlier(until, d.Until)
		}
	}
	return sources, until
}

// stated returns the reasons that Sources returns, except for those with a policy.Control.
func stated(p *policy.Policy, q policy.Query) (sources []Source, until time.Time) {
	for _, q.Identity = range p.Identities() {
		for _, u := range policy.Usages() {
			q.Usage = u
			d := p.Decide(q)
			if s := spell(&p.Spec().Publish, u, d); !s.IsEmpty() {
				sources = append(sources, Source{Rules: s, Usage: u, Decision: d, Rule: d.Rule})
			}
			until = Earlier(until, d.Until)
		}
		for _, name := range p.EngineRuleNames() {
			s, by, of := p.EngineRule(q, name)
			if by == nil {
				continue
			}
			if at, ok := s.UnavailableAfter(); ok && at.Add(time.Second).After(q.Now) {
				until = Earlier(until, at.Add(time.Second))
			}
			sources = append(sources, Source{Rules: s.Expired(q.Now), Engine: by, Rule: of})
		}
	}
	return sources, until
}

// spell returns the robots control rules for a decision.
func spell(publish *policy.Publish, u policy.Usage, d policy.Decision) robotsrule.Set {
	word, ok := spellingOf(publish, u)
	if d.Verdict == policy.Disallowed && ok {
		return word
	}
	var rules robotsrule.Set
	for _, q := range d.Qualifiers() {
		rules = rules.Union(spellLimits(u, q))
	}
	return rules
}

func spellLimits(u policy.Usage, q *policy.Qualifiers) (rules robotsrule.Set) {
	if u == policy.Index && q.TimeLimit.Kind == policy.UntilDate {
		rules = rules.Union(robotsrule.UnavailableAfter(q.TimeLimit.Last))
	}
	if u == policy.PresentSnippet && q.MaxLength.Unit != "" {
		rules = rules.Union(robotsrule.MaxSnippet(characters(q.MaxLength)))
	}
	for _, m := range q.ProhibitedModification {
		if m == "translation" || m == "any" {
			rules = rules.Union(robotsrule.Of("notranslate"))
		}
	}
	return rules
}

// characters converts a length to characters. It assumes that a word has one character, and that words are separated by
// one space.
func characters(l policy.Length) int {
	if l.Unit == policy.Words && l.N > 0 {
		return min(2*l.N-1, 1<<30)
	}
	return l.N
}

// Earlier returns the earlier of two times. The zero time means never.
func Earlier(a, b time.Time) time.Time {
	if a.IsZero() || !b.IsZero() && b.Before(a) {
		return b
	}
	return a
}

// Preferences returns the decisions about AIPREF preferences for a host and path (draft-ietf-aipref-vocab), and the
// time when they next change. The header with the preferences cannot name a crawler, so q.Crawler should be 0.
// Preferences for single crawlers are in robots.txt. A statement about the usage "index" that allows it does not allow
// the preference "search", because "search" also includes training for search.
func Preferences(p *policy.Policy, q policy.Query) (strictest rights.Preferences, until time.Time) {
	for i, identity := range p.Identities() {
		q.Identity = identity
		one := rights.Decide(p, q)
		if i == 0 {
			strictest = one
		}
		strictest = strictest.Stricter(one)
		for _, d := range one {
			until = Earlier(until, d.Until)
		}
	}
	return strictest, until
}

// Lost lists the qualifiers of a decision that robots control rules cannot express, as name=value. Dates are not
// listed, because the rules change on these dates. until-recrawled is not listed, because rules imply it
// (draft-illyes-repext-03).
func Lost(u policy.Usage, d policy.Decision) (lost []string) {
	if d.Verdict != policy.Allowed || d.Statement == nil || d.Statement.Usage != u {
		return nil
	}
	for _, q := range d.Qualifiers() {
		for _, text := range q.Strings() {
			name, value, _ := strings.Cut(text, "=")
			said := false
			switch policy.QualifierName(name) {
			case policy.QualifierTimeLimit:
				said = q.TimeLimit.Kind != policy.ForDays
			case policy.QualifierMaxLength:
				said = u == policy.PresentSnippet
			case policy.QualifierProhibitedModification:
				said = value == "translation"
			case policy.QualifierMustUseResource, policy.QualifierMustIncludeResource,
				policy.QualifierProhibitedContext, policy.QualifierRequiredContext:
			}
			if !said && !slices.Contains(lost, text) {
				lost = append(lost, text)
			}
		}
	}
	return lost
}
