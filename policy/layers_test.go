// SPDX-License-Identifier: Apache-2.0

package policy_test

import (
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/robotspolicy/caddy-robots-policy/internal/policytest"
	"github.com/robotspolicy/caddy-robots-policy/policy"
)

// Deciding by the ranks, rule by rule, must come to what Decide says, also for
// clients that name a purpose.
func TestRanksAgreeWithDecide(t *testing.T) {
	r := rand.New(rand.NewPCG(11, 12))
	counts := map[policy.Verdict]int{}
	for range 3000 {
		spec := policytest.Random(r, policytest.Options{Usages: []policy.Usage{policy.Crawl}, NoPurposes: true})
		p, err := policy.Compile(spec)
		if err != nil {
			t.Fatal(err)
		}
		for range 20 {
			q := question(r)
			q.Identity, q.Usage = policy.Verified, policy.Crawl
			if q.Path == "/robots.txt" {
				continue
			}
			want := p.Decide(queryOf(p, q))
			class := p.ClassOf(p.Crawler(q.Token), q.Host)
			for _, purpose := range q.Purposes {
				class = p.WithPurpose(&class, purpose)
			}
			got := byRanks(p.Ranks(&class), q.Path)
			counts[want.Verdict]++
			if got != want.Rule {
				t.Fatalf("%+v of %+v: the ranks say %+v, Decide says %+v", q, spec.Rules, got, want.Rule)
			}
		}
	}
	t.Log(counts)
}

func byRanks(ranks []policy.Rank, path string) *policy.Rule {
	for _, rank := range ranks {
		layer := policy.Layer{Tier: rank.Tier}
		for _, rule := range rank.Rules {
			for i := range rule.Statements {
				if s := &rule.Statements[i]; s.Pattern.Match(path) {
					layer.Statements = append(layer.Statements, policy.Ref{Rule: rule, Statement: s})
				}
			}
		}
		if len(layer.Statements) == 0 {
			continue
		}
		longest := slices.MaxFunc(layer.Statements, func(a, b policy.Ref) int { return a.Statement.Pattern.Len() - b.Statement.Pattern.Len() })
		tied := slices.DeleteFunc(layer.Statements, func(r policy.Ref) bool { return r.Statement.Pattern.Len() < longest.Statement.Pattern.Len() })
		return layer.Decides(tied).Rule
	}
	return nil
}

// What ClassesOf leaves out is told what everyone is, of every usage but crawling,
// whatever the client's identity; and what it has is as Classes has it.
func TestClassesOf(t *testing.T) {
	r := rand.New(rand.NewPCG(13, 14))
	left, kept := 0, 0
	for range 2000 {
		spec, _ := policytest.Full(r)
		p, err := policy.Compile(spec)
		if err != nil {
			t.Fatal(err)
		}
		for range 10 {
			q := queryOf(p, question(r))
			q.Purposes = nil
			some := p.ClassesOf(q.Host, q.Path)
			for i, c := range p.Classes(q.Host) {
				if i == 0 || slices.ContainsFunc(some, func(s policy.Class) bool { return slices.Equal(s.Crawlers, c.Crawlers) }) {
					kept++
					continue
				}
				left++
				for _, q.Usage = range policy.Usages() {
					everyone := q
					everyone.Crawler, q.Crawler = 0, c.Crawlers[0]
					if got, want := p.Decide(q), p.Decide(everyone); q.Usage != policy.Crawl && got != want {
						t.Fatalf("%+v: %+v and not %+v as everyone in %+v", q, got, want, spec.Rules)
					}
					for _, name := range p.EngineRuleNames() {
						got, _, _ := p.EngineRule(q, name)
						if want, _, _ := p.EngineRule(everyone, name); got != want {
							t.Fatalf("%+v: %s is %v and not %v as for everyone in %+v", q, name, got, want, spec.Rules)
						}
					}
				}
			}
			if n := len(some); n == 0 || len(some[0].Crawlers) > 0 {
				t.Fatalf("%+v: no class of everybody among %d", q, n)
			}
		}
	}
	if left < 1000 || kept < 1000 {
		t.Errorf("%d classes were left out, %d kept", left, kept)
	}
}
