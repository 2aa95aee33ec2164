// SPDX-License-Identifier: Apache-2.0

package policy_test

import (
	"flag"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

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
				why := p.Reasons(queryOf(p, q)).Decision
				same(t, spec, q, p.Mode(why), why, want)
				if !why.Until.Equal(got.Until) {
					t.Fatalf("%+v of %+v: until %v and not %v", q, spec.Rules, got.Until, why.Until)
				}
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

// checkStatements decides among the statements of a class, as renderers do.
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
	if got := p.Outcome(all, q.Now); got.Statement != want.Statement || got.Rule != want.Rule || got.Verdict != want.Verdict || len(got.Qualifiers()) != len(want.Qualifiers()) {
		t.Fatalf("%+v: the statements say %+v, Decide says %+v", q, got.Statement, want.Statement)
	}
}
