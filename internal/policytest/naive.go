// SPDX-License-Identifier: Apache-2.0

// Package policytest holds what tests of several packages share: policies at
// random, and an evaluator that answers as slowly and plainly as the order of
// precedence can be written down.
package policytest

import (
	"regexp"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/robotspolicy/caddy-robots-policy/internal/crawlertest"
	"github.com/robotspolicy/caddy-robots-policy/policy"
)

// Question is a query by names.
type Question struct {
	Token    string // of the crawler; "" for one that nobody knows
	Identity policy.Identity
	Purposes []string
	Host     string
	Path     string
	Usage    policy.Usage
	Now      time.Time
}

// Answer is a verdict with the statement that gave it.
type Answer struct {
	Verdict   policy.Verdict
	Statement *policy.Statement
}

// candidate is a statement that speaks of a question, with its ranks: the
// smaller rank wins at the first difference.
type candidate struct {
	ranks [4]int
	rule  int
	s     *policy.Statement
}

// Decide answers from the rules alone: it lists every statement that speaks of
// the question, ranks them, and looks at the best.
func Decide(spec *policy.Spec, q Question) Answer {
	if q.Usage == policy.Crawl && crawlertest.NormalPath(q.Path) == "/robots.txt" {
		return Answer{Verdict: policy.Allowed}
	}
	usages := []policy.Usage{q.Usage}
	if strings.HasPrefix(q.Usage.String(), "present-") {
		usages = append(usages, policy.Present)
	}
	best := candidates(spec, q, usages)
	if len(best) == 0 && q.Usage != policy.Crawl {
		best = candidates(spec, q, []policy.Usage{policy.Other})
	}
	if len(best) == 0 {
		return Answer{}
	}
	s := pick(best)
	a := Answer{Verdict: policy.Disallowed, Statement: s}
	if s.Allow {
		a.Verdict = policy.Allowed
		if s.Qualifiers != nil && s.Qualifiers.TimeLimit.Kind == policy.UntilDate && q.Now.After(s.Qualifiers.TimeLimit.Last) {
			a.Verdict = policy.Disallowed
		}
	}
	return a
}

// pick applies the rule about ties.
func pick(best []candidate) *policy.Statement {
	var chosen *policy.Statement
	want := true
	if best[0].ranks[0] == 1 {
		for _, a := range best {
			for _, b := range best {
				if a.s.Allow && !b.s.Allow && a.rule != b.rule {
					want = false
				}
			}
		}
	}
	if !slices.ContainsFunc(best, func(c candidate) bool { return c.s.Allow == want }) {
		want = !want
	}
	for _, c := range best {
		if c.s.Allow == want && (chosen == nil || chosen.Qualifiers == nil && c.s.Qualifiers != nil) {
			chosen = c.s
		}
	}
	return chosen
}

func candidates(spec *policy.Spec, q Question, usages []policy.Usage) (best []candidate) {
	path := crawlertest.NormalPath(q.Path)
	for i := range spec.Rules {
		r := &spec.Rules[i]
		if !identityOK(r.Identity, q.Identity) || !purposeOK(r.UsagePurposes, q.Purposes) {
			continue
		}
		for _, a := range r.For {
			audience, ok := audienceRank(spec, a, q)
			if !ok {
				continue
			}
			for _, host := range hostRanks(r.Hosts, q.Host) {
				for j := range r.Statements {
					s := &r.Statements[j]
					usage := slices.Index(usages, s.Usage)
					if usage < 0 || !matches(s.Pattern.String(), path) {
						continue
					}
					c := candidate{[4]int{audience, host, usage, -len(s.Pattern.String())}, i, s}
					switch {
					case len(best) == 0 || slices.Compare(c.ranks[:], best[0].ranks[:]) < 0:
						best = []candidate{c}
					case c.ranks == best[0].ranks:
						best = append(best, c)
					}
				}
			}
		}
	}
	return best
}

func identityOK(demand, client policy.Identity) bool {
	switch demand {
	case policy.Verified:
		return client == policy.Verified
	case policy.NotImpostor:
		return client != policy.Impostor
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

func audienceRank(spec *policy.Spec, a policy.Audience, q Question) (int, bool) {
	i := slices.IndexFunc(spec.Crawlers, func(c policy.Crawler) bool { return strings.EqualFold(c.Token, q.Token) })
	var c policy.Crawler
	if i >= 0 {
		c = spec.Crawlers[i]
	}
	switch a.Kind {
	case policy.ForToken:
		return 0, strings.EqualFold(a.Name, q.Token)
	case policy.ForCategory:
		return 1, c.Kind != "" && strings.EqualFold(a.Name, c.Kind)
	case policy.ForOperator:
		return 1, c.Operator != "" && strings.EqualFold(a.Name, c.Operator)
	case policy.ForPurpose:
		for _, p := range slices.Concat(c.Purposes, q.Purposes) {
			if strings.EqualFold(p, a.Name) {
				return 1, true
			}
		}
		return 1, false
	}
	return 2, true
}

func hostRanks(hosts []policy.Host, host string) (ranks []int) {
	if len(hosts) == 0 {
		return []int{2}
	}
	host = policy.NormalizeHost(host)
	for _, h := range hosts {
		suffix, wild := strings.CutPrefix(string(h), "*")
		switch {
		case !wild && string(h) == host:
			ranks = append(ranks, 0)
		case wild && strings.HasSuffix(host, suffix):
			ranks = append(ranks, 1)
		}
	}
	return ranks
}

var (
	mu       sync.Mutex
	compiled = map[string]*regexp.Regexp{}
)

// matches tries a pattern in normal form as a regular expression.
func matches(pattern, path string) bool {
	mu.Lock()
	re := compiled[pattern]
	if re == nil {
		body, anchored := strings.CutSuffix(pattern, "$")
		text := "^(?s:" + strings.ReplaceAll(regexp.QuoteMeta(body), `\*`, ".*") + ")"
		if anchored {
			text += "$"
		}
		re = regexp.MustCompile(text)
		compiled[pattern] = re
	}
	mu.Unlock()
	return re.MatchString(path)
}
