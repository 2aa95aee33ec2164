// SPDX-License-Identifier: Apache-2.0

package robotstxt_test

import (
	"fmt"

	"github.com/robotspolicy/caddy-robots-policy/policy"
	"github.com/robotspolicy/caddy-robots-policy/robotstxt"
)

// Ask returns whether a crawler may fetch a page, and which line decides.
func ExampleAgent_Ask() {
	file := robotstxt.Parse([]byte("User-agent: *\nDisallow: /drafts/\nAllow: /drafts/public/\n"))
	bot := file.Agent(policy.Crawler{Token: "ExampleBot"})
	for _, path := range []string{"/drafts/a", "/drafts/public/b"} {
		answer := bot.Ask("https://www.example.com" + path)
		fmt.Println(path, answer.Allowed, "by line", answer.Line)
	}
	// Output:
	// /drafts/a false by line 2
	// /drafts/public/b true by line 3
}
