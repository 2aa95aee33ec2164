// SPDX-License-Identifier: Apache-2.0

// Package policytest has helpers for the tests of several packages: random policies, and an evaluator. The evaluator
// is a plain and slow implementation of the precedence of rules.
package policytest

import (
	"cmp"
	"slices"
	"strings"
	"time"

	"github.com/robotspolicy/caddy-robots-policy/internal/testkit/crawlertest"
	"github.com/robotspolicy/caddy-robots-policy/policy"
)

// Question is like policy.Query, but names the crawler by its token.
type Question struct {
	Token    string // the crawler's token; "" for an unlisted client
	Identity policy.Identity
	Purposes []string
	Host     string
	Path     string
	Usage    policy.Usage
	Now      time.Time
}

// Answer is a verdict with its reasons.
type Answer struct {
	Verdict   policy.Verdict
	Statement *policy.Statement // the narrowest prohibition that is not overridden, or else the narrowest permission
	Mode      policy.Mode       // the strictest mode of the prohibitions that are not overridden
	Limits    policy.Limits
}

// matching is a statement that matches a question. Its numbers host, usage and closeness tell how narrowly the
// statement matches: a smaller number is narrower.
type matching struct {
	rule      *policy.Rule
	statement *policy.Statement
	order     int // the statement's place in the file
	audience  policy.Audience
	closeness int // byToken and so on
	host      int
	usage     int
	permits   bool // an allow whose date has not passed
}

// Values of matching.closeness: how closely an audience names a crawler.
const (
	byToken = iota
	byFamily
	byGroup
	byAI
	byEveryone
)

// Decide answers a question. The verdict is Disallowed if a matching prohibition is not overridden by any matching
// permission. Otherwise, it is Allowed if a permission matches, and Unstated if none does.
func Decide(spec *policy.Spec, q Question) Answer {
	if q.Usage == policy.Crawl && crawlertest.NormalPath(q.Path) == "/robots.txt" {
		return Answer{Verdict: policy.Allowed}
	}
	usages := []policy.Usage{q.Usage}
	if strings.HasPrefix(q.Usage.String(), "present-") {
		usages = append(usages, policy.Present)
	}
	all := matches(spec, q, usages)
	if len(all) == 0 && q.Usage != policy.Crawl {
		all = matches(spec, q, []policy.Usage{policy.Other})
	}
	return answer(spec, all)
}

func answer(spec *policy.Spec, all []matching) Answer {
	var standing, permissions []matching
	for _, d := range all {
		if d.permits {
			permissions = append(permissions, d)
			continue
		}
		if !slices.ContainsFunc(all, func(a matching) bool { return a.permits && opens(a, d) }) {
			standing = append(standing, d)
		}
	}
	if len(standing) > 0 {
		a := Answer{Verdict: policy.Disallowed, Statement: narrowest(standing)}
		for _, d := range standing {
			a.Mode = max(a.Mode, cmp.Or(d.rule.Enforce, spec.Enforcement.Mode, policy.ModeOff))
		}
		return a
	}
	if len(permissions) == 0 {
		return Answer{}
	}
	a := Answer{Verdict: policy.Allowed, Statement: narrowest(permissions)}
	for _, p := range permissions {
		if p.statement.Qualifiers != nil && !slices.Contains(a.Limits, p.statement.Qualifiers) &&
			!slices.ContainsFunc(permissions, func(b matching) bool { return setsAside(b, p) }) {
			a.Limits = append(a.Limits, p.statement.Qualifiers)
		}
	}
	return a
}

// opens reports whether permission a overrides d, which is a prohibition or a permission whose date has passed.
func opens(a, d matching) bool {
	if d.statement.Allow {
		return setsAside(a, d)
	}
	return overrides(a, d)
}

// overrides reports whether permission a overrides prohibition d. Usually, a must be at least as narrow as d in
// audience, host, usage and path. For some pairs of audiences, a overrides d on every path, or never does.
func overrides(a, d matching) bool {
	if a.host > d.host || a.usage > d.usage {
		return false
	}
	if d.audience.Kind == policy.ForEveryoneElse && a.closeness <= byFamily {
		return true
	}
	if d.closeness == byFamily && a.closeness == byToken {
		return true
	}
	if a.audience.Kind == policy.ForEveryoneElse && d.audience.Kind == policy.ForEveryone {
		return false
	}
	return closeEnough(a, d) && pathNarrowEnough(a, d)
}

// missesAI reports whether d is for all AI crawlers, and a is for a group that also has other crawlers. In this case, a
// does not override d.
func missesAI(a, d matching) bool {
	return d.closeness == byAI && a.closeness == byGroup &&
		!slices.Contains([]string{"category:ai-training", "category:ai-input", "category:ai-assistant", "category:ai-agent"}, strings.ToLower(a.audience.String()))
}

// setsAside reports whether permission a is at least as narrow as permission b in audience, host, usage and path, and
// narrower in at least one of them.
func setsAside(a, b matching) bool {
	return a.host <= b.host && a.usage <= b.usage && closeEnough(a, b) && pathNarrowEnough(a, b) &&
		(a.host < b.host || a.usage < b.usage || a.closeness < b.closeness || length(a) > length(b))
}

func closeEnough(a, d matching) bool {
	return a.closeness < d.closeness && !missesAI(a, d) || a.closeness == d.closeness && sameAudience(a, d)
}

func sameAudience(a, d matching) bool {
	return a.closeness == d.closeness && (a.closeness != byGroup || a.audience.Kind == d.audience.Kind && strings.EqualFold(a.audience.Name, d.audience.Name))
}

