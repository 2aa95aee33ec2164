// SPDX-License-Identifier: Apache-2.0

package acap_test

import (
	"fmt"

	"github.com/robotspolicy/caddy-robots-policy/acap"
	"github.com/robotspolicy/caddy-robots-policy/policy"
)

// A File gives the same answers as a crawler that conforms to ACAP 1.0.
func ExampleFile_Decide() {
	f := acap.Parse([]byte(`##ACAP version=1.0
ACAP-crawler: *
ACAP-disallow-index: /drafts/
ACAP-allow-index: /drafts/published/
`))
	for _, path := range []string{"/drafts/1", "/drafts/published/1"} {
		d := f.Decide(acap.Query{Crawler: "ExampleBot", Path: path, Usage: policy.Index})
		fmt.Println(path, d.Verdict)
	}
	// Output:
	// /drafts/1 disallowed
	// /drafts/published/1 allowed
}
