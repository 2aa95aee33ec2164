// SPDX-License-Identifier: Apache-2.0

package policyfile

import (
	"slices"
	"strings"

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
	return len(r.Statements)+len(r.AppDirectives)+len(r.EngineRules) == 0 && r.CrawlDelay == 0 && r.PermissionsReference == ""
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
		for j, a := range r.For {
			if c, ok := l.p.catalogue.Lookup(a.Name); ok && a.Kind == policy.ForToken && c.RobotsOnly {
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

// ties finds statements of equal rank with different verdicts in different rules:
// those of the same pattern, and those whose wildcards can match the same path.
func (l *linter) ties() {
	l.tied = map[int]bool{}
	if len(l.rules) < 2 {
		return
	}
	type rank struct {
		usage  policy.Usage
		length int
	}
	ranks := map[rank][2][]placed{}
	l.each(func(rule int, s *policy.Statement) {
		k := rank{s.Usage, s.Pattern.Len()}
		lists := ranks[k]
		v := 0
		if s.Allow {
			v = 1
		}
		lists[v] = append(lists[v], placed{rule, s})
		ranks[k] = lists
	})
	var found [][2]placed
	for _, lists := range ranks {
		byPattern := map[string][]placed{}
		var wild []placed
		for _, d := range lists[0] {
			byPattern[d.s.Pattern.String()] = append(byPattern[d.s.Pattern.String()], d)
			if d.s.Pattern.Wild() {
				wild = append(wild, d)
			}
		}
		for _, a := range lists[1] {
			rivals := byPattern[a.s.Pattern.String()]
			if a.s.Pattern.Wild() {
				rivals = lists[0]
			} else {
				rivals = slices.Concat(rivals, wild)
			}
			for _, d := range rivals {
				if a.rule != d.rule && l.spend(1+len(a.s.Pattern.String())/8) {
					found = append(found, [2]placed{a, d})
				}
			}
		}
	}
	slices.SortFunc(found, func(x, y [2]placed) int {
		return slices.Compare([]int{x[0].rule, x[0].s.Pos.Line, x[1].rule, x[1].s.Pos.Line}, []int{y[0].rule, y[0].s.Pos.Line, y[1].rule, y[1].s.Pos.Line})
	})
	for _, pair := range found {
		if l.spend(decisionCost) {
			l.tie(pair[0], pair[1])
		}
	}
}

// tie reports two statements if some crawler and host meet both with equal rank,
// and one of the two decides.
func (l *linter) tie(a, d placed) {
	ra, rd := &l.rules[a.rule], &l.rules[d.rule]
	same := a.s.Pattern == d.s.Pattern
	host, ok := commonHost(ra, rd)
	if !ok || ra.Identity != rd.Identity || !slices.Equal(ra.UsagePurposes, rd.UsagePurposes) ||
		!same && !overlap(a.s.Pattern.String(), d.s.Pattern.String()) {
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
	later, first := a, d
	if d.s.Pos.Line > a.s.Pos.Line {
		later, first = d, a
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
			if x.Tier() != y.Tier() || !l.spend(1) {
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
							if tries > maxShadowTries || !l.spend(decisionCost) {
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
