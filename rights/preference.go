// SPDX-License-Identifier: Apache-2.0

package rights

import "github.com/robotspolicy/caddy-robots-policy/policy"

// Preferences are the decisions about the usages of policy.RightsUsages, in that order.
type Preferences [3]policy.Decision

// Verdicts are the verdicts of Preferences, which can be compared.
type Verdicts [3]policy.Verdict

// Verdicts returns the verdicts alone.
func (p Preferences) Verdicts() (v Verdicts) {
	for i := range p {
		v[i] = p[i].Verdict
	}
	return v
}

// Stated reports whether anything is stated.
func (v Verdicts) Stated() bool { return v != Verdicts{} }

// severity orders verdicts from the laxest to the strictest: what one crawler is not
// permitted is not permitted to all.
var severity = [...]int{policy.Allowed: 0, policy.Unstated: 1, policy.Disallowed: 2}

// stricter keeps the stricter decision about each usage.
func (p Preferences) stricter(q Preferences) Preferences {
	for i := range p {
		if severity[q[i].Verdict] > severity[p[i].Verdict] {
			p[i] = q[i]
		}
	}
	return p
}
