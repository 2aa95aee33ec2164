// SPDX-License-Identifier: Apache-2.0

package policy_test

import (
	"flag"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/robotspolicy/caddy-robots-policy/internal/testkit"
	"github.com/robotspolicy/caddy-robots-policy/internal/testkit/policytest"
	"github.com/robotspolicy/caddy-robots-policy/pathpattern"
	"github.com/robotspolicy/caddy-robots-policy/policy"
)

var (
	decisions = flag.Int("decisions", testkit.Rounds(8_000, 40_000), "decisions to compare with the naive evaluator")
	seed      = flag.Uint64("seed", 1, "seed of the random policies")
)

func TestDecideAgreesWithNaiveEvaluator(t *testing.T) {
	n := *decisions
	if testing.Short() {
		n /= 10
	}
	t.Logf("seed %d, %d decisions", *seed, n)
	r := rand.New(rand.NewPCG(*seed, 0))
	counts := map[policy.Verdict]int{}
	for n > 0 {
		spec := policytest.Random(r, policytest.Options{Modes: true})
		p := policy.Compile(spec)
		for range 200 {
			n--
			q := question(r)
			want := policytest.Decide(spec, q)
			got := p.Decide(queryOf(p, q))
			counts[got.Verdict]++
			same(t, spec, q, p.Mode(got), got, want)
			if n%20 == 0 {
				checkReasons(t, p, q, got)
			}
			if q.Identity == policy.Verified && len(q.Purposes) == 0 && n%4 == 0 {
				checkStatements(t, p, q, got)
			}
		}
	}
	t.Logf("verdicts: %v", counts)
	for _, v := range []policy.Verdict{policy.Unstated, policy.Allowed, policy.Disallowed} {
		if counts[v] == 0 {
			t.Errorf("no decision was %v: the generator is too narrow", v)
		}
	}
}

func same(t *testing.T, spec *policy.Spec, q policytest.Question, mode policy.Mode, got policy.Decision, want policytest.Answer) {
	t.Helper()
	limits := slices.Clone(got.Qualifiers())
	ok := got.Verdict == want.Verdict && got.Statement == want.Statement && len(limits) == len(want.Limits) &&
		(got.Verdict != policy.Disallowed || mode == want.Mode) && (got.Rule == nil) == (got.Statement == nil)
	for _, l := range want.Limits {
		ok = ok && slices.Contains(limits, l)
	}
	if !ok {
		t.Fatalf("%+v of\n%s\ngot  %v %+v mode %v limits %v\nwant %v %+v mode %v limits %v", q, describe(spec),
			got.Verdict, got.Statement, mode, limits, want.Verdict, want.Statement, want.Mode, want.Limits)
	}
}

func describe(spec *policy.Spec) string {
	var b strings.Builder
	for _, r := range spec.Rules {
		fmt.Fprintf(&b, "line %d: for %v hosts %v identity %v purposes %v enforce %v\n", r.Pos.Line, r.For, r.Hosts, r.Identity, r.UsagePurposes, r.Enforce)
		for _, s := range r.Statements {
			fmt.Fprintf(&b, "  line %d: allow %v %v %v %v\n", s.Pos.Line, s.Allow, s.Usage, s.Pattern, s.Qualifiers.Strings())
		}
	}
	return b.String()
}

func question(r *rand.Rand) policytest.Question {
	q := policytest.Question{
		Token:    policytest.Tokens[r.IntN(len(policytest.Tokens))],
		Identity: policy.Identity(r.IntN(3)),
		Host:     policytest.Hosts[r.IntN(len(policytest.Hosts))],
		Path:     policytest.Path(r),
		Usage:    policy.Usages()[r.IntN(len(policy.Usages()))],
		Now:      policytest.Now,
	}
	if r.IntN(4) == 0 {
		q.Purposes = []string{[]string{"news", "research", "other"}[r.IntN(3)]}
	}
	return q
}

