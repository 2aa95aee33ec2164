// SPDX-License-Identifier: Apache-2.0

package policyfile

import "github.com/robotspolicy/caddy-robots-policy/policy"

// MaxMode returns the most that a server could do about a request under the policy:
// ModeLog or ModeBlock if some rule that disallows crawling, or the setting for
// impostors, asks for it, else ModeOff.
func (f *File) MaxMode() policy.Mode {
	mode := max(f.Spec.Enforcement.Impostors, policy.ModeOff)
	for i := range f.Spec.Rules {
		r := &f.Spec.Rules[i]
		for j := range r.Statements {
			s := &r.Statements[j]
			if s.Usage == policy.Crawl && (!s.Allow || s.Qualifiers != nil) {
				mode = max(mode, f.Policy.Mode(policy.Decision{Rule: r}))
				break
			}
		}
	}
	return mode
}
