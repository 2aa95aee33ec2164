// SPDX-License-Identifier: Apache-2.0

package policy_test

import (
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/robotspolicy/caddy-robots-policy/internal/testkit/policytest"
	"github.com/robotspolicy/caddy-robots-policy/policy"
)

// If the policy does not state whether a crawler may crawl a path, the rules from the site's own robots.txt decide, as
// if there were no policy. The server never enforces these rules.
func TestFallbackDecidesWhereThePolicyIsSilent(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 9))
	counts := map[policy.Verdict]int{}
	for range 400 {
		spec := policytest.Random(r, policytest.Options{})
		below := policytest.Random(r, policytest.Options{Usages: []policy.Usage{policy.Crawl}})
		for i := range below.Rules {
			b := &below.Rules[i]
			*b = policy.Rule{For: b.For, Hosts: b.Hosts, Statements: b.Statements, CrawlDelay: b.CrawlDelay}
			for j := range b.Statements {
				b.Statements[j].Qualifiers = nil
			}
		}
		below.Crawlers = spec.Crawlers
		above := compile(t, spec)
		alone := compile(t, &policy.Spec{Crawlers: spec.Crawlers, Rules: slices.Clone(below.Rules)})
		with := above.WithFallback(below.Rules)
		for range 60 {
			asked := question(r)
			if r.IntN(2) == 0 {
				asked.Usage = policy.Crawl
			}
			want := above.Decide(queryOf(above, asked))
			if want.Verdict == policy.Unstated && asked.Usage == policy.Crawl {
				want = alone.Decide(queryOf(alone, asked))
				counts[want.Verdict]++
			}
			q := queryOf(with, asked)
			got := with.Decide(q)
			if got.Verdict != want.Verdict {
				t.Fatalf("%+v: %v, want %v\n%s\nbelow\n%s", asked, got.Verdict, want.Verdict, describe(spec), describe(below))
			}
			checkReasons(t, with, asked, got)
			if got.Rule != nil && got.Rule.Fallback && with.Mode(got) != policy.ModeOff {
				t.Fatalf("%+v: a line of the site is enforced", q)
			}
		}
		asked := question(r)
		if d := with.Folded().Decide(queryOf(with, asked)); d.Rule != nil && d.Rule.Fallback {
			t.Fatalf("%+v: a line of the site, whose readers distinguish letter case, applies to a folded path", asked)
		}
		if q := queryOf(above, asked); with.StaysOut(q) != above.StaysOut(q) {
			t.Fatalf("%+v: a line of the site decides about headers", asked)
		}
		if with.WithoutFallback() != above || above.WithoutFallback() != above {
			t.Fatal("the policy without the fallback is not the one that it was made of")
		}
	}
	if counts[policy.Allowed] < 50 || counts[policy.Disallowed] < 50 {
		t.Errorf("hardly any answers of a fallback: %v", counts)
	}
}
