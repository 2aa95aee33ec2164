// SPDX-License-Identifier: Apache-2.0

package policyfile

import (
	"cmp"
	"maps"
	"slices"
	"strings"

	"github.com/robotspolicy/caddy-robots-policy/crawlers"
	"github.com/robotspolicy/caddy-robots-policy/pathpattern"
	"github.com/robotspolicy/caddy-robots-policy/policy"
)

// emptyRules finds rules that say nothing.
func (l *linter) emptyRules() {
	for i := range l.rules {
		if r := &l.rules[i]; saysNothing(r) {
			l.warn(r.Pos, "empty-rule", "this rule says nothing about %s; write allow or disallow with paths, or delete it", forText(r))
		}
	}
}

func saysNothing(r *policy.Rule) bool {
	return len(r.Statements)+len(r.AppDirectives)+len(r.EngineRules) == 0 && r.CrawlDelay == 0 && r.PermissionsReference == "" && len(r.Requests) == 0
}

// enforced finds rules that ask for enforcement where nothing can be enforced.
func (l *linter) enforced() {
	for i := range l.rules {
		r, source := &l.rules[i], &l.p.sources[i]
		if r.Enforce < policy.ModeLog || saysNothing(r) {
			continue
		}
		if !slices.ContainsFunc(r.Statements, func(s policy.Statement) bool { return s.Usage == policy.Crawl && !s.Allow }) {
			l.warn(source.enforce, "nothing-to-enforce", "only crawl can be refused, and this rule does not disallow it, so enforce does nothing; add what crawl is disallowed for, or delete enforce")
			continue
		}
		if len(r.UsagePurposes) > 0 && !slices.ContainsFunc(r.UsagePurposes, func(u string) bool { return !strings.Contains(u, "*") }) {
			l.warn(source.enforce, "nothing-to-enforce", `a purpose with "*" is for readers of robots.txt alone: a request names its purpose as a plain word, so enforce does nothing; name the purposes one by one, or delete enforce`)
		}
		for j, a := range r.For {
			if c, ok := l.p.catalogue.Lookup(a.Name); ok && a.Kind == policy.ForToken && c.RobotsOnly && !crawlers.NamesBrowser(a.Name) {
				l.warn(source.audiences[j], "control-token-enforced", "%s stands in robots.txt only: no visitor carries that name, so there is nobody to refuse; the rule works in robots.txt, and enforce does nothing for it", c.Token)
			}
		}
	}
}

// ignoresDelay are the operators that say they do not read Crawl-delay.
var ignoresDelay = []string{"Google", "Yandex", "Apple"}

func (l *linter) crawlDelay() {
	for i := range l.rules {
		r := &l.rules[i]
		if r.CrawlDelay == 0 {
			continue
		}
		var names []string
		for _, a := range r.For {
			c, ok := l.p.catalogue.Lookup(a.Name)
			switch {
			case a.Kind == policy.ForToken && ok && slices.Contains(ignoresDelay, c.Operator):
				names = append(names, c.Token)
			case a.Kind == policy.ForOperator && containsFold(ignoresDelay, a.Name):
				names = append(names, a.Name)
			}
		}
		if len(names) > 0 {
			l.warn(r.CrawlDelayPos, "crawl-delay-ignored", "%s ignores crawl-delay; slow it down in the operator's own tools for website owners, or answer it with status 429 or 503 for a while", some(names, 3))
		}
	}
}

// place is where a statement's qualifiers are written: in the rule, or where the
// usage is defined.
func (l *linter) place(s *policy.Statement) policy.Pos {
	if u := l.p.usages[strings.ToLower(s.Local)]; u != nil {
		return u.pos
	}
	return s.Pos
}

// timeLimits finds permissions that have ended.
func (l *linter) timeLimits() {
	seen := map[*policy.Qualifiers]bool{nil: true}
	l.each(func(_ int, s *policy.Statement) {
		q := s.Qualifiers
		if seen[q] { // one entry of the file, for several paths
			return
		}
		seen[q] = true
		if q.TimeLimit.Passed(l.now) {
			l.warn(l.place(s), "time-limit-passed", "the permission ended on %s, and since then %s is disallowed; choose a later date, or delete it", q.TimeLimit.Last.Format("2 January 2006"), s.Usage)
		}
	})
}

// placed is a statement with the place of its rule in linter.rules.
type placed struct {
	rule int
	s    *policy.Statement
}

