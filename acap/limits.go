// SPDX-License-Identifier: Apache-2.0

package acap

import (
	"slices"
	"strings"

	"github.com/robotspolicy/caddy-robots-policy/policy"
)

// qualifiersOf prints limits that hold together for a usage. What limits present loses
// what section 2.5 does not define for what is derived from it, or no reader would take
// it for a permission at all. It fails where two limits of one kind hold of which none
// is the stricter, because a qualifier stands once (section 2.5.5.2).
func qualifiersOf(limits policy.Limits, u policy.Usage) (text string, ok bool) {
	takes := policy.QualifiersOf(u)
	seen := map[policy.QualifierName]bool{}
	texts := slices.DeleteFunc(slices.Clone(limits.Strings()), func(text string) bool {
		name, _, _ := strings.Cut(text, "=")
		return !slices.Contains(takes, policy.QualifierName(name))
	})
	for _, text := range texts {
		n, _, _ := strings.Cut(text, "=")
		if name := policy.QualifierName(n); name != policy.QualifierProhibitedModification {
			if seen[name] {
				return "", false
			}
			seen[name] = true
		}
	}
	return strings.Join(texts, " "), true
}
