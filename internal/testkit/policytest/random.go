// SPDX-License-Identifier: Apache-2.0

package policytest

import (
	"math/rand/v2"
	"strings"
	"time"

	"github.com/robotspolicy/caddy-robots-policy/pathpattern"
	"github.com/robotspolicy/caddy-robots-policy/policy"
)

// Options limits the policies that Random makes.
type Options struct {
	Usages      []policy.Usage // nil means all
	NoWildcards bool           // patterns are plain prefixes
	NoHosts     bool
	NoIdentity  bool
	NoPurposes  bool
	Modes       bool     // rules have their own enforce modes
	MaxRules    int      // 0 means 8
	Limits      []string // time limits; nil means some around Now
}

// Crawlers is a small catalog for the policies that Random makes.
var Crawlers = []policy.Crawler{
	{Token: "AlphaBot", Operator: "Alpha", Category: "search", Purposes: []string{"news"}},
	{Token: "AlphaBot-Image", Operator: "Alpha", Category: "search", Follows: []string{"AlphaBot"}},
	{Token: "BetaBot", Operator: "Beta", Category: "ai-training", AI: true},
	{Token: "Beta-Extended", Operator: "Beta", Category: "ai-training", AI: true, RobotsOnly: true},
	{Token: "GammaBot", Operator: "Gamma", Category: "ai-training", AI: true, IgnoresStar: true},
	{Token: "DeltaBot", Operator: "Alpha", Category: "archive", Purposes: []string{"news", "research"}},
	{Token: "ZetaBot", Operator: "Zeta", Category: "search", Follows: []string{"AlphaBot"}},
	{Token: "IotaBot", Operator: "Beta", Category: "search", AI: true, Purposes: []string{"news"}},
}

// Tokens lists the crawlers in the questions about a policy that Random makes. EpsilonBot is not in the catalog, and ""
// is an unlisted client.
var Tokens = []string{"AlphaBot", "alphabot-image", "BetaBot", "Beta-Extended", "GammaBot", "DELTABOT", "EpsilonBot", "ZetaBot", "IotaBot", ""}

// Hosts lists the hosts in the questions about the policies.
var Hosts = []string{"www.example.com", "WWW.Example.Com:8080", "a.b.example.com", "b.example.com", "example.com", "example.org", ""}

var audiences = []policy.Audience{
	{},
	{},
	{},
	{Kind: policy.ForEveryoneElse},
	{Kind: policy.ForEveryoneElse},
	{Kind: policy.ForToken, Name: "AlphaBot"},
	{Kind: policy.ForToken, Name: "alphabot-image"},
	{Kind: policy.ForToken, Name: "betabot"},
	{Kind: policy.ForToken, Name: "EpsilonBot"},
	{Kind: policy.ForToken, Name: "Beta-Extended"},
	{Kind: policy.ForCategory, Name: "search"},
	{Kind: policy.ForCategory, Name: "ai-training"},
	{Kind: policy.ForAI},
	{Kind: policy.ForOperator, Name: "alpha"},
	{Kind: policy.ForOperator, Name: "Beta"},
	{Kind: policy.ForPurpose, Name: "news"},
}

var ruleHosts = []policy.Host{"www.example.com", "*.example.com", "*.b.example.com", "b.example.com", "example.org"}

// Now is the time in the questions about the policies. The time limits of the policies are around this time.
var Now = time.Date(2026, 6, 15, 12, 0, 0, 0, time.UTC)

// Random makes a policy from few names and patterns, so that several of its rules often match a question.
func Random(r *rand.Rand, o Options) *policy.Spec {
	spec := &policy.Spec{File: "random.yaml", Crawlers: Crawlers}
	if o.MaxRules == 0 {
		o.MaxRules = 8
	}
	if o.Usages == nil {
		o.Usages = policy.Usages()
	}
	if o.Limits == nil {
		o.Limits = []string{"until-2026-06-14", "until-2026-06-15", "until-2026-12-31", "3-days", "until-recrawled"}
	}
	line := 1
	for range 1 + r.IntN(o.MaxRules) {
		line++
		rule := policy.Rule{Pos: policy.Pos{Line: line, Column: 1}}
		for range 1 + r.IntN(2) {
			rule.For = append(rule.For, audiences[r.IntN(len(audiences))])
		}
		if !o.NoHosts && r.IntN(3) == 0 {
			for range 1 + r.IntN(2) {
				rule.Hosts = append(rule.Hosts, ruleHosts[r.IntN(len(ruleHosts))])
			}
		}
		if o.Modes {
			rule.Enforce = []policy.Mode{policy.ModeUnset, policy.ModeUnset, policy.ModeOff, policy.ModeLog, policy.ModeBlock}[r.IntN(5)]
		}
		if !o.NoIdentity && r.IntN(6) == 0 {
			rule.Identity = policy.Demand(r.IntN(3))
		}
		if !o.NoPurposes && r.IntN(8) == 0 {
			rule.UsagePurposes = []string{"News"}
		}
		seen := map[string]bool{}
		for range 1 + r.IntN(4) {
			line++
			s := statement(r, o, line)
			key := s.Usage.String() + s.Pattern.String()
			if !seen[key] {
				seen[key] = true
				rule.Statements = append(rule.Statements, s)
			}
		}
		spec.Rules = append(spec.Rules, rule)
	}
	return spec
}

func statement(r *rand.Rand, o Options, line int) policy.Statement {
	s := policy.Statement{
		Pos:     policy.Pos{Line: line, Column: 5},
		Allow:   r.IntN(2) == 0,
		Usage:   o.Usages[r.IntN(len(o.Usages))],
		Pattern: pathpattern.MustParse(Pattern(r, o.NoWildcards)),
	}
	if s.Usage == policy.Other {
		s.Allow = false
	}
	if s.Allow && r.IntN(4) == 0 {
		q := &policy.Qualifiers{}
		limit := o.Limits[r.IntN(len(o.Limits))]
		if q.SetQualifier(s.Usage, policy.QualifierTimeLimit, limit) == nil {
			s.Qualifiers = q
		}
	}
	return s
}

// Pattern makes a pattern with few different letters. If plain is true, the pattern has neither "*" nor "$".
func Pattern(r *rand.Rand, plain bool) string {
	if r.IntN(4) == 0 {
		return "/"
	}
	alphabet := "aab/*"
	if plain {
		alphabet = "aab/"
	}
	p := "/" + text(r, alphabet, 5)
	if !plain && r.IntN(5) == 0 {
		p += "$"
	}
	return p
}

// Path makes a path that the patterns made by Pattern are likely to match.
func Path(r *rand.Rand) string {
	if r.IntN(30) == 0 {
		return "/robots.txt"
	}
	return "/" + text(r, "aab/", 8)
}

func text(r *rand.Rand, alphabet string, n int) string {
	var b strings.Builder
	for range r.IntN(n + 1) {
		b.WriteByte(alphabet[r.IntN(len(alphabet))])
	}
	return b.String()
}
