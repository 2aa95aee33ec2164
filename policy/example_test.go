// SPDX-License-Identifier: Apache-2.0

package policy_test

import (
	"fmt"

	"github.com/robotspolicy/caddy-robots-policy/pathpattern"
	"github.com/robotspolicy/caddy-robots-policy/policy"
)

// Decide answers for one crawler, path and usage. A path that is disallowed for everyone remains disallowed, unless a
// rule that names the crawler allows it.
func ExamplePolicy_Decide() {
	p := policy.Compile(&policy.Spec{
		Crawlers: []policy.Crawler{{Token: "Googlebot"}, {Token: "GPTBot"}},
		Rules: []policy.Rule{
			{
				Name:       "members only",
				For:        []policy.Audience{policy.ParseAudience("everyone")},
				Statements: []policy.Statement{{Usage: policy.Crawl, Pattern: pathpattern.MustParse("/members/")}},
			},
			{
				Name:       "let Google read the help pages",
				For:        []policy.Audience{policy.ParseAudience("Googlebot")},
				Statements: []policy.Statement{{Allow: true, Usage: policy.Crawl, Pattern: pathpattern.MustParse("/members/help")}},
			},
		},
	})
	for _, token := range []string{"Googlebot", "GPTBot"} {
		d := p.Decide(policy.Query{Crawler: p.Crawler(token), Path: "/members/help", Usage: policy.Crawl})
		fmt.Printf("%s: %v by %q\n", token, d.Verdict, d.Rule.Name)
	}
	// Output:
	// Googlebot: allowed by "let Google read the help pages"
	// GPTBot: disallowed by "members only"
}
