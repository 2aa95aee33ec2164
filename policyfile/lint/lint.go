// SPDX-License-Identifier: Apache-2.0

// Package lint finds probable mistakes in a policy: effects that the author does not expect or would regret.
package lint

import (
	"slices"
	"time"

	"github.com/robotspolicy/caddy-robots-policy/channels"
	"github.com/robotspolicy/caddy-robots-policy/crawlers"
	"github.com/robotspolicy/caddy-robots-policy/effect"
	"github.com/robotspolicy/caddy-robots-policy/pathpattern"
	"github.com/robotspolicy/caddy-robots-policy/policy"
)

// Input is a policy with places in its file that the policy's Spec does not contain.
type Input struct {
	Policy      *policy.Policy
	Effect      *effect.Engine    // the effects of Policy
	Catalog     *crawlers.Catalog // the catalog, with the crawlers of the policy file
	Sources     []Source          // places within each rule, by index in Spec.Rules
	Enforcement policy.Pos
	Now         time.Time
}

// Source holds the places of the parts of one rule.
type Source struct {
	Audiences []policy.Pos // places of the audiences in Rule.For
	Enforce   policy.Pos
}

type Code struct {
	Name     string
	Severity policy.Severity
	Title    string
}

// Codes lists the kinds of problems. The most severe ones come first.
func Codes() []Code { return slices.Clone(codes) }

// checks holds all checks. They are independent. Each check starts with the full budget, so that an expensive check
// does not prevent others from finding problems.
var checks = []func(*linter){
	(*linter).emptyRules, (*linter).enforcement, (*linter).crawlDelay, (*linter).searchLimits, (*linter).timeLimits, (*linter).purposes, (*linter).regexps, (*linter).enforcedEnds,
	(*linter).notPublished, (*linter).noElements, (*linter).lostQualifiers, (*linter).exemptions,
	(*linter).hiddenNoindex, (*linter).guards, (*linter).leftOpen, (*linter).mayCrawl,
	(*linter).ties, (*linter).redundant, (*linter).onlyDisallowed,
	(*linter).stillClosed, (*linter).droppedQualifiers, (*linter).opensNothing,
}

// Check runs every check and returns the problems in no particular order. The problems do not have a severity, because
// it depends only on the code, see Codes.
func Check(in Input) []policy.Problem {
	l := newLinter(in)
	for _, c := range checks {
		l.reported, l.budget = map[policy.Pos]bool{}, budget
		c(l)
	}
	return l.problems
}

// linter holds the data of all checks. Most checks ask for the decision about an example path.
type linter struct {
	Input
	rules        []policy.Rule
	reach        []reach // by rule
	groups       map[policy.Audience][]policy.CrawlerID
	indexes      map[indexKey]*statementIndex
	problems     []policy.Problem
	searching    map[policy.CrawlerID]bool
	allSearchers []policy.CrawlerID
	through      map[policy.CrawlerID][]policy.CrawlerID // by crawler: search engines that its rules also reach
	reported     map[policy.Pos]bool                     // places that the current check has reported
	budget       int
	cost         int // the cost of a decision in steps of the budget
}

// budget limits the work of each check. If it is spent, the check does not compare further rules. Comparing two
// statements costs 1. Asking the policy for a decision costs decisionCost. If the policy has patterns with wildcards,
// it costs 1 more for each wildPerCost of these patterns.
const (
	budget       = 400_000
	decisionCost = 8
	wildPerCost  = 16
)

func newLinter(in Input) *linter {
	l := &linter{
		Input: in, rules: in.Policy.Spec().Rules,
		groups:  map[policy.Audience][]policy.CrawlerID{},
		indexes: map[indexKey]*statementIndex{},
	}
	l.reach = make([]reach, len(l.rules))
	for i := range l.rules {
		l.reach[i] = reachOf(&l.rules[i])
	}
	wild := 0
	l.each(func(_ int, s *policy.Statement) {
		if s.Pattern.Wild() {
			wild++
		}
	})
	l.cost = decisionCost + wild/wildPerCost
	return l
}

// report adds a problem, unless the current check has already reported one at the same place.
func (l *linter) report(code string, at policy.Pos, message string) {
	if l.reported[at] {
		return
	}
	l.reported[at] = true
	l.problems = append(l.problems, policy.Problem{Code: code, Pos: at, Message: message})
}

func (l *linter) spend(n int) bool {
	l.budget -= n
	return l.budget > 0
}

func (l *linter) each(visit func(rule int, s *policy.Statement)) {
	for i := range l.rules {
		for j := range l.rules[i].Statements {
			visit(i, &l.rules[i].Statements[j])
		}
	}
}

// decide returns the decision about a verified crawler. All rules for the crawler apply to it, including rules that
// demand an identity. So the decision agrees with robots.txt, which has the rules for all identities.
func (l *linter) decide(id policy.CrawlerID, host, path string, u policy.Usage) policy.Decision {
	l.budget -= l.cost
	return l.Policy.Decide(policy.Query{Crawler: id, Identity: policy.Verified, Host: host, Path: path, Usage: u, Now: l.Now})
}

