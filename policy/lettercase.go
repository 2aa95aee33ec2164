// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"slices"

	"github.com/robotspolicy/caddy-robots-policy/pathpattern"
)

// Folded returns the policy for paths without letter case (see pathpattern.Fold):
// its patterns are folded, and its decisions name the statements of p. Crawlers have
// the same numbers in both. It is p itself if no pattern has letters in upper case.
func (p *Policy) Folded() *Policy {
	changed := false
	fold := func(pattern *pathpattern.Pattern) {
		folded := pattern.Folded()
		changed = changed || folded != *pattern
		*pattern = folded
	}
	spec := *p.spec
	spec.Table = p.table
	spec.Rules = slices.Clone(p.spec.Rules)
	for i := range spec.Rules {
		r := &spec.Rules[i]
		r.Statements, r.EngineRules = slices.Clone(r.Statements), slices.Clone(r.EngineRules)
		for j := range r.Statements {
			fold(&r.Statements[j].Pattern)
		}
		for j := range r.EngineRules {
			fold(&r.EngineRules[j].Pattern)
		}
	}
	if !changed {
		return p
	}
	folded, err := Compile(&spec)
	if err != nil {
		return p // cannot happen: p has as many crawlers and hosts
	}
	folded.statements, folded.ruleOf, folded.limits = p.statements, p.ruleOf, p.limits
	return folded
}
