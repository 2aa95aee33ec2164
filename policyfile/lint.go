// SPDX-License-Identifier: Apache-2.0

package policyfile

import (
	"slices"
	"strings"
	"time"

	"github.com/robotspolicy/caddy-robots-policy/crawlers"
	"github.com/robotspolicy/caddy-robots-policy/policy"
)

// linter looks for what the author of a policy would regret. Most of its checks
// ask Decide about a path of which nothing special is known.
type linter struct {
	p      *parser
	policy *policy.Policy
	rules  []policy.Rule
	now    time.Time
	// groups are the crawlers of the audiences that are neither everyone nor a
	// token, as far as they were asked for.
	groups map[policy.Audience][]policy.CrawlerID
	who    []reach             // of each rule
	told   map[policy.Pos]bool // by the check that runs
	tied   map[int]bool        // rules that ties were reported of
	budget int
	cost   int // of a decision
}

// lintBudget bounds what each check does on a very large policy: beyond it, pairs
// of rules are no longer compared. Looking at a pair counts for one. A decision
// counts for decisionCost, and more the more patterns with wildcards there are, as
// it may have to try them all.
const (
	lintBudget   = 4_000_000
	decisionCost = 20
	wildPerCost  = 4
)

// lint runs every check. Each starts with a budget of its own, so that one that
// runs out of it hides nothing of another.
func (p *parser) lint(compiled *policy.Policy, now time.Time) {
	l := &linter{p: p, policy: compiled, rules: p.spec.Rules, now: now, groups: map[policy.Audience][]policy.CrawlerID{}}
	for i := range l.rules {
		l.who = append(l.who, reachOf(&l.rules[i]))
	}
	wild := 0
	l.each(func(_ int, s *policy.Statement) {
		if s.Pattern.Wild() {
			wild++
		}
	})
	l.cost = decisionCost + wild/wildPerCost
	for _, check := range []func(){
		l.emptyRules, l.enforced, l.crawlDelay, l.timeLimits, l.notPublished, l.qualifiers,
		l.hiddenNoindex, l.searchShutOut, l.siteNotIndexed, l.exemptions, l.dualUse, l.trainingMayCrawl,
		l.hostOverridden, l.acapScopes, l.ties, l.neverDecides,
	} {
		l.told, l.budget = map[policy.Pos]bool{}, lintBudget
		check()
	}
}

// warn reports once for a place and check.
func (l *linter) warn(at policy.Pos, code, format string, args ...any) {
	if l.told[at] {
		return
	}
	l.told[at] = true
	l.p.report(at, code, "", format, args...)
}

func (l *linter) spend(n int) bool {
	l.budget -= n
	return l.budget > 0
}

// decide asks about a crawler that every rule speaks to, whatever identity the
// rule asks for, as a robots.txt does.
func (l *linter) decide(id policy.CrawlerID, host, path string, u policy.Usage) policy.Decision {
	l.budget -= l.cost
	return l.policy.Decide(policy.Query{Crawler: id, Identity: policy.Verified, Host: host, Path: path, Usage: u, Now: l.now})
}

// crawlersOf are the crawlers that an audience names. For everyone it is the one
// that nothing else names.
func (l *linter) crawlersOf(a policy.Audience) []policy.CrawlerID {
	switch a.Kind {
	case policy.ForEveryone:
		return []policy.CrawlerID{0}
	case policy.ForToken:
		return []policy.CrawlerID{l.policy.Crawler(a.Name)}
	}
	a.Name = strings.ToLower(a.Name)
	ids, ok := l.groups[a]
	if !ok {
		for id, c := range l.policy.Crawlers {
			if inGroup(a, c) {
				ids = append(ids, id)
			}
		}
		l.groups[a] = ids
	}
	return ids
}

func inGroup(a policy.Audience, c policy.Crawler) bool {
	switch a.Kind {
	case policy.ForCategory:
		return strings.EqualFold(c.Kind, a.Name)
	case policy.ForOperator:
		return strings.EqualFold(c.Operator, a.Name)
	}
	return containsFold(c.Purposes, a.Name)
}

// reach is what checks ask of a rule again and again.
type reach struct {
	everyone, group, training bool
	hosts                     []string // some that it is for, of which nothing else is known
}

// maxHosts is how many of a rule's hosts most checks try.
const maxHosts = 16

func reachOf(r *policy.Rule) (w reach) {
	for _, a := range r.For {
		w.everyone = w.everyone || a.Kind == policy.ForEveryone
		w.group = w.group || a.Tier() == policy.TierGroup
		w.training = w.training || a == training
	}
	if len(r.Hosts) == 0 {
		w.hosts = []string{""}
	}
	for _, h := range r.Hosts[:min(len(r.Hosts), maxHosts)] {
		w.hosts = append(w.hosts, hostFor(h))
	}
	return w
}

// training is the audience of the rules against AI training.
var training = policy.Audience{Kind: policy.ForCategory, Name: string(crawlers.KindAITraining)}

// someCrawlers are a few of those that a rule is for: enough to see how it meets
// other rules.
func (l *linter) someCrawlers(r *policy.Rule) (ids []policy.CrawlerID) {
	const audiences, each = 16, 3
	for _, a := range r.For[:min(len(r.For), audiences)] {
		of := l.crawlersOf(a)
		ids = append(ids, of[:min(len(of), each)]...)
	}
	return ids
}

func hostFor(h policy.Host) string {
	if h.Wildcard() {
		return "a-name-no-rule-has" + string(h[1:])
	}
	return string(h)
}

// forText names who a rule is for.
func forText(r *policy.Rule) string {
	const shown = 3
	var names []string
	for _, a := range r.For[:min(len(r.For), shown+1)] {
		names = append(names, a.String())
	}
	return some(names, shown)
}

// wellKnown are the crawlers that messages name first, as readers know them.
var wellKnown = []string{"Googlebot", "Bingbot", "DuckDuckBot", "Applebot", "facebookexternalhit", "GPTBot", "ClaudeBot", "CCBot", "Amazonbot"}

// tokens are the names of crawlers, the best known first.
func (l *linter) tokens(ids []policy.CrawlerID) []string {
	var first, rest []string
	for _, id := range ids {
		token := l.policy.CrawlerInfo(id).Token
		if token == "" || slices.Contains(first, token) || slices.Contains(rest, token) {
			continue
		}
		if slices.Contains(wellKnown, token) {
			first = append(first, token)
		} else {
			rest = append(rest, token)
		}
	}
	slices.SortFunc(first, func(a, b string) int { return slices.Index(wellKnown, a) - slices.Index(wellKnown, b) })
	return append(first, rest...)
}

// each calls visit for every statement.
func (l *linter) each(visit func(rule int, s *policy.Statement)) {
	for i := range l.rules {
		for j := range l.rules[i].Statements {
			visit(i, &l.rules[i].Statements[j])
		}
	}
}
