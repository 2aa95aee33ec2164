// SPDX-License-Identifier: Apache-2.0

package tdmrep

import (
	"fmt"
	"testing"
	"time"

	"github.com/robotspolicy/caddy-robots-policy/pathpattern"
)

// An upstream can put any rules into its file. Merging them needs only limited work, whatever their locations are.
// Rights that the policy's file reserves stay reserved.
func TestMergeWorkIsBounded(t *testing.T) {
	t.Parallel()
	ours := &File{Rules: []Rule{{pathpattern.MustParse("/ours/"), Declaration{Reservation: Reserved}}}}
	for name, location := range map[string]string{
		"that all cross":     "/*a%d*b%[1]d*c",
		"that end in $":      "/*.x%d$",
		"many wildcards":     "/%d*a*a*a*a*a*a*a*a*a*a*a*a*a*a*a*a",
		"equal but the last": "/*/*/*/*/*/*/*/*/*/*/*/*/%d",
		"plain":              "/d%d/",
	} {
		t.Run(name, func(t *testing.T) {
			theirs := &File{}
			for i := range maxRules - 1 {
				theirs.Rules = append(theirs.Rules, Rule{pathpattern.MustParse(fmt.Sprintf(location, i)), Declaration{Reservation: Reservation(1 + i%2)}})
			}
			start := time.Now()
			merged, exact := ours.Merge(theirs)
			t.Logf("%v, %d rules, exact %v", time.Since(start), len(merged.Rules), exact)
			if took := time.Since(start); took > 2*time.Minute { // a hundred times the usual duration
				t.Errorf("%v", took)
			}
			if merged.At("/ours/x").Reservation != Reserved {
				t.Error("the reservation of the policy's file is missing")
			}
		})
	}
}
