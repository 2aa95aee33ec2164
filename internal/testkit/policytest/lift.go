// SPDX-License-Identifier: Apache-2.0

package policytest

import (
	"github.com/robotspolicy/caddy-robots-policy/policy"
)

// Lifts reports whether a permission that decides a question lifts what the site itself says against its usage.
func Lifts(spec *policy.Spec, q Question) bool {
	a := Decide(spec, q)
	return a.Verdict == policy.Allowed && a.Statement.OverSite
}
