// SPDX-License-Identifier: Apache-2.0

package policytest

import (
	"github.com/robotspolicy/caddy-robots-policy/policy"
)

// Lifts reports whether a question is decided by a permission with OverSite, which also removes restrictions in the
// site's own headers and meta tags.
func Lifts(spec *policy.Spec, q Question) bool {
	a := Decide(spec, q)
	return a.Verdict == policy.Allowed && a.Statement.OverSite
}
