// SPDX-License-Identifier: Apache-2.0

package solve

import (
	"cmp"
	"slices"

	"github.com/robotspolicy/caddy-robots-policy/pathpattern"
)

// maxCells is the default limit for the number of patterns that Cells adds to the given patterns.
const maxCells = 500

// Cell is a pattern with a value. The value applies to the paths whose longest matching pattern is the cell's pattern.
type Cell[V any] struct {
	Pattern pathpattern.Pattern
	Value   V
	Order   int // the index of the pattern; added patterns follow the given patterns
}

// Form describes a format in which, for each path, the longest matching pattern decides. The readers of the format are
// the crawlers and other programs that read it. The fields Value and Same are required.
type Form[V any] struct {
	// Value returns the value of the paths that match a pattern but no narrower given pattern. Paths with the zero
	// value do not need a cell.
	Value func(pathpattern.Pattern) V
	Same  func(a, b V) bool // whether two values are the same
	Alike func(a, b V) bool // whether two values also have the same reason; nil means Same
	// Matters limits the work of Cells. For the cell c, it returns a function that takes a given pattern. The function
	// reports whether this pattern can change the value of the paths that both the pattern and c match. Matters returns
	// nil if no given pattern can change them. If Matters is nil, Cells examines every given pattern.
	Matters func(c *Cell[V]) func(given pathpattern.Pattern) bool
	// Beats reports whether every reader uses x, and not y, for the paths that both cells match. If Beats is nil, the
	// cell with the longer pattern is used.
	Beats func(x, y *Cell[V]) bool
	// Replaces is called for a given cell y and a wider cell x with the same value. It reports whether x can replace y,
	// because every reader that uses y also understands x. If Replaces is nil, Cells assumes that x can always replace
	// y.
	Replaces func(x, y *Cell[V]) bool
	// Unsaid is called if readers would use c for some paths that have a different value, and Cells cannot add a cell
	// that corrects this. The cell m has these paths and their value. It is nil if they are unknown. Unsaid reports
	// whether Cells should drop c. If Unsaid is nil, Cells fails in this case.
	Unsaid func(c, m *Cell[V]) (drop bool)
	Added  int // the number of patterns that may be added; 0 means maxCells
	// Keep reports whether to keep a cell although it is redundant. If Keep is nil, redundant cells are dropped.
	Keep   func(c *Cell[V]) bool
	Budget *Budget // nil means a new one
}

// Cells returns the fewest cells that give every path its value, for readers that use the longest matching pattern.
// Cells that few other cells cover come first. For example, if the values of the patterns /, /a/ and /a/b/ are 1, 2 and
// 2, Cells returns / with the value 1 and /a/ with the value 2. A cell for /a/b/ is not needed.
func Cells[V any](patterns []pathpattern.Pattern, value func(pathpattern.Pattern) V, same func(a, b V) bool) ([]Cell[V], bool) {
	return (&Form[V]{Value: value, Same: same}).Cells(patterns)
}

// Cells returns the fewest cells that give every path its value. Cells that few other cells cover come first. The
// result is false if the budget is used up. It is also false if f.Unsaid is nil, and there are paths whose value no
// cell can express.
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
	var around []int
	for i := 0; i < len(s.cells) && s.ok; i++ {
		matters := func(pathpattern.Pattern) bool { return true }
		if s.Matters != nil {
			matters = s.Matters(&s.cells[i])
		}
		if matters == nil {
			continue
		}
		around = s.given.overlapping(around, s.cells[i].Pattern)
		s.price = costOfValue + len(around)/8
		for _, j := range around {
			if !s.b.Spend(1) {
				return nil, false
			}
			if matters(s.cells[j].Pattern) {
				s.cross(i, j)
			}
		}
	}
	if !s.ok {
		return nil, false
	}
	return s.needed(), true
}

// costOfValue is the number of steps for computing one value, without the steps for the patterns that the value depends
// on.
const costOfValue = 24

type solver[V any] struct {
	*Form[V]
	cells  []Cell[V]
	gone   []bool
	known  map[pathpattern.Pattern]int // for each pattern, 1 + the index of its cell
	given  Set
	first  int // the number of cells with given patterns
	b      *Budget
	added  int // the number of patterns that may still be added
	ok     bool
	price  int       // the number of steps for one value, for the cell that cross works on
	rivals [][]int32 // for each cell, the overlapping cells with another value; nil if not computed yet
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

// cross looks at the paths that both the cell i and the given pattern j match. If the value of these paths differs from
// the value of cell i, readers would use the wrong value, so cross adds cells for these paths. Cells calls cross for
// each cell, also for the added ones, but only with given patterns as j. This suffices, because the value of a path
// depends only on the given patterns that match it, and each added cell is crossed with the given patterns in turn.
func (s *solver[V]) cross(i, j int) {
	c, y := &s.cells[i], &s.cells[j]
	if i == j || s.gone[i] || s.beats(y, c) || y.Pattern.Covers(c.Pattern) {
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
		case !same && (!s.beats(&m, c) || at == 0 && s.added == 0):
			if !s.outranked(c, &m) {
				s.unsaid(i, &m)
			}
		case at == 0 && (!same || p.Len() > c.Pattern.Len()) && s.added > 0:
			s.added--
			s.add(p, m.Value)
		}
	}
}

// outranked reports whether a given pattern with the value of m covers the paths of m and wins over c.
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

// needed drops redundant cells until no cell is redundant or the budget is used up. It returns the other cells,
// sorted.
func (s *solver[V]) needed() (left []Cell[V]) {
	var all Set
	for i := range s.cells {
		all.Add(s.cells[i].Pattern, i)
	}
	s.rivals = make([][]int32, len(s.cells))
	wider := make([][]int, len(s.cells)) // for each cell, the cells that cover it, including the cell itself
	order := make([]int, len(s.cells))
	for i := range s.cells {
		order[i] = i
		wider[i] = all.Covering(s.cells[i].Pattern)
	}
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(len(wider[b]), len(wider[a])) })
	done := slices.Clone(s.gone) // dropped cells, and cells that have lost no rival since their last check
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

// needless reports whether cell i can be dropped. For that, a wider cell must have the same value, and readers must use
// the wider cell for the paths of cell i. Readers do not use it if a cell with a different value wins over it.
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

// decided compares cell i with a rival, a cell o that overlaps it and has another value. It reports whether cell i
// never decides on the paths that both cells match, because a third cell wins over cell i there.
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
