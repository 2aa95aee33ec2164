// SPDX-License-Identifier: Apache-2.0

package rights

import (
	"slices"
	"time"

	"github.com/robotspolicy/caddy-robots-policy/pathpattern"
	"github.com/robotspolicy/caddy-robots-policy/policy"
)

// Finder decides about one usage for one class of crawlers.
type Finder struct {
	p     *policy.Policy
	ranks []statementIndex // other usages are asked only where the first has nothing to say
}

// NewFinder returns the Finder of what the policy states to a class about a usage or, if nothing, about Other. purpose is
// the client's, in lower case, or "".
func NewFinder(p *policy.Policy, c *policy.Class, u policy.Usage, purpose string) *Finder {
	return newFinder(p, c, u, purpose, policy.Verified)
}

func newFinder(p *policy.Policy, c *policy.Class, u policy.Usage, purpose string, id policy.Identity) *Finder {
	f := &Finder{p: p}
	for _, usage := range []policy.Usage{u, policy.Other} {
		if usage == policy.Other && u == policy.Crawl {
			break
		}
		all := slices.DeleteFunc(p.Statements(c, usage, purpose), func(a policy.Applied) bool { return !a.Rule.Identity.MetBy(id) })
		f.ranks = append(f.ranks, newStatementIndex(all))
	}
	return f
}

// At is the decision about paths that match a pattern and only those of the policy's patterns that cover it.
func (f *Finder) At(p pathpattern.Pattern) policy.Decision {
	for _, x := range f.ranks {
		var matching []policy.Applied
		x.index.Covering(p, func(is []int32) {
			for _, i := range is {
				matching = append(matching, x.all[i])
			}
		})
		if len(matching) > 0 {
			return f.p.Outcome(matching, time.Time{})
		}
	}
	return policy.Decision{}
}

func (f *Finder) Patterns() (patterns []pathpattern.Pattern) {
	for _, x := range f.ranks {
		for i := range x.all {
			patterns = append(patterns, x.all[i].Statement.Pattern)
		}
	}
	return patterns
}

// Statements lists all statements, those about Other after the rest.
func (f *Finder) Statements() (all []policy.Applied) {
	for _, x := range f.ranks {
		all = append(all, x.all...)
	}
	return all
}

// First is a statement to name in messages, or the zero value.
func (f *Finder) First() policy.Applied {
	if all := f.Statements(); len(all) > 0 {
		return all[0]
	}
	return policy.Applied{}
}

// Strictest is what can be said for all paths: Disallowed if some path is, Allowed if all are.
func (f *Finder) Strictest() policy.Verdict {
	verdict := policy.Unstated
	if f.At(pathpattern.All).Verdict == policy.Allowed {
		verdict = policy.Allowed
	}
	for _, p := range f.Patterns() {
		if f.At(p).Verdict == policy.Disallowed {
			return policy.Disallowed
		}
	}
	return verdict
}

type statementIndex struct {
	all   []policy.Applied
	index *pathpattern.Index[[]int32]
}

func newStatementIndex(all []policy.Applied) statementIndex {
	entries := make([]pathpattern.Entry[[]int32], len(all))
	for i := range all {
		entries[i] = pathpattern.Entry[[]int32]{Pattern: all[i].Statement.Pattern, Value: []int32{int32(i)}}
	}
	return statementIndex{all, pathpattern.NewIndex(entries, func(a, b []int32) []int32 { return slices.Concat(a, b) })}
}
