// SPDX-License-Identifier: Apache-2.0

package policyfile_test

import (
	"fmt"

	"github.com/robotspolicy/caddy-robots-policy/policyfile"
)

// Each diagnostic has the place of the mistake, and what the author probably meant.
func ExampleLoad() {
	_, diagnostics := policyfile.Load("site-policy.yaml", []byte(`version: 1
rules:
  - for: GPTBot
    disalow:
      crawl: /
`))
	for _, d := range diagnostics {
		fmt.Printf("line %d, %s: did you mean %q?\n", d.Pos.Line, d.Code, d.DidYouMean)
	}
	// Output: line 4, unknown-key: did you mean "disallow"?
}
