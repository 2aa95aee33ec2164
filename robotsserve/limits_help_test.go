// SPDX-License-Identifier: Apache-2.0

package robotsserve

import (
	"slices"
	"strings"

	"github.com/robotspolicy/caddy-robots-policy/policy"
)

// limits returns the qualifiers of a decision that ACAP defines for the usage.
func limits(d policy.Decision, u policy.Usage) []string {
	return slices.DeleteFunc(slices.Clone(d.Qualifiers().Strings()), func(text string) bool {
		name, _, _ := strings.Cut(text, "=")
		return !slices.Contains(policy.QualifiersOf(u), policy.QualifierName(name))
	})
}
