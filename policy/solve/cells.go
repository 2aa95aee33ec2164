// SPDX-License-Identifier: Apache-2.0

package solve

import (
	"cmp"
	"slices"

	"github.com/robotspolicy/caddy-robots-policy/pathpattern"
)

// maxCells limits the number of patterns added to the given ones.
const maxCells = 500

// Cell is a pattern with the value of the paths whose longest match it is.
type Cell[V any] struct {
	Pattern pathpattern.Pattern
	Value   V
	Order   int // the place of the pattern among the given ones; added ones come last
}

// Form describes a format in which the longest matching pattern decides. Value and Same are required.
type Form[V any] struct {
	// Value returns the value of the paths that match a pattern but none of the given narrower patterns. The zero
	// value means that no cell is needed.
	Value func(pathpattern.Pattern) V
	Same  func(a, b V) bool // whether two values are the same
	Alike func(a, b V) bool // whether two values also have the same reason; nil means Same
	// Matters reports whether a given pattern can change the value of a cell where both match; nil means always.
	Matters func(c *Cell[V], given pathpattern.Pattern) bool
	// Beats reports whether, for every reader, x wins over y where both match; nil means that the longer pattern
	// wins.
	Beats func(x, y *Cell[V]) bool
	// Replaces reports whether every reader that uses a given cell y understands x; nil means always.
	Replaces func(x, y *Cell[V]) bool
	// Unsaid is called where c wins although another value, m, is right; a nil m means any value. It reports
	// whether to drop c. If Unsaid is nil, Cells fails there.
	Unsaid func(c, m *Cell[V]) (drop bool)
	Added  int // patterns that may be added; 0 means maxCells
	// Keep reports whether a cell stays although others imply it; nil means never.
	Keep   func(c *Cell[V]) bool
	Budget *Budget // nil means a new one
}

// Cells returns patterns that give every path its value, for readers that use the longest matching pattern. The
// cells are sorted by how many others cover them, the widest first:
//
//	no for /, yes for /a/     →  no, /a/ yes
func Cells[V any](patterns []pathpattern.Pattern, value func(pathpattern.Pattern) V, same func(a, b V) bool) ([]Cell[V], bool) {
	return (&Form[V]{Value: value, Same: same}).Cells(patterns)
}

// Cells returns the fewest cells that give every path its value, the widest first. It fails if the budget ends, or
// if a value cannot be expressed and Unsaid is nil.
func (f *Form[V]) Cells(patterns []pathpattern.Pattern) ([]Cell[V], bool) {
	s := solver[V]{Form: f, known: map[pathpattern.Pattern]int{}, b: f.Budget, added: cmp.Or(f.Added, maxCells), ok: true}
	if s.b == nil {
		s.b = NewBudget()
	}
	for _, p := range patterns {
		for _, rooted := range p.Rooted() {
			if p := rooted.Plain(); s.known[p] == 0 {
				if !s.b.Spend(costOfValue) {
					return nil, false
				}
				s.add(p, s.Value(p))
			}
		}
	}
	s.first = len(s.cells)
	for i := range s.cells {
		s.given.Add(s.cells[i].Pattern, i)
	}
	for i := 0; i < len(s.cells) && s.ok; i++ {
		around := s.given.Overlapping(s.cells[i].Pattern)
		s.price = costOfValue + len(around)/8
		for _, j := range around {
			if !s.b.Spend(1) {
				return nil, false
			}
			s.cross(i, j)
		}
	}
	if !s.ok {
		return nil, false
	}
	return s.needed(), true
}

// costOfValue is the work for one value, without the work for each pattern it depends on.
const costOfValue = 24

type solver[V any] struct {
	*Form[V]
	cells  []Cell[V]
	gone   []bool
	known  map[pathpattern.Pattern]int // the places of cells, from 1
	given  Set
	first  int // cells that are given
	b      *Budget
	added  int // patterns that may still be added
	ok     bool
	price  int       // of a value for paths of the cell that is being crossed
	rivals [][]int32 // for each cell, the overlapping cells with another value; filled when needed
}

func (s *solver[V]) add(p pathpattern.Pattern, v V) {
	s.cells = append(s.cells, Cell[V]{Pattern: p, Value: v, Order: len(s.cells)})
	s.known[p] = len(s.cells)
	s.gone = append(s.gone, false)
}

func (s *solver[V]) beats(x, y *Cell[V]) bool {
	if s.Beats != nil {
		return s.Beats(x, y)
	}
	return x.Pattern.Len() > y.Pattern.Len()
}

func (s *solver[V]) alike(a, b V) bool {
	if s.Alike != nil {
		return s.Alike(a, b)
	}
	return s.Same(a, b)
}

