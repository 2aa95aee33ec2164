// SPDX-License-Identifier: Apache-2.0

package rights_test

import (
	"fmt"

	"github.com/robotspolicy/caddy-robots-policy/policy"
	"github.com/robotspolicy/caddy-robots-policy/rights"
)

// The verdicts are in the order of policy.RightsUsages: train-ai, ai-use, search.
func ExampleVocabulary_Text() {
	verdicts := rights.Verdicts{policy.Disallowed, policy.Unstated, policy.Allowed}
	for _, v := range rights.Vocabularies {
		fmt.Printf("%s: %s\n", v.Field, v.Text(verdicts, ""))
	}
	// Output:
	// Content-Usage: train-ai=n, search=y
	// Content-Signal: search=yes, ai-train=no
}
