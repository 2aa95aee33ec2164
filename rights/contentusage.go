// SPDX-License-Identifier: Apache-2.0

package rights

import (
	"strings"

	"github.com/robotspolicy/caddy-robots-policy/policy"
)

// ContentUsage is the value of Content-Usage, such as "train-ai=n, search=y"; "" for
// nothing.
func (v Verdicts) ContentUsage() string {
	var parts []string
	for i, u := range policyUsages {
		switch v[i] {
		case policy.Allowed:
			parts = append(parts, u.String()+"=y")
		case policy.Disallowed:
			parts = append(parts, u.String()+"=n")
		case policy.Unstated:
		}
	}
	return strings.Join(parts, ", ")
}

// signals are the usages of policy.RightsUsages in the words of Content-Signal.
var signals = [...]string{"ai-train", "ai-input", "search"}

// ContentSignal is the value of a Content-Signal line, such as "search=yes,
// ai-train=no, use=reference"; "" if nothing is stated. use is how far content may be
// used, or "".
func (v Verdicts) ContentSignal(use string) string {
	var parts []string
	for _, i := range []int{2, 1, 0} {
		switch v[i] {
		case policy.Allowed:
			parts = append(parts, signals[i]+"=yes")
		case policy.Disallowed:
			parts = append(parts, signals[i]+"=no")
		case policy.Unstated:
		}
	}
	if use != "" {
		parts = append(parts, "use="+use)
	}
	return strings.Join(parts, ", ")
}
