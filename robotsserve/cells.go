// SPDX-License-Identifier: Apache-2.0

package robotsserve

import (
	"cmp"
	"slices"

	"github.com/robotspolicy/caddy-robots-policy/pathpattern"
)

// Limits on the lines that say what holds where patterns cross.
const (
	maxCrossing = 16  // of two patterns
	maxCells    = 500 // added to a group
)

// cell is a line of an extension whose longest path replaces all others: it
// says everything that holds for its path.
type cell struct {
	pattern pathpattern.Pattern
	order   int
	value   string
	wider   []int32 // cells that cover it
	length  int
	text    string
	gone    bool
}

// tiling finds the cells for some patterns. The value of a pattern is what holds
// for a path that matches it and, of the policy's patterns, only those that
// cover it.
type tiling struct {
	cells []cell
	at    map[pathpattern.Pattern]int
	value func(pathpattern.Pattern) string
}

// tile returns the cells that say for each path what holds there. It fails when
// patterns cross in too many ways, or where one that ends in "$" would have to
// be longer than it is.
func tile(patterns []pathpattern.Pattern, value func(pathpattern.Pattern) string) ([]cell, bool) {
	t := tiling{at: map[pathpattern.Pattern]int{}, value: value}
	for _, p := range patterns {
		for _, rooted := range p.Rooted() {
			t.add(rooted.Plain())
		}
	}
	if !t.cross() {
		return nil, false
	}
	t.relate()
	ok := t.lengthen()
	return slices.DeleteFunc(t.cells, func(c cell) bool { return c.gone }), ok
}

func (t *tiling) add(p pathpattern.Pattern) {
	if _, ok := t.at[p]; ok {
		return
	}
	t.at[p] = len(t.cells)
	t.cells = append(t.cells, cell{pattern: p, order: len(t.cells), value: t.value(p)})
}

// cross adds cells where two patterns cross and something else holds than for
// either.
func (t *tiling) cross() bool {
	given := len(t.cells)
	for n := 0; n < len(t.cells); {
		from := n
		n = len(t.cells)
		x := t.index(func(*cell) bool { return true })
		for i := range n {
			p := t.cells[i].pattern
			var others []int32
			x.Overlapping(p, func(j int32) {
				if int(j) > i && int(j) >= from {
					others = append(others, j)
				}
			})
			slices.Sort(others)
			for _, j := range others {
				q := t.cells[j].pattern
				if p.Covers(q) || q.Covers(p) {
					continue
				}
				meet, ok := pathpattern.Intersect(p, q, maxCrossing)
				if !ok {
					return false
				}
				for _, m := range meet {
					m = m.Plain()
					if v := t.value(m); v != t.cells[i].value || v != t.cells[j].value {
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

func (t *tiling) index(keep func(*cell) bool) *pathpattern.Index[int32] {
	var entries []pathpattern.Entry[int32]
	for i := range t.cells {
		if keep(&t.cells[i]) {
			entries = append(entries, pathpattern.Entry[int32]{Pattern: t.cells[i].pattern, Value: int32(i)})
		}
	}
	return pathpattern.NewIndex(entries, func(a, _ int32) int32 { return a })
}

// relate finds the cells that cover each, and sorts the widest first.
func (t *tiling) relate() {
	x := t.index(func(*cell) bool { return true })
	count := make([]int, len(t.cells))
	for i := range t.cells {
		x.Covering(t.cells[i].pattern, func(int32) { count[i]++ })
	}
	order := make([]int, len(t.cells))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(count[a], count[b]) })
	sorted := make([]cell, len(t.cells))
	for i, j := range order {
		sorted[i] = t.cells[j]
	}
	t.cells = sorted
	x = t.index(func(*cell) bool { return true })
	for i := range t.cells {
		c := &t.cells[i]
		x.Covering(c.pattern, func(j int32) {
			if int(j) != i {
				c.wider = append(c.wider, j)
			}
		})
	}
}

// lengthen makes each cell longer than the wider ones that say something else,
// and drops a cell if what wins without it says the same.
func (t *tiling) lengthen() bool {
	ok := true
	for i := range t.cells {
		c := &t.cells[i]
		need, longest, same := c.pattern.Len(), 0, false
		for _, j := range c.wider {
			w := &t.cells[j]
			if w.gone {
				continue
			}
			if w.value != c.value {
				need = max(need, w.length+1)
			}
			if w.length > longest {
				longest, same = w.length, true
			}
			if w.length == longest {
				same = same && w.value == c.value
			}
		}
		if same {
			c.gone = true
			continue
		}
		text, can := c.pattern.Lengthen(need)
		c.text, c.length = text, max(need, len(text))
		ok = ok && can
	}
	return ok
}
