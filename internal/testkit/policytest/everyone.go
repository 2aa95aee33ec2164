// SPDX-License-Identifier: Apache-2.0

package policytest

import (
	"fmt"
	"slices"
	"strings"

	"github.com/robotspolicy/caddy-robots-policy/policy"
)

// Everyone combines the verdicts of a policy for all crawlers, purposes and identities into a single verdict. Rights
// documents that address everyone need such a verdict.
type Everyone struct {
	spec   *policy.Spec
	askers []Question
}

// NewEveryone returns an Everyone for a policy. If the rules about rights treat several crawlers alike, the Everyone
// asks the policy about only one of them. It asks with each purpose of the policy, and without a purpose.
func NewEveryone(full *policy.Spec) *Everyone {
	e := &Everyone{}
	spec := *full
	purposes := [][]string{nil}
	named := map[string]bool{}
	for i := range spec.Rules {
		r := &spec.Rules[i]
		for _, p := range r.UsagePurposes {
			purposes = append(purposes, []string{strings.ToLower(p)})
		}
		for _, a := range r.For {
			if a.Kind == policy.ForPurpose {
				purposes = append(purposes, []string{strings.ToLower(a.Name)})
			}
			if a.Kind == policy.ForToken {
				named[a.Name] = true
			}
		}
	}
	tokens := append(make([]string, 0, 1+len(spec.Crawlers)+len(named)), "")
	for _, c := range spec.Crawlers {
		tokens = append(tokens, c.Token)
	}
	for token := range named {
		tokens = append(tokens, token)
	}
	slices.Sort(tokens)
	seen := map[string]bool{}
	var reps []string
	for _, token := range slices.Compact(tokens) {
		var groups strings.Builder
		for i := range spec.Rules {
			if !aboutRights(&spec.Rules[i]) {
				continue
			}
			for _, a := range spec.Rules[i].For {
				close, ok := closeness(&spec, a, Question{Token: token})
				fmt.Fprint(&groups, close, ok, " ")
			}
		}
		if vector := groups.String(); !seen[vector] {
			seen[vector] = true
			reps = append(reps, token)
		}
	}
	for _, token := range reps {
		for _, p := range purposes {
			e.askers = append(e.askers, Question{Token: token, Purposes: p})
		}
	}
	// Decide searches the whole list spec.Crawlers for the crawler of each question. To save time, the list keeps only the
	// crawlers in the questions and the crawlers that they follow.
	var kept []policy.Crawler
	for _, c := range spec.Crawlers {
		if slices.Contains(reps, c.Token) || slices.ContainsFunc(reps, func(t string) bool {
			return slices.ContainsFunc(crawlerOf(&spec, t).Follows, func(f string) bool { return strings.EqualFold(f, c.Token) })
		}) {
			kept = append(kept, c)
		}
	}
	spec.Crawlers = kept
	e.spec = &spec
	return e
}

func aboutRights(r *policy.Rule) bool {
	return slices.ContainsFunc(r.Statements, func(s policy.Statement) bool {
		return s.Usage == policy.Other || s.Usage == policy.TrainAI || s.Usage == policy.AIUse || s.Usage == policy.Search
	})
}

// Verdict returns Disallowed if the usage is disallowed for at least one client, and Allowed if it is allowed for all
// clients. Otherwise, it returns Unstated.
func (e *Everyone) Verdict(host, path string, u policy.Usage) policy.Verdict {
	all := policy.Allowed
	for _, q := range e.askers {
		q.Host, q.Path, q.Usage = host, path, u
		for _, q.Identity = range Identities {
			switch Decide(e.spec, q).Verdict {
			case policy.Disallowed:
				return policy.Disallowed
			case policy.Unstated:
				all = policy.Unstated
			case policy.Allowed:
			}
		}
	}
	return all
}
