// SPDX-License-Identifier: Apache-2.0

package policy

import "slices"

// foldsPatterns reports whether a rule has a pattern with letters in upper case.
func (r *Rule) foldsPatterns() bool {
	for i := range r.Statements {
		if p := r.Statements[i].Pattern; p.Folded() != p {
			return true
		}
	}
	for i := range r.EngineRules {
		if p := r.EngineRules[i].Pattern; p.Folded() != p {
			return true
		}
	}
	return false
}

// Folded returns the policy for paths without letter case (see pathpattern.Fold):
// its patterns are folded, and its decisions name the statements of p. Crawlers have
// the same numbers in both. It is p itself if no pattern has letters in upper case.
func (p *Policy) Folded() *Policy {
	if !slices.ContainsFunc(p.spec.Rules, func(r Rule) bool { return r.foldsPatterns() }) {
		return p
	}
	spec := *p.spec
	spec.Rules = slices.Clone(p.spec.Rules)
	for i := range spec.Rules {
		r := &spec.Rules[i]
		r.Statements, r.EngineRules = slices.Clone(r.Statements), slices.Clone(r.EngineRules)
		for j := range r.Statements {
			r.Statements[j].Pattern = r.Statements[j].Pattern.Folded()
		}
		for j := range r.EngineRules {
			r.EngineRules[j].Pattern = r.EngineRules[j].Pattern.Folded()
		}
	}
	folded, err := Compile(&spec)
	if err != nil {
		return p // cannot happen: p has as many crawlers and hosts
	}
	folded.statements, folded.ruleOf, folded.limits = p.statements, p.ruleOf, p.limits
	return folded
}
