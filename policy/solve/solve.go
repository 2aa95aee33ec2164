// SPDX-License-Identifier: Apache-2.0

// Package solve finds, for each path, the pattern that decides about it. Every format that is written from a policy
// needs it: in robots.txt the longest matching pattern decides, in other records the narrowest, and in a policy the
// rule that overrides the others.
//
// Take a policy in which everyone may not crawl /*? and Googlebot may crawl /shop/:
//
//	        matches /*?   matches /shop/   the policy says   the longest match says
//	/a           no             no         allowed           allowed
//	/a?b         yes            no         disallowed        disallowed
//	/shop/a      no             yes        allowed           allowed
//	/shop/a?b    yes            yes        disallowed        allowed: /shop/ is longer
//
// The wrong pattern can decide only where two patterns cross, so the package examines each overlapping pair. Cross
// says where: /shop/*? matches exactly what both match. A line for that pattern is longer than both, and makes it
// right:
//
//	Disallow: /*?
//	Allow: /shop/
//	Disallow: /shop/*?
//
// The added pattern may cross others, so Pairs goes on until nothing is added.
//
// In the same way, every question about all paths is a question about few patterns. Its answer for a pattern is the
// value of the paths that match it but no narrower pattern. Cells asks this about all patterns and their crossings.
// It returns the fewest cells whose longest match gives the answer for every path.
//
// Patterns with many wildcards can cross in very many ways. A Budget limits the work. When it ends, the caller must
// write something stricter.
package solve

import (
	"slices"

	"github.com/robotspolicy/caddy-robots-policy/pathpattern"
)

// Budget bounds the work on one question about a policy, such as its robots.txt for a host. Each step spends some
// of it.
type Budget struct {
	work int // steps, of about a tenth of a microsecond
}

const allWork = 20_000_000

// NewBudget returns a budget of a second or two, many times the work for the largest known files.
func NewBudget() *Budget { return &Budget{work: allWork} }

// Spent returns the steps that were taken.
func (b *Budget) Spent() int { return allWork - b.work }

// Spend takes steps from the budget and reports whether there were enough of them.
func (b *Budget) Spend(steps int) bool {
	b.work -= steps
	return b.work >= 0
}

// Exceeded reports whether the work needed more than the budget.
func (b *Budget) Exceeded() bool { return b.work < 0 }

// ways is the most patterns that Cross returns for the paths that two patterns both match.
const ways = 16

// costOfWays is the work for finding that there are more.
const costOfWays = 1000

// Cross returns patterns that together match exactly the paths that both p and q match. None of them covers
// another. It fails if there are too many, or the budget ends.
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

// Pairs calls visit for every overlapping pair of n() items, the later item first. Items that visit adds are
// included. It reports whether the budget lasted.
func (b *Budget) Pairs(n func() int, overlapping func(i int) []int, visit func(i, j int)) bool {
	for i := 0; i < n(); i++ {
		for _, j := range overlapping(i) {
			if j >= i {
				break
			}
			if !b.Spend(1) {
				return false
			}
			visit(i, j)
		}
	}
	return true
}

// Set finds patterns by what they match. Each has an id. The zero value is empty.
type Set struct {
	entries []pathpattern.Entry[[]int]
	index   *pathpattern.Index[[]int] // of the first entries
	indexed int
}

// Add adds a pattern.
func (s *Set) Add(p pathpattern.Pattern, id int) {
	s.entries = append(s.entries, pathpattern.Entry[[]int]{Pattern: p, Value: []int{id}})
}

// Covering lists the ids of patterns that cover p, in order.
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

// Overlapping lists the ids of patterns that overlap p, in order.
func (s *Set) Overlapping(p pathpattern.Pattern) (ids []int) {
	s.update()
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

// maxTail patterns are tried one by one before they are indexed.
const maxTail = 16

// update indexes the added patterns if there are enough of them.
func (s *Set) update() {
	if len(s.entries)-s.indexed <= max(maxTail, s.indexed/8) {
		return
	}
	s.index = pathpattern.NewIndex(s.entries, func(a, b []int) []int { return append(a, b...) })
	s.indexed = len(s.entries)
}
