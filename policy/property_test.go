// SPDX-License-Identifier: Apache-2.0

package policy_test

import (
	"flag"
	"math/rand/v2"
	"testing"

	"github.com/robotspolicy/caddy-robots-policy/internal/policytest"
	"github.com/robotspolicy/caddy-robots-policy/pathpattern"
	"github.com/robotspolicy/caddy-robots-policy/policy"
)

var (
	decisions = flag.Int("decisions", 1_000_000, "decisions to compare with the naive evaluator")
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
		spec := policytest.Random(r, policytest.Options{})
		p, err := policy.Compile(spec)
		if err != nil {
			t.Fatal(err)
		}
		for range 200 {
			n--
			q := question(r)
			want := policytest.Decide(spec, q)
			got := p.Decide(queryOf(p, q))
			counts[got.Verdict]++
			if got.Verdict != want.Verdict || got.Statement != want.Statement {
				t.Fatalf("%+v of %+v:\ngot  %v %+v\nwant %v %+v", q, spec.Rules, got.Verdict, got.Statement, want.Verdict, want.Statement)
			}
			if q.Identity == policy.Verified && len(q.Purposes) == 0 {
				checkLayers(t, p, q, got)
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

// checkLayers decides by the layers, as renderers do.
func checkLayers(t *testing.T, p *policy.Policy, q policytest.Question, want policy.Decision) {
	t.Helper()
	if q.Path == "/robots.txt" {
		return
	}
	id := p.Crawler(q.Token)
	class := p.ClassOf(id, q.Host)
	for _, c := range p.Classes(q.Host) {
		for _, other := range c.Crawlers {
			if other == id {
				class = c
			}
		}
	}
	var got policy.Ref
	for _, l := range p.Layers(&class, q.Usage, "") {
		var tied []policy.Ref
		length := 0
		for _, s := range l.Statements {
			if n := s.Statement.Pattern.Len(); s.Statement.Pattern.Match(pathpattern.NormalizePath(q.Path)) && n >= length {
				if n > length {
					length, tied = n, nil
				}
				tied = append(tied, s)
			}
		}
		if tied != nil {
			got = l.Decides(tied)
			break
		}
	}
	if got.Statement != want.Statement || got.Rule != want.Rule {
		t.Fatalf("%+v: the layers say %+v, Decide says %+v", q, got.Statement, want.Statement)
	}
}