func pathNarrowEnough(a, d matching) bool {
	if sameAudience(a, d) && a.host == d.host && a.usage == d.usage {
		return length(a) >= length(d)
	}
	if outer := slashed(d); !strings.ContainsAny(outer, "*$") {
		return strings.HasPrefix(upToSpecial(slashed(a)), outer)
	}
	return contained(a.statement.Pattern.String(), d.statement.Pattern.String())
}

func upToSpecial(pattern string) string {
	if i := strings.IndexAny(pattern, "*$"); i >= 0 {
		return pattern[:i]
	}
	return pattern
}

// slashed returns the pattern of a statement. If the pattern begins with "*", slashed puts a "/" before it.
func slashed(m matching) string {
	text := m.statement.Pattern.String()
	if text[0] == '*' {
		text = "/" + text
	}
	return text
}

func length(m matching) int { return len(slashed(m)) }

// narrowest returns the narrowest statement, compared by audience, host, usage, path and line.
func narrowest(all []matching) *policy.Statement {
	return slices.MinFunc(all, func(a, b matching) int {
		return cmp.Or(a.closeness-b.closeness, a.host-b.host, a.usage-b.usage, length(b)-length(a), a.order-b.order)
	}).statement
}

// matches lists the statements that match a question, once for each audience
// and host of their rules.
func matches(spec *policy.Spec, q Question, usages []policy.Usage) (all []matching) {
	path := crawlertest.NormalPath(q.Path)
	order := 0
	for i := range spec.Rules {
		r := &spec.Rules[i]
		order += len(r.Statements)
		if !identityOK(r.Identity, q.Identity) || !purposeOK(r.UsagePurposes, q.Purposes) {
			continue
		}
		for _, audience := range r.For {
			close, ok := closeness(spec, audience, q)
			if !ok {
				continue
			}
			for _, host := range hostRanks(r.Hosts, q.Host) {
				for j := range r.Statements {
					s := &r.Statements[j]
					usage := slices.Index(usages, s.Usage)
					if usage < 0 || !matchesPath(s.Pattern.String(), path) {
						continue
					}
					all = append(all, matching{r, s, order + j - len(r.Statements), audience, close, host, usage, s.Allow && !passed(s, q.Now)})
				}
			}
		}
	}
	return all
}

// passed reports whether a permission has a date that has passed.
func passed(s *policy.Statement, now time.Time) bool {
	return s.Qualifiers != nil && s.Qualifiers.TimeLimit.Kind == policy.UntilDate && now.After(s.Qualifiers.TimeLimit.Last)
}

func identityOK(demand policy.Demand, client policy.Identity) bool {
	switch demand {
	case policy.DemandVerified:
		return client == policy.Verified
	case policy.DemandNotImpostor:
		return client != policy.Impostor
	case policy.DemandAny:
	}
	return true
}

func purposeOK(asked, named []string) bool {
	if len(asked) == 0 {
		return true
	}
	for _, p := range asked {
		for _, n := range named {
			if strings.EqualFold(p, n) {
				return true
			}
		}
	}
	return false
}

// closeness returns how closely an audience names the crawler of a question. The result is false if it does not name
// the crawler.
func closeness(spec *policy.Spec, a policy.Audience, q Question) (int, bool) {
	c := crawlerOf(spec, q.Token)
	switch a.Kind {
	case policy.ForToken:
		if strings.EqualFold(a.Name, q.Token) {
			return byToken, true
		}
		return byFamily, strings.EqualFold(a.Name, family(spec, c))
	case policy.ForCategory:
		return byGroup, c.Category != "" && strings.EqualFold(a.Name, c.Category)
	case policy.ForOperator:
		return byGroup, c.Operator != "" && strings.EqualFold(a.Name, c.Operator)
	case policy.ForPurpose:
		for _, p := range slices.Concat(c.Purposes, q.Purposes) {
			if strings.EqualFold(p, a.Name) {
				return byGroup, true
			}
		}
		return byGroup, false
	case policy.ForAI:
		return byAI, c.AI
	case policy.ForEveryone, policy.ForEveryoneElse:
	}
	return byEveryone, true
}

func crawlerOf(spec *policy.Spec, token string) policy.Crawler {
	for _, c := range spec.Crawlers {
		if strings.EqualFold(c.Token, token) {
			return c
		}
	}
	return policy.Crawler{}
}

// family returns the token of the first crawler in c.Follows that has the same operator as c. According to the
// operator, c obeys this crawler's group in robots.txt. It returns "" if there is no such crawler.
func family(spec *policy.Spec, c policy.Crawler) string {
	for _, token := range c.Follows {
		if head := crawlerOf(spec, token); head.Token != "" && strings.EqualFold(head.Operator, c.Operator) {
			return head.Token
		}
	}
	return ""
}

// hostRanks returns a number for each element of hosts that covers host. hosts are the hosts of a rule. A smaller
// number means a narrower element: an exact name has the smallest number, and a wildcard with a long suffix has a
// smaller number than a wildcard with a short suffix. A rule without hosts covers every host, and has the greatest
// number.
func hostRanks(hosts []policy.Host, host string) (ranks []int) {
	if len(hosts) == 0 {
		return []int{1000}
	}
	host = policy.NormalizeHost(host)
	for _, h := range hosts {
		suffix, wild := strings.CutPrefix(string(h), "*")
		switch {
		case !wild && string(h) == host:
			ranks = append(ranks, 0)
		case wild && strings.HasSuffix(host, suffix):
			ranks = append(ranks, 1000-len(suffix))
		}
	}
	return ranks
}
