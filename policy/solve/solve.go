// SPDX-License-Identifier: Apache-2.0

// Package solve translates the decisions of a policy into patterns for other formats. The formats differ in which of
// several matching patterns decides: in robots.txt the longest one, in some other formats the narrowest one, and in a
// policy the rule that overrides the others.
//
// For example, take a policy with two rules: everyone may not crawl /*?, and Googlebot may crawl /shop/. For Googlebot,
// the results are:
//
//	        matches /*?   matches /shop/   the policy says   the longest match says
//	/a           no             no         allowed           allowed
//	/a?b         yes            no         disallowed        disallowed
//	/shop/a      no             yes        allowed           allowed
//	/shop/a?b    yes            yes        disallowed        allowed: /shop/ is longer
//
// A wrong result is possible only for paths that two patterns match, so the package examines each overlapping pair.
// Cross returns patterns for the paths that both patterns of a pair match, in this case /shop/*?. A line for /shop/*?
// is longer than the other two lines, and so corrects the result:
//
//	Disallow: /*?
//	Allow: /shop/
//	Disallow: /shop/*?
//
// The added pattern may overlap further patterns, so Cells continues until no pattern is added.
//
// In general, a format needs a value for every path, such as "allowed". The value of a pattern is the value of the
// paths that match this pattern but no narrower pattern. Cells computes the values of all given patterns and of the
// patterns that Cross returns for them. It returns as few of these patterns as possible, such that for each path the
// longest matching pattern has the value of the path.
//
// Cross may need a very large number of patterns for two patterns with many wildcards. A Budget limits the work. If the
// budget is used up, the caller must write a text that is stricter than the policy.
package solve

import (
	"slices"

	"github.com/robotspolicy/caddy-robots-policy/pathpattern"
)

// Budget limits the work for one result, such as a policy's robots.txt for a host. Each step of the work reduces the
// budget.
type Budget struct {
	all, work int // all steps, and the remaining ones; a step takes about 0.1 microseconds
}

// NewBudget returns a budget for one or two seconds of work. This is many times the work for the largest known files.
func NewBudget() *Budget { return BudgetOf(20_000_000) }

// BudgetOf returns a budget of a number of steps.
func BudgetOf(steps int) *Budget { return &Budget{steps, steps} }

// Spent returns the number of steps that were taken from the budget.
func (b *Budget) Spent() int { return b.all - b.work }

// Spend takes steps from the budget and reports whether there were enough of them.
func (b *Budget) Spend(steps int) bool {
	b.work -= steps
	return b.work >= 0
}

// Exceeded reports whether the work needed more than the budget.
func (b *Budget) Exceeded() bool { return b.work < 0 }

// ways limits how many patterns Cross returns.
const ways = 16

// costOfWays is the number of steps for finding out that Cross needs more patterns than ways allows.
const costOfWays = 1000

// Cross returns patterns that together match exactly the paths that both p and q match. No returned pattern covers
// another. The result is false if more patterns would be needed than the constant ways allows, or if the budget is used
// up.
func (b *Budget) Cross(p, q pathpattern.Pattern) ([]pathpattern.Pattern, bool) {
	if !b.Spend(p.Len()*q.Len()/32 + 1) {
		return nil, false
	}
	all, ok := pathpattern.Intersect(p, q, ways)
	if !ok {
		b.Spend(costOfWays)
	}
	return all, ok
}

// Set is a set of patterns with ids. It finds the patterns that cover or overlap a given pattern. The zero value is an
// empty set.
type Set struct {
	entries []pathpattern.Entry[[]int]
	index   *pathpattern.Index[[]int] // an index of the first entries; indexed is their number
	indexed int
}

// Add adds a pattern with an id.
func (s *Set) Add(p pathpattern.Pattern, id int) {
	s.entries = append(s.entries, pathpattern.Entry[[]int]{Pattern: p, Value: []int{id}})
}

// Covering lists the ids of patterns that cover p, in ascending order.
func (s *Set) Covering(p pathpattern.Pattern) (ids []int) {
	s.update()
	if s.index != nil {
		s.index.Covering(p, func(some []int) { ids = append(ids, some...) })
	}
	for _, e := range s.entries[s.indexed:] {
		if e.Pattern.Covers(p) {
			ids = append(ids, e.Value...)
		}
	}
	slices.Sort(ids)
	return ids
}

// Overlapping lists the ids of patterns that overlap p, in ascending order.
func (s *Set) Overlapping(p pathpattern.Pattern) []int { return s.overlapping(nil, p) }

// overlapping is like Overlapping, but uses the memory of the slice ids.
func (s *Set) overlapping(ids []int, p pathpattern.Pattern) []int {
	s.update()
	ids = ids[:0]
	if s.index != nil {
		s.index.Overlapping(p, func(some []int) { ids = append(ids, some...) })
	}
	for _, e := range s.entries[s.indexed:] {
		if p.Overlaps(e.Pattern) {
			ids = append(ids, e.Value...)
		}
	}
	slices.Sort(ids)
	return ids
}

// maxTail limits the number of patterns that a small Set tries one by one, because they are not indexed yet.
const maxTail = 16

// update indexes the added patterns if there are enough of them.
func (s *Set) update() {
	if len(s.entries)-s.indexed <= max(maxTail, s.indexed/8) {
		return
	}
	s.index = pathpattern.NewIndex(s.entries, func(a, b []int) []int { return append(a, b...) })
	s.indexed = len(s.entries)
}
