// SPDX-License-Identifier: Apache-2.0

package acap

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/robotspolicy/caddy-robots-policy/pathpattern"
	"github.com/robotspolicy/caddy-robots-policy/policy"
	"github.com/robotspolicy/caddy-robots-policy/policy/solve"
)

// everyone returns a policy with a single rule, which applies to everyone and has the given statements.
func everyone(statements ...policy.Statement) *policy.Policy {
	rule := policy.Rule{For: []policy.Audience{{}}, Statements: statements}
	return policy.Compile(&policy.Spec{Publish: policy.Publish{ACAP: policy.Full}, Rules: []policy.Rule{rule}})
}

// To make the records of this policy, the writer needs more work than the budget allows. When the budget is used up,
// the writer may still finish the loop in progress, which takes at most 10 steps for each statement. It then reports
// that it cannot write the records.
func TestWorkStaysWithinTheBudget(t *testing.T) {
	const n = 17_000
	var all []policy.Statement
	var long strings.Builder
	for i := range n {
		all = append(all, policy.Statement{Usage: policy.Index, Allow: true, Pattern: pathpattern.MustParse(fmt.Sprintf("/*%04x", i))})
		fmt.Fprintf(&long, "%04x", i)
	}
	all = append(all, policy.Statement{Usage: policy.Index, Pattern: pathpattern.MustParse("/" + long.String())})
	w := NewWriter(everyone(all...)).writer("")
	w.records()

	used := solve.NewBudget()
	for used.Spend(1) {
	}
	if spent := w.budget.Spent(); spent < used.Spent() || spent > used.Spent()+10*n {
		t.Errorf("%d steps, the budget has %d", spent, used.Spent())
	}
	if !slices.ContainsFunc(w.problems, func(p policy.Problem) bool { return p.Code == "acap-cross" }) {
		t.Errorf("%v", w.problems)
	}
}

// Each statement has a qualifier that the specification calls not ready for use, so each gets a warning. The work for
// these warnings grows only in proportion to the number of statements.
func TestWorkForWarningsAboutQualifiers(t *testing.T) {
	work := func(n int) float64 {
		all := []policy.Statement{{Usage: policy.Present, Pattern: pathpattern.All}}
		q := &policy.Qualifiers{}
		if err := q.SetQualifier(policy.Present, policy.QualifierMustIncludeResource, "https://x.example/a"); err != nil {
			t.Fatal(err)
		}
		for i := range n {
			all = append(all, policy.Statement{
				Usage: policy.Present, Allow: true, Pattern: pathpattern.MustParse(fmt.Sprintf("/p%d/", i)), Qualifiers: q,
				Pos: policy.Pos{Line: i + 1},
			})
		}
		w := NewWriter(everyone(all...))
		if _, problems := w.Write(""); len(problems) != n {
			t.Errorf("%d statements have %d problems: %v", n, len(problems), problems[:min(3, len(problems))])
		}
		return testing.AllocsPerRun(1, func() { w.Write("") })
	}
	few, many := work(200), work(1600)
	t.Log(few, many)
	if many > 2*8*few {
		t.Errorf("%v allocations for 200 statements, %v for 1600", few, many)
	}
}

// In each case, every rule has a different usage purpose. The budget suffices unless the paths of the rules are
// different and overlap.
func TestWorkForUsagePurposes(t *testing.T) {
	const n = 1000
	for name, c := range map[string]struct {
		path func(i int) string
		fits bool
	}{
		"a path for each purpose":     {func(i int) string { return fmt.Sprintf("/p%d/", i) }, true},
		"one path for all purposes":   {func(int) string { return "/" }, true},
		"each path within the others": {func(i int) string { return "/" + strings.Repeat("a", i) }, false},
	} {
		rules := make([]policy.Rule, n)
		for i := range rules {
			rules[i] = policy.Rule{
				For: []policy.Audience{{}}, UsagePurposes: []string{fmt.Sprintf("p%d", i)},
				Statements: []policy.Statement{{Usage: policy.Index, Pattern: pathpattern.MustParse(c.path(i))}},
			}
		}
		w := NewWriter(policy.Compile(&policy.Spec{Publish: policy.Publish{ACAP: policy.Full}, Rules: rules})).writer("")
		records := w.records()
		t.Log(name, w.budget.Spent())
		if fits := len(w.problems) == 0; fits != c.fits {
			t.Errorf("%s: %d steps, problems %v", name, w.budget.Spent(), w.problems)
		}
		if c.fits && len(records[0].lines) != n {
			t.Errorf("%s: %d lines", name, len(records[0].lines))
		}
	}
}

// A decision checks the usage purposes of all rules, so it takes more steps if there are more of them.
func TestWorkForADecision(t *testing.T) {
	w := NewWriter(everyone(policy.Statement{Usage: policy.Index, Pattern: pathpattern.All})).writer("")
	classes := w.p.PublicClasses("")
	steps := func(purposes int) int {
		s := fieldSolver{writer: w, class: &classes[0], usage: policy.Index, purposes: make([]string, purposes)}
		before := w.budget.Spent()
		s.decide(pathpattern.All, "")
		return w.budget.Spent() - before
	}
	if few, many := steps(4), steps(4000); many < 100*max(few, 1) {
		t.Errorf("%d steps with 4 purposes, %d with 4000", few, many)
	}
}
