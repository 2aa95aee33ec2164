// SPDX-License-Identifier: Apache-2.0

package robotsrule_test

import (
	"fmt"

	"github.com/robotspolicy/caddy-robots-policy/robotsrule"
)

// Union combines two sets of rules into the stricter rules of both.
func ExampleSet_Union() {
	policy := robotsrule.Of("noindex").Union(robotsrule.MaxSnippet(50))
	page := robotsrule.Parse("max-snippet:160, nofollow")
	fmt.Println(policy.Union(page))
	// Output: noindex, nofollow, max-snippet:50
}