func queryOf(p *policy.Policy, q policytest.Question) policy.Query {
	return policy.Query{
		Crawler: p.Crawler(q.Token), Identity: q.Identity, Purposes: q.Purposes,
		Host: q.Host, Path: q.Path, Usage: q.Usage, Now: q.Now,
	}
}

// checkReasons checks that the results of Reasons for q agree with want, which is the decision about q.
func checkReasons(t *testing.T, p *policy.Policy, q policytest.Question, want policy.Decision) {
	t.Helper()
	if q.Path == "/robots.txt" && q.Usage == policy.Crawl {
		return
	}
	standing, permissions := p.Reasons(queryOf(p, q))
	var got policy.Decision
	switch {
	case len(standing) > 0:
		got.Verdict, got.Statement, got.Rule = policy.Disallowed, standing[0].Statement, standing[0].Rule
	case len(permissions) > 0:
		got.Verdict, got.Statement, got.Rule = policy.Allowed, permissions[0].Statement, permissions[0].Rule
	}
	var until time.Time
	for _, a := range permissions {
		if l := a.Statement.Qualifiers; l != nil && l.TimeLimit.Kind == policy.UntilDate && (until.IsZero() || l.TimeLimit.Last.Before(until)) {
			until = l.TimeLimit.Last.Add(time.Second)
		}
	}
	if got.Verdict != want.Verdict || got.Statement != want.Statement || got.Rule != want.Rule || !until.Equal(want.Until) {
		t.Fatalf("%+v: the reasons are %+v until %v, Decide says %+v until %v", q, got.Statement, until, want.Statement, want.Until)
	}
}

// checkStatements checks that Policy.Statements agrees with Policy.Decide. It evaluates the statements that
// Policy.Statements returns for the crawler and host of q, and compares the result with the decision want about q. A
// difference would be an error in robots.txt and the headers, because they are written from these statements.
func checkStatements(t *testing.T, p *policy.Policy, q policytest.Question, want policy.Decision) {
	t.Helper()
	if q.Path == "/robots.txt" {
		return
	}
	id := p.Crawler(q.Token)
	class := p.ClassOf(id, q.Host)
	for _, c := range p.Classes(q.Host) {
		if slices.Contains(c.Crawlers, id) {
			class = c
		}
	}
	matching := func(u policy.Usage) (all []policy.Applied) {
		for _, a := range p.Statements(&class, u, "") {
			if a.Statement.Pattern.Match(pathpattern.NormalizePath(q.Path)) {
				all = append(all, a)
			}
		}
		return all
	}
	all := matching(q.Usage)
	if len(all) == 0 && q.Usage != policy.Crawl {
		all = matching(policy.Other)
	}
	if verdict, limits := outcome(p, all, q.Now); verdict != want.Verdict || len(limits) != len(want.Qualifiers()) ||
		want.Statement != nil && !slices.ContainsFunc(all, func(a policy.Applied) bool { return a.Statement == want.Statement && a.Rule == want.Rule }) {
		t.Fatalf("%+v: the statements say %v, Decide says %v by %+v", q, verdict, want.Verdict, want.Statement)
	}
}

// outcome computes the verdict of statements directly from the methods Overrides and SetsAside.
func outcome(p *policy.Policy, all []policy.Applied, now time.Time) (verdict policy.Verdict, limits []*policy.Qualifiers) {
	permits := func(a *policy.Applied) bool {
		return a.Statement.Allow && (a.Statement.Qualifiers == nil || !a.Statement.Qualifiers.TimeLimit.Passed(now))
	}
	for _, d := range all {
		opens := p.SetsAside
		if !d.Statement.Allow {
			opens = p.Overrides
		}
		opened := slices.ContainsFunc(all, func(a policy.Applied) bool { return permits(&a) && opens(&a, &d) })
		switch q := d.Statement.Qualifiers; {
		case !permits(&d) && !opened:
			return policy.Disallowed, nil
		case permits(&d):
			verdict = policy.Allowed
			if q != nil && !opened && !slices.Contains(limits, q) {
				limits = append(limits, q)
			}
		}
	}
	return verdict, limits
}