// cross makes cells for the paths of cell i that the given pattern j matches as well, if their value differs. Only
// the given patterns matter here: each pattern that changes the value of the longest cell leads to a longer one.
func (s *solver[V]) cross(i, j int) {
	c, y := s.cells[i], s.cells[j]
	if i == j || s.gone[i] || s.beats(&y, &c) || s.Matters != nil && !s.Matters(&c, y.Pattern) || y.Pattern.Covers(c.Pattern) {
		return
	}
	meet := []pathpattern.Pattern{y.Pattern}
	if !c.Pattern.Covers(y.Pattern) {
		var ok bool
		if meet, ok = s.b.Cross(c.Pattern, y.Pattern); !ok {
			s.unsaid(i, nil)
			return
		}
	}
	for _, p := range meet {
		if s.gone[i] {
			return
		}
		at := s.known[p]
		m := Cell[V]{Pattern: p}
		switch {
		case at > 0:
			m.Value = s.cells[at-1].Value
		case !s.b.Spend(s.price):
			s.ok = false
			return
		default:
			m.Value = s.Value(p)
		}
		same := s.Same(m.Value, c.Value)
		switch {
		case s.alike(m.Value, c.Value):
		case !same && (!s.beats(&m, &c) || at == 0 && s.added == 0):
			if !s.outranked(&c, &m) {
				s.unsaid(i, &m)
			}
		case at == 0 && (!same || p.Len() > c.Pattern.Len()) && s.added > 0:
			s.added--
			s.add(p, m.Value)
		}
	}
}

// outranked reports whether a given pattern wins over c for the paths of m, with the value of m.
func (s *solver[V]) outranked(c, m *Cell[V]) bool {
	return slices.ContainsFunc(s.given.Covering(m.Pattern), func(k int) bool {
		w := &s.cells[k]
		return !s.gone[k] && s.Same(w.Value, m.Value) && s.beats(w, c)
	})
}

func (s *solver[V]) unsaid(i int, m *Cell[V]) {
	if s.Unsaid == nil {
		s.ok = false
		return
	}
	s.gone[i] = s.Unsaid(&s.cells[i], m) || s.gone[i]
}

// needed drops redundant cells until none is left or the budget ends, and sorts the rest.
func (s *solver[V]) needed() (left []Cell[V]) {
	var all Set
	for i := range s.cells {
		all.Add(s.cells[i].Pattern, i)
	}
	s.rivals = make([][]int32, len(s.cells))
	wider := make([][]int, len(s.cells)) // those that cover each, and itself
	order := make([]int, len(s.cells))
	for i := range s.cells {
		order[i] = i
		wider[i] = all.Covering(s.cells[i].Pattern)
	}
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(len(wider[b]), len(wider[a])) })
	done := slices.Clone(s.gone) // cells for which no relevant cell was dropped since the last check
	for again := true; again; {
		again = false
		for _, i := range order {
			if done[i] {
				continue
			}
			done[i] = true
			if !s.needless(i, wider[i], &all) {
				continue
			}
			s.gone[i], again = true, true
			for _, j := range s.rivals[i] {
				done[j] = s.gone[j]
			}
		}
	}
	slices.Reverse(order)
	for _, i := range order {
		if !s.gone[i] {
			left = append(left, s.cells[i])
		}
	}
	return left
}

// needless reports whether cell i is redundant: a wider cell with the same value decides about its paths, and no
// cell with another value is between the two.
func (s *solver[V]) needless(i int, wider []int, all *Set) bool {
	c := &s.cells[i]
	if s.Keep != nil && s.Keep(c) {
		return false
	}
	var nothing Cell[V]
	by := make([]*Cell[V], 0, len(wider))
	if s.Same(c.Value, nothing.Value) {
		by = append(by, &nothing)
	}
	for _, j := range wider {
		if w := &s.cells[j]; j != i && !s.gone[j] && s.Same(w.Value, c.Value) && (s.Replaces == nil || i >= s.first || s.Replaces(w, c)) {
			by = append(by, w)
		}
	}
	if len(by) == 0 {
		return false
	}
	if s.rivals[i] == nil {
		s.rivals[i] = []int32{}
		for _, j := range all.Overlapping(c.Pattern) {
			if !s.Same(s.cells[j].Value, c.Value) {
				s.rivals[i] = append(s.rivals[i], int32(j))
			}
		}
	}
	return slices.ContainsFunc(by, func(w *Cell[V]) bool {
		return !slices.ContainsFunc(s.rivals[i], func(j int32) bool {
			o := &s.cells[j]
			return !s.gone[j] && (!s.b.Spend(1) || !s.beats(o, c) && (w.Pattern.IsZero() || !s.beats(w, o)) && !s.decided(i, o, all))
		})
	})
}

// decided reports whether others win over cell i wherever it meets a rival.
func (s *solver[V]) decided(i int, o *Cell[V], all *Set) bool {
	c := &s.cells[i]
	if o.Pattern.Covers(c.Pattern) {
		return false
	}
	meet, ok := s.b.Cross(c.Pattern, o.Pattern)
	return ok && !slices.ContainsFunc(meet, func(p pathpattern.Pattern) bool {
		return !slices.ContainsFunc(all.Covering(p), func(j int) bool { return j != i && !s.gone[j] && s.beats(&s.cells[j], c) })
	})
}