var codes = []Code{
	{"blocks-search", policy.Error, "Search engines or link previews are blocked"},
	{safetyLift, policy.Error, "The site's own restrictions are lifted for all pages"},

	{"disallows-search", policy.Warning, "Search engines or link previews are disallowed"},
	{"site-not-indexed", policy.Warning, "The whole site stays out of search results"},
	{"includes-www", policy.Warning, "A wildcard host that includes www"},
	{"only-disallowed", policy.Warning, "The rule for everyone-else also applies to this crawler"},
	{"changes-nothing", policy.Warning, "A line without effect"},
	{"tie", policy.Warning, "Two lines that contradict each other"},
	{"hidden-noindex", policy.Warning, "A noindex that crawlers cannot see"},
	{"training-may-crawl", policy.Hint, "Training is disallowed, but training crawlers may crawl"},
	{"no-meta-tag", policy.Hint, "Pages have no meta tag for this crawler"},
	{"ai-may-crawl", policy.Hint, "AI answers are disallowed, but crawlers for AI may crawl"},
	{"dual-use-crawler", policy.Warning, "Crawlers that also serve AI remain allowed"},
	{"exemption-not-published", policy.Warning, "An exception that headers and meta tags cannot express"},
	{"qualifier-dropped", policy.Warning, "A qualifier that only " + channels.Only().Name + " can express"},
	{"not-published", policy.Warning, "A rule that no channel publishes"},
	{"empty-rule", policy.Warning, "A rule without content"},
	{"control-token-enforced", policy.Warning, "A control token cannot be blocked"},
	{"nothing-to-enforce", policy.Warning, "The key enforce or enforcement has no effect"},
	{"crawl-delay-ignored", policy.Warning, "A crawler that ignores crawl-delay"},
	{effect.SafetyLimits, policy.Warning, "A limit that does not apply to search engines"},
	{"time-limit-passed", policy.Warning, "An allow entry that has ended"},
	{"unknown-purpose", policy.Warning, "A purpose that no crawler declares"},
	{"looks-like-regexp", policy.Warning, "A path that looks like a regular expression"},

	{"still-disallowed", policy.Hint, "An allow entry that leaves something disallowed"},
	{"partly-disallowed", policy.Hint, "An allow entry that overlaps a disallow entry"},
	{"neither-narrower", policy.Hint, "Two rules for the same crawler, neither of them more specific"},
	{"disallowed-on-host", policy.Hint, "An allow entry that has no effect on a host"},
	{"enforced-end", policy.Hint, "A blocked file that some servers also serve at other addresses"},
	{"purpose-of-known-crawlers", policy.Hint, "A rule for a purpose that few crawlers declare"},
	{"limit-dropped", policy.Hint, "A condition that does not apply to a narrower allow entry"},
	{"allows-nothing", policy.Hint, "An allow entry for paths that are allowed anyway"},
}

var anyPage = pathpattern.All.Example()

type placed struct {
	rule int
	s    *policy.Statement
}

type indexKey struct {
	usage policy.Usage
	allow bool
}

type statementIndex = pathpattern.Index[[]placed]

func (l *linter) index(usage policy.Usage, allow bool) *statementIndex {
	k := indexKey{usage, allow}
	x, ok := l.indexes[k]
	if ok {
		return x
	}
	var entries []pathpattern.Entry[[]placed]
	l.each(func(rule int, s *policy.Statement) {
		if s.Usage == usage && s.Allow == allow {
			entries = append(entries, pathpattern.Entry[[]placed]{Pattern: s.Pattern, Value: []placed{{rule, s}}})
		}
	})
	if len(entries) > 0 {
		x = pathpattern.NewIndex(entries, func(a, b []placed) []placed { return append(a, b...) })
	}
	l.indexes[k] = x
	return x
}

// overlapping lists the statements about a usage that have a pattern with some paths of p. If allow is true, it lists
// allow entries, otherwise disallow entries. The list is incomplete if the budget is spent.
func (l *linter) overlapping(p pathpattern.Pattern, usage policy.Usage, allow bool) []placed {
	return l.find(p, usage, allow, (*statementIndex).Overlapping)
}

// covering lists the statements about a usage that have a pattern with all paths of p. If allow is true, it lists allow
// entries, otherwise disallow entries. The list is incomplete if the budget is spent.
func (l *linter) covering(p pathpattern.Pattern, usage policy.Usage, allow bool) []placed {
	return l.find(p, usage, allow, (*statementIndex).Covering)
}

func (l *linter) find(p pathpattern.Pattern, usage policy.Usage, allow bool, look func(*statementIndex, pathpattern.Pattern, func([]placed))) (found []placed) {
	x := l.index(usage, allow)
	if x == nil || !l.spend(l.cost) {
		return nil
	}
	look(x, p, func(some []placed) {
		if l.spend(len(some)) {
			found = append(found, some...)
		}
	})
	return found
}

// pos returns the place of a statement's qualifiers, which are either in the rule or in the definition of the usage.
func (l *linter) pos(s *policy.Statement) policy.Pos {
	usages := l.Policy.Spec().Usages
	if i := slices.IndexFunc(usages, func(u policy.LocalUsage) bool { return u.Name == s.Local }); i >= 0 {
		return usages[i].Pos
	}
	return s.Pos
}

func disallowsCrawl(r *policy.Rule) bool {
	return slices.ContainsFunc(r.Statements, func(s policy.Statement) bool { return s.Usage == policy.Crawl && !s.Allow })
}

func sameFilters(a, b *policy.Rule) bool {
	return a.Identity == b.Identity && slices.Equal(a.UsagePurposes, b.UsagePurposes)
}
