// SPDX-License-Identifier: Apache-2.0

package policy_test

import (
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/robotspolicy/caddy-robots-policy/internal/testkit"
	"github.com/robotspolicy/caddy-robots-policy/internal/testkit/policytest"
	"github.com/robotspolicy/caddy-robots-policy/policy"
)

// properties asks random questions about a random policy and about a copy that the function "vary" has changed. check
// reports whether the answer before may change to the answer after.
func properties(t *testing.T, seed uint64, vary func(*rand.Rand, *policy.Spec), check func(before, after policy.Verdict) bool) {
	t.Helper()
	t.Parallel()
	r := rand.New(rand.NewPCG(seed, 0))
	n := testkit.Rounds(16_000, 80_000)
	if testing.Short() {
		n /= 10
	}
	changed := 0
	for n > 0 {
		o := policytest.Options{}
		if r.IntN(2) == 0 {
			o.Usages = []policy.Usage{policy.Crawl, policy.Crawl, policy.Present, policy.PresentSnippet, policy.Other}
		}
		spec := policytest.Random(r, o)
		variant := *spec
		variant.Rules = slices.Clone(spec.Rules)
		vary(r, &variant)
		before, after := compile(t, spec), compile(t, &variant)
		for range 40 {
			n--
			q := question(r)
			if r.IntN(2) == 0 {
				q.Usage = policy.Crawl
			}
			b, a := before.Decide(queryOf(before, q)).Verdict, after.Decide(queryOf(after, q)).Verdict
			if a != b {
				changed++
			}
			if !check(b, a) {
				t.Fatalf("%+v: first %v, then %v\n%s\nthen\n%s", q, b, a, describe(spec), describe(&variant))
			}
		}
	}
	t.Logf("%d answers changed", changed)
}

func compile(t *testing.T, spec *policy.Spec) *policy.Policy {
	t.Helper()
	p := policy.Compile(spec)
	return p
}

func TestOrderDoesNotMatter(t *testing.T) {
	properties(t, 21, func(r *rand.Rand, s *policy.Spec) {
		r.Shuffle(len(s.Rules), func(i, j int) { s.Rules[i], s.Rules[j] = s.Rules[j], s.Rules[i] })
		for i := range s.Rules {
			list := slices.Clone(s.Rules[i].Statements)
			r.Shuffle(len(list), func(i, j int) { list[i], list[j] = list[j], list[i] })
			s.Rules[i].Statements = list
		}
	}, func(before, after policy.Verdict) bool { return before == after })
}

// oneRule returns a random rule whose statements are either all permissions or all prohibitions.
func oneRule(r *rand.Rand, allow bool) policy.Rule {
	rule := policytest.Random(r, policytest.Options{MaxRules: 1}).Rules[0]
	rule.Statements = slices.DeleteFunc(rule.Statements, func(s policy.Statement) bool { return allow && s.Usage == policy.Other })
	for i := range rule.Statements {
		rule.Statements[i].Allow, rule.Statements[i].Qualifiers = allow, nil
	}
	return rule
}

func TestAProhibitionNeverOpens(t *testing.T) {
	properties(t, 22, func(r *rand.Rand, s *policy.Spec) { s.Rules = append(s.Rules, oneRule(r, false)) },
		func(before, after policy.Verdict) bool {
			return before != policy.Disallowed || after == policy.Disallowed
		})
}

func TestAPermissionNeverCloses(t *testing.T) {
	properties(t, 23, func(r *rand.Rand, s *policy.Spec) { s.Rules = append(s.Rules, oneRule(r, true)) },
		func(before, after policy.Verdict) bool {
			return before == policy.Disallowed || after != policy.Disallowed
		})
}