// rank is what statements must have in common to be of equal rank, beside who and
// where they are for.
type rank struct {
	usage  policy.Usage
	length int
}

// ties finds statements of equal rank with different verdicts in different rules:
// those of the same pattern, and those whose wildcards can match the same path.
func (l *linter) ties() {
	l.tied = map[int]bool{}
	if len(l.rules) < 2 {
		return
	}
	disallows, allows := map[rank][]placed{}, map[rank][]placed{}
	l.each(func(rule int, s *policy.Statement) {
		k := rank{s.Usage, s.Pattern.Len()}
		if s.Allow {
			allows[k] = append(allows[k], placed{rule, s})
		} else {
			disallows[k] = append(disallows[k], placed{rule, s})
		}
	})
	ranks := slices.SortedFunc(maps.Keys(allows), func(a, b rank) int { return cmp.Or(cmp.Compare(a.usage, b.usage), a.length-b.length) })
	for _, k := range ranks {
		if !l.tiesOfRank(allows[k], disallows[k]) {
			return
		}
	}
}

// tiesOfRank reports whether there is work left to spend.
func (l *linter) tiesOfRank(allows, disallows []placed) bool {
	byPattern := map[pathpattern.Pattern][]placed{}
	var wild []placed
	for _, d := range disallows {
		byPattern[d.s.Pattern] = append(byPattern[d.s.Pattern], d)
		if d.s.Pattern.Wild() {
			wild = append(wild, d)
		}
	}
	for _, a := range allows {
		others := wild
		if a.s.Pattern.Wild() {
			others = disallows
		}
		for _, rivals := range [][]placed{byPattern[a.s.Pattern], others} {
			for _, d := range rivals {
				if !l.spend(1) {
					return false
				}
				l.tie(a, d)
			}
		}
	}
	return true
}

// tie reports two statements if some crawler and host meet both with equal rank,
// and one of the two decides.
func (l *linter) tie(a, d placed) {
	later, first := a, d
	if d.s.Pos.Line > a.s.Pos.Line {
		later, first = d, a
	}
	if a.rule == d.rule || l.told[later.s.Pos] {
		return
	}
	ra, rd := &l.rules[a.rule], &l.rules[d.rule]
	same := a.s.Pattern == d.s.Pattern
	p, q := a.s.Pattern.String(), d.s.Pattern.String()
	if ra.Identity != rd.Identity || !slices.Equal(ra.UsagePurposes, rd.UsagePurposes) ||
		!same && (!l.spend(len(p)*len(q)/8) || !overlap(p, q)) || !l.spend(len(ra.Hosts)*len(rd.Hosts)) {
		return
	}
	host, ok := commonHost(ra, rd)
	if !ok {
		return
	}
	id, tier, ok := l.commonCrawler(ra, rd)
	if !ok || same && l.decide(id, host, sample(a.s.Pattern), a.s.Usage).Rule != nil && !l.oneOf(id, host, a, d) {
		return
	}
	who := "everyone"
	if token := l.policy.CrawlerInfo(id).Token; token != "" {
		who = token
	}
	wins := "allowing wins"
	if tier == policy.TierGroup {
		wins = "disallowing wins"
	}
	l.tied[a.rule], l.tied[d.rule] = true, true
	l.warn(later.s.Pos, "tie", "for %s this and line %d say the opposite about %s of %s with equal weight, so %s; delete one of the two, or make the path of the one that is meant longer",
		who, first.s.Pos.Line, a.s.Usage, quote(later.s.Pattern.String()), wins)
}

func (l *linter) oneOf(id policy.CrawlerID, host string, a, d placed) bool {
	by := l.decide(id, host, sample(a.s.Pattern), a.s.Usage).Statement
	return by == a.s || by == d.s
}

// commonHost is a host that two rules name with equal rank.
func commonHost(a, b *policy.Rule) (string, bool) {
	if len(a.Hosts) == 0 || len(b.Hosts) == 0 {
		return "", len(a.Hosts) == len(b.Hosts)
	}
	for _, h := range a.Hosts {
		if slices.Contains(b.Hosts, h) {
			return hostFor(h), true
		}
		for _, g := range b.Hosts {
			if h.Wildcard() && g.Wildcard() {
				if strings.HasSuffix(string(h), string(g[1:])) {
					return hostFor(h), true
				}
				if strings.HasSuffix(string(g), string(h[1:])) {
					return hostFor(g), true
				}
			}
		}
	}
	return "", false
}

