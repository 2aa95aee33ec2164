// SPDX-License-Identifier: Apache-2.0

package pathpattern

import (
	"cmp"
	"slices"
)

const (
	maxCells    = 500 // beside the given patterns
	maxMeetings = 16  // of two patterns that cross
)

// Cell is a pattern with what holds for the paths of which it is the longest match.
type Cell[V any] struct {
	Pattern Pattern
	Value   V
	// Order is the place of the pattern among those that were given; patterns that
	// Tile had to add come last.
	Order int
}

// Tile says for every path what holds there, for readers who take the longest
// pattern that matches. value is what holds for a path that a pattern matches and, of
// all given ones, only those that cover it; same compares two values. The cells are
// sorted by how many others cover them, the widest first:
//
//	no for /, yes for /a/     →  no, /a/ yes
//
// Tile fails when patterns cross in too many ways, or where a cell would have to be
// longer than its pattern is.
func Tile[V any](patterns []Pattern, value func(Pattern) V, same func(a, b V) bool) ([]Cell[V], bool) {
	t := tiling[V]{at: map[Pattern]int{}, value: value, same: same}
	for _, p := range patterns {
		for _, rooted := range p.Rooted() {
			t.add(rooted.Plain())
		}
	}
	if !t.cross() {
		return nil, false
	}
	t.relate()
	ok := t.reduce()
	var cells []Cell[V]
	for _, c := range t.cells {
		if !c.gone {
			cells = append(cells, c.Cell)
		}
	}
	return cells, ok
}

type tiling[V any] struct {
	cells []tile[V]
	at    map[Pattern]int
	value func(Pattern) V
	same  func(a, b V) bool
}

type tile[V any] struct {
	Cell[V]
	wider []int32 // tiles that cover it
	gone  bool
}

func (t *tiling[V]) add(p Pattern) {
	if _, ok := t.at[p]; ok {
		return
	}
	t.at[p] = len(t.cells)
	t.cells = append(t.cells, tile[V]{Cell: Cell[V]{Pattern: p, Order: len(t.cells), Value: t.value(p)}})
}

// cross adds tiles where two patterns cross and something else holds than for
// either.
func (t *tiling[V]) cross() bool {
	given := len(t.cells)
	for n := 0; n < len(t.cells); {
		from := n
		n = len(t.cells)
		x := t.index()
		for i := range n {
			p := t.cells[i].Pattern
			var others []int32
			x.Overlapping(p, func(j int32) {
				if int(j) > i && int(j) >= from {
					others = append(others, j)
				}
			})
			slices.Sort(others)
			for _, j := range others {
				q := t.cells[j].Pattern
				if p.Covers(q) || q.Covers(p) {
					continue
				}
				meet, ok := Intersect(p, q, maxMeetings)
				if !ok {
					return false
				}
				for _, m := range meet {
					m = m.Plain()
					if v := t.value(m); !t.same(v, t.cells[i].Value) || !t.same(v, t.cells[j].Value) {
						t.add(m)
					}
				}
				if len(t.cells) > given+maxCells {
					return false
				}
			}
		}
	}
	return true
}

func (t *tiling[V]) index() *Index[int32] {
	entries := make([]Entry[int32], len(t.cells))
	for i := range t.cells {
		entries[i] = Entry[int32]{Pattern: t.cells[i].Pattern, Value: int32(i)}
	}
	return NewIndex(entries, func(a, _ int32) int32 { return a })
}

// relate finds the tiles that cover each, and sorts the widest first.
func (t *tiling[V]) relate() {
	x := t.index()
	count := make([]int, len(t.cells))
	for i := range t.cells {
		x.Covering(t.cells[i].Pattern, func(int32) { count[i]++ })
	}
	order := make([]int, len(t.cells))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(count[a], count[b]) })
	sorted := make([]tile[V], len(t.cells))
	for i, j := range order {
		sorted[i] = t.cells[j]
	}
	t.cells = sorted
	x = t.index()
	for i := range t.cells {
		c := &t.cells[i]
		x.Covering(c.Pattern, func(j int32) {
			if int(j) != i {
				c.wider = append(c.wider, j)
			}
		})
	}
}

// reduce drops a tile if what wins without it says the same, and reports whether
// each of the others is longer than the wider ones that say something else.
func (t *tiling[V]) reduce() bool {
	ok := true
	for i := range t.cells {
		c := &t.cells[i]
		longest, same, fits := 0, false, true
		for _, j := range c.wider {
			w := &t.cells[j]
			if w.gone {
				continue
			}
			n := w.Pattern.Len()
			equal := t.same(w.Value, c.Value)
			fits = fits && (equal || c.Pattern.Len() > n)
			if n > longest {
				longest, same = n, true
			}
			if n == longest {
				same = same && equal
			}
		}
		if same {
			c.gone = true
			continue
		}
		ok = ok && fits
	}
	return ok
}
