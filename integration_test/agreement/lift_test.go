// SPDX-License-Identifier: Apache-2.0

package agreement

import (
	"fmt"
	"slices"

	"github.com/robotspolicy/caddy-robots-policy/internal/testkit/policytest"
	"github.com/robotspolicy/caddy-robots-policy/policy"
)

// restricting lists robots rules that restrict a usage of a page. If a site itself sends such a rule, an allow entry
// for the usage in the policy can lift the rule (docs/reference/policy-file-rules.md, "over-site").
var restricting = map[policy.Usage][]string{
	policy.Index:          {"noindex", "unavailable_after"},
	policy.PresentSnippet: {"nosnippet", "max-snippet"},
}

// lifted returns the site's own robots rules for each audience, without the rules that the policy lifts from the page.
// Servers may interpret a path in several ways (see reading). A rule is lifted only if the policy lifts it for each of
// these readings.
func (x *exam) lifted(q question, theirs map[string][][2]string) map[string][][2]string {
	var names []string
	for u, restrict := range restricting {
		if x.lifts(q, u) {
			names = append(names, restrict...)
		}
	}
	left := map[string][][2]string{}
	for audience, rules := range theirs {
		for _, rule := range rules {
			if rule[0] == "none" && slices.Contains(names, "noindex") {
				rule[0] = "nofollow"
			}
			if slices.Contains(names, rule[0]) {
				x.count("the site's own restriction is lifted")
				continue
			}
			left[audience] = append(left[audience], rule)
		}
	}
	return left
}

func (x *exam) lifts(q question, u policy.Usage) bool {
	asked := policytest.Question{Host: q.host, Usage: u, Now: x.p.now}
	if x.at.tailored {
		asked.Token = x.p.visitor(q.token)
	}
	return cached(x.p, fmt.Sprint("lifts ", asked, " ", q.path), func() bool {
		return !slices.ContainsFunc(x.readings(q.path), func(at reading) bool {
			asked.Path = at.path
			return !policytest.Lifts(at.spec, asked)
		})
	})
}