// commonCrawler is a crawler that two rules name with equal rank.
func (l *linter) commonCrawler(a, b *policy.Rule) (policy.CrawlerID, policy.Tier, bool) {
	for _, x := range a.For {
		for _, y := range b.For {
			if !l.spend(1) {
				return 0, 0, false
			}
			if x.Tier() != y.Tier() {
				continue
			}
			if x.Tier() != policy.TierGroup {
				if strings.EqualFold(x.Name, y.Name) {
					return l.crawlersOf(x)[0], x.Tier(), true
				}
				continue
			}
			others := l.crawlersOf(y)
			shared := slices.DeleteFunc(slices.Clone(l.crawlersOf(x)), func(id policy.CrawlerID) bool { return !slices.Contains(others, id) })
			l.budget -= len(others)
			if names := l.tokens(shared); len(names) > 0 {
				return l.policy.Crawler(names[0]), policy.TierGroup, true
			}
		}
	}
	return 0, 0, false
}

// neverDecides finds rules whose every statement is decided by another rule.
func (l *linter) neverDecides() {
	for i := range l.rules {
		r := &l.rules[i]
		if l.tied[i] || len(r.Statements) == 0 || len(r.AppDirectives)+len(r.EngineRules) > 0 || r.CrawlDelay > 0 {
			continue
		}
		if by, never := l.shadowed(i); never {
			l.warn(r.Pos, "never-decides", "this rule never decides anything, as the rule in line %d speaks of all of it first; delete one of the two, or make its paths longer", by.Pos.Line)
		}
	}
}

// maxShadowTries bounds the questions about one rule.
const maxShadowTries = 2000

// shadowed reports whether another rule answers whatever the rule speaks of, and
// which one does. It asks as those clients to whom the fewest other rules speak.
func (l *linter) shadowed(rule int) (by *policy.Rule, never bool) {
	r := &l.rules[rule]
	if len(r.Hosts) > maxHosts {
		return nil, false
	}
	tries := 0
	for j := range r.Statements {
		s := &r.Statements[j]
		if s.Usage == policy.Other {
			return nil, false
		}
		q := policy.Query{Identity: leastIdentity(r.Identity), Path: sample(s.Pattern), Now: l.now}
		for _, a := range r.For {
			for _, q.Purposes = range askedPurposes(r, a) {
				for _, q.Crawler = range l.whoIs(a) {
					for _, q.Host = range l.who[rule].hosts {
						for _, q.Usage = range asUsages(s.Usage) {
							tries++
							if tries > maxShadowTries || !l.spend(l.cost) {
								return nil, false
							}
							by = l.policy.Decide(q).Rule
							if by == r || by == nil {
								return nil, false
							}
						}
					}
				}
			}
		}
	}
	return by, by != nil
}

// askedPurposes are the purposes of queries to which a rule speaks as one for an
// audience: one at a time, where it names some.
func askedPurposes(r *policy.Rule, a policy.Audience) (all [][]string) {
	var always []string
	if a.Kind == policy.ForPurpose {
		always = []string{strings.ToLower(a.Name)}
	}
	for _, pattern := range r.UsagePurposes {
		one := strings.ToLower(strings.ReplaceAll(strings.TrimSuffix(pattern, "$"), "*", "x"))
		all = append(all, append(slices.Clone(always), one))
	}
	if all == nil {
		all = [][]string{always}
	}
	return all
}

// whoIs is crawlersOf with somebody for a purpose that no crawler is known for.
func (l *linter) whoIs(a policy.Audience) []policy.CrawlerID {
	if a.Kind == policy.ForPurpose {
		return []policy.CrawlerID{0}
	}
	return l.crawlersOf(a)
}

// leastIdentity is the identity to which a rule with a demand speaks and the
// fewest others do.
func leastIdentity(demand policy.Identity) policy.Identity {
	switch demand {
	case policy.Verified:
		return policy.Verified
	case policy.NotImpostor:
		return policy.Unknown
	}
	return policy.Impostor
}

// asUsages are the usages that a statement about u answers for.
func asUsages(u policy.Usage) []policy.Usage {
	usages := []policy.Usage{u}
	if u == policy.Present {
		for _, v := range policy.Usages() {
			if v.IsPresentation() {
				usages = append(usages, v)
			}
		}
	}
	return usages
}
