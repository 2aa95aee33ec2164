// SPDX-License-Identifier: Apache-2.0

package robotsserve

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/robotspolicy/caddy-robots-policy/policy"
	"github.com/robotspolicy/caddy-robots-policy/policy/solve"
)

// crossingSpec returns a policy with a rule for each audience. Each rule has n disallow entries and n allow entries.
// The pattern of each disallow entry overlaps the pattern of each allow entry, but does not cover it.
func crossingSpec(n int, audiences ...string) *policy.Spec {
	spec := &policy.Spec{}
	var closed, open []string
	for i := range n {
		closed, open = append(closed, fmt.Sprintf("/a*%d", i)), append(open, fmt.Sprintf("/*%d/b", i))
	}
	for i, a := range audiences {
		r := crawlRule(1+10_000*i, a, false, closed...)
		r.Statements = append(r.Statements, crawlRule(5000+10_000*i, a, true, open...).Statements...)
		spec.Rules = append(spec.Rules, r)
	}
	return spec
}

// A second rule with the same entries only doubles the work. The work would be much more if every two overlapping
// patterns were examined. But they are examined only if they can change a decision.
func TestCrossingRulesCostNoMoreThanTheirPairs(t *testing.T) {
	work := func(audiences ...string) int {
		f, problems := Render(compile(t, crossingSpec(150, audiences...)), "", Options{})
		if len(problems) > 0 {
			t.Errorf("%q: %v", audiences, problems)
		}
		return f.drawn.work
	}
	one, two := work("everyone"), work("everyone", "AlphaBot")
	t.Log(one, two)
	if two > 3*one {
		t.Errorf("one rule costs %d, two cost %d", one, two)
	}
}

// If the budget of computing steps is used up, the file has a Disallow line for each disallow entry, and no Allow
// lines. A Loss reports this.
func TestSpentBudget(t *testing.T) {
	p := compile(t, crossingSpec(20, "everyone"))
	spent := solve.NewBudget()
	for spent.Spend(1 << 20) {
	}
	g := &grouping{layout: newLayout(p), budget: spent}
	all, value := g.crawling(&p.PublicClasses("")[0])
	lines, losses := g.crawlLines(all, false, value)
	var texts []string
	for _, l := range lines {
		for _, printed := range l.printed(0) {
			texts = append(texts, printed.Text)
		}
	}
	if len(texts) != 20 || slices.ContainsFunc(texts, func(s string) bool { return !strings.HasPrefix(s, "Disallow: /a*") }) {
		t.Errorf("%q", texts)
	}
	if len(losses) != 1 || !losses[0].Paths.IsAll() {
		t.Fatalf("%+v", losses)
	}
	if g.warn(&losses[0]); !slices.Equal(codes(g.problems), []string{"warning not-flattenable 5001"}) {
		t.Errorf("%v", g.problems)
	}
}
