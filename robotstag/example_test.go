// SPDX-License-Identifier: Apache-2.0

package robotstag_test

import (
	"fmt"
	"net/http"
	"time"

	"github.com/robotspolicy/caddy-robots-policy/robotsrule"
	"github.com/robotspolicy/caddy-robots-policy/robotstag"
)

// Apply merges the policy's rules with the rules of the upstream. The stricter rules apply.
func ExampleApply() {
	values, problems := robotstag.Build(
		[]robotstag.Member{{Token: robotstag.Everyone, Rules: robotsrule.Of("noindex")}},
		robotstag.Usage{}, time.Now())
	if len(problems) > 0 {
		fmt.Println(problems)
		return
	}
	header := http.Header{"X-Robots-Tag": {"nofollow"}} // from the upstream
	robotstag.Apply(header, values, robotstag.AllChannels)
	fmt.Println(header.Get("X-Robots-Tag"))
	fmt.Println(header.Get("Robots-Tag"))
	// Output:
	// noindex, nofollow
	// *;noindex;nofollow
}
