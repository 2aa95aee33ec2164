// SPDX-License-Identifier: Apache-2.0

package solve

import (
	"cmp"
	"slices"

	"github.com/robotspolicy/caddy-robots-policy/pathpattern"
)

// The budget of Cells.
const (
	cellWork = 16 << 20
	cellWays = 16
	maxCells = 500 // beside the given patterns
)

// Cell is a pattern with what holds for the paths of which it is the longest match.
type Cell[V any] struct {
	Pattern pathpattern.Pattern
	Value   V
	Order   int // the place of the pattern among the given ones; added ones come last
}

// Cells says for every path what holds there, for readers who take the longest matching pattern. value is what holds for a
// path that a pattern and, of all given ones, only those that cover it match; same compares values. The cells are sorted by
// how many others cover them, the widest first:
//
//	no for /, yes for /a/     →  no, /a/ yes
//
// It fails when patterns cross in too many ways, or a cell would have to be longer than its pattern.
func Cells[V any](patterns []pathpattern.Pattern, value func(pathpattern.Pattern) V, same func(a, b V) bool) ([]Cell[V], bool) {
	var cells []Cell[V]
	var set Set
	known := map[pathpattern.Pattern]bool{}
	add := func(p pathpattern.Pattern, v V) {
		known[p] = true
		set.Add(p, len(cells))
		cells = append(cells, Cell[V]{Pattern: p, Value: v, Order: len(cells)})
	}
	for _, p := range patterns {
		for _, rooted := range p.Rooted() {
			if p := rooted.Plain(); !known[p] {
				add(p, value(p))
			}
		}
	}
	b := Budget{Work: cellWork, Ways: cellWays, Added: maxCells}
	b.Pairs(func() int { return len(cells) }, func(i int) []int { return set.Overlapping(cells[i].Pattern) }, func(i, j int) {
		x, y := cells[i], cells[j]
		if b.Exceeded || x.Pattern.Covers(y.Pattern) || y.Pattern.Covers(x.Pattern) {
			return
		}
		meet, _ := b.Cross(x.Pattern, y.Pattern)
		for _, p := range meet {
			if v := value(p); !known[p] && (!same(v, x.Value) || !same(v, y.Value)) && b.Add(1) {
				add(p, v)
			}
		}
	})
	if b.Exceeded {
		return nil, false
	}
	return needed(cells, &set, same)
}

// needed sorts cells, the widest first, and drops each that the others imply. It reports whether each of the others is
// longer than different ones around it.
func needed[V any](cells []Cell[V], set *Set, same func(a, b V) bool) (left []Cell[V], ok bool) {
	wider := make([][]int, len(cells)) // those that cover each, and itself
	order := make([]int, len(cells))
	for i := range cells {
		wider[i] = set.Covering(cells[i].Pattern)
		order[i] = i
	}
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(len(wider[a]), len(wider[b])) })
	gone := make([]bool, len(cells))
	ok = true
	for _, i := range order {
		c := &cells[i]
		longest, said, fits := 0, false, true
		for _, j := range wider[i] {
			if j == i || gone[j] {
				continue
			}
			n, equal := cells[j].Pattern.Len(), same(cells[j].Value, c.Value)
			fits = fits && (equal || c.Pattern.Len() > n)
			switch {
			case n > longest:
				longest, said = n, equal
			case n == longest:
				said = said && equal
			}
		}
		if said {
			gone[i] = true
			continue
		}
		ok = ok && fits
		left = append(left, *c)
	}
	return left, ok
}
