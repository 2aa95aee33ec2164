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
