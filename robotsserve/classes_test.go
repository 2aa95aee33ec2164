// SPDX-License-Identifier: Apache-2.0

package robotsserve

import (
	"slices"
	"strings"
	"testing"

	"github.com/robotspolicy/caddy-robots-policy/internal/testkit/policytest"
	"github.com/robotspolicy/caddy-robots-policy/policy"
)

// decisionClasses are the kinds of decisions that are hard to express in a robots.txt. The random policies must contain
// all of them.
var decisionClasses = []string{"tie", "$", "crossing", "percent-encoded", "case", "host", "category"}

// classify adds one to the count of each class that the decision belongs to.
func classify(counts map[string]int, p *policy.Policy, token, host, path string) {
	d := p.Decide(policy.Query{Crawler: p.Crawler(token), Identity: policy.Verified, Host: host, Path: path, Now: policytest.Now})
	if d.Statement == nil {
		return
	}
	has := func(class string, it bool) {
		if it {
			counts[class]++
		}
	}
	decided := d.Statement.Pattern
	text := decided.String()
	has("$", strings.HasSuffix(text, "$"))
	has("percent-encoded", strings.Contains(text, "%"))
	has("host", len(d.Rule.Hosts) > 0)
	has("category", !slices.ContainsFunc(d.Rule.For, func(a policy.Audience) bool { return a.Kind != policy.ForCategory }))
	has("case", slices.ContainsFunc(d.Rule.For, func(a policy.Audience) bool {
		return a.Kind == policy.ForToken && a.Name != token && strings.EqualFold(a.Name, token)
	}))
	var tie, crossing bool
	class := p.ClassOf(p.Crawler(token), host)
	for _, a := range p.Statements(&class, policy.Crawl, "") {
		if s := a.Statement; s.Pattern.Match(path) && s.Allow != d.Statement.Allow {
			tie = tie || s.Pattern.Len() == decided.Len()
			crossing = crossing || !s.Pattern.Covers(decided) && !decided.Covers(s.Pattern)
		}
	}
	has("tie", tie)
	has("crossing", crossing)
}

func checkClasses(t *testing.T, counts map[string]int) {
	t.Helper()
	for _, class := range decisionClasses {
		t.Logf("%s: %d decisions", class, counts[class])
		if counts[class] == 0 && *policies >= 100 {
			t.Errorf("no random policy has a decision of the class %q", class)
		}
	}
}
