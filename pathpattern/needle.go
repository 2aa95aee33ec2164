// SPDX-License-Identifier: Apache-2.0

package pathpattern

import (
	"cmp"
	"math/bits"
	"slices"
	"strings"
)

// wilds holds the wildcard patterns with the same literal prefix. If there are many patterns, most of them are
// indexed by four bytes that a matching path must contain. In that case, the time for a search depends on the length
// of the path and not on the number of patterns.
type wilds[V any] struct {
	few []wildcard[V] // patterns to try one by one, the longest first

	many  []wildcard[V]
	grams gramTable // indexes the patterns in many by four bytes after the prefix
}

type wildcard[V any] struct {
	rest   string // the text of the pattern after the literal prefix
	needs  uint64 // the byte pairs that every text matching rest contains, see Pairs
	length int32
	before int32  // the number of bytes in needle before the four indexed bytes
	needle string // the part of rest between special characters that has the indexed bytes
	alone  bool   // rest consists of "*" and needle
	value  V
}

// severalWilds is the smallest number of patterns that makes an index faster than trying each pattern.
const severalWilds = 64

func newWilds[V any](all []wildcard[V]) *wilds[V] {
	w := &wilds[V]{}
	slices.SortStableFunc(all, func(a, b wildcard[V]) int { return cmp.Compare(b.length, a.length) })
	if len(all) < severalWilds {
		w.few = all
		return w
	}
	common := map[gram]int{}
	for i := range all {
		for part := range all[i].parts() {
			for j := range grams(part) {
				common[gramAt(part, j)]++
			}
		}
	}
	for _, c := range all {
		if c.choose(common) {
			w.many = append(w.many, c)
		} else {
			w.few = append(w.few, c)
		}
	}
	if len(w.many) < severalWilds {
		w.few, w.many = all, nil
		return w
	}
	slices.SortStableFunc(w.many, func(a, b wildcard[V]) int { return cmp.Compare(a.gram(), b.gram()) })
	w.grams = newGramTable(w.many)
	return w
}

// parts yields the texts between the special characters of rest.
func (c *wildcard[V]) parts() func(func(string) bool) {
	return strings.SplitSeq(strings.TrimSuffix(c.rest, "$"), "*")
}

// choose sets needle and before, so that the pattern is indexed by the rarest four bytes of rest. common has the
// frequency of each gram. choose returns false if no part of rest has four bytes.
func (c *wildcard[V]) choose(common map[gram]int) bool {
	best := 0
	for part := range c.parts() {
		for j := range grams(part) {
			if n := common[gramAt(part, j)]; best == 0 || n < best {
				best, c.needle, c.before = n, part, int32(j)
			}
		}
	}
	c.alone = len(c.needle)+1 == len(c.rest)
	return best > 0
}

func (c *wildcard[V]) gram() gram { return gramAt(c.needle, int(c.before)) }

// gram holds four neighboring bytes.
type gram uint32

const gramSize = 4

func grams(s string) int { return max(0, len(s)-gramSize+1) }

func gramAt(s string, i int) gram {
	_ = s[i+3]
	return gram(s[i]) | gram(s[i+1])<<8 | gram(s[i+2])<<16 | gram(s[i+3])<<24
}

// gramTable finds the patterns of a gram. It is a hash table with open addressing that is at most half full. A search
// first looks at the bit of the gram in filter. At most one in eight bits is set. So for most grams that are not in the
// table, the search does not look at the cells.
type gramTable struct {
	filter []uint64
	cells  []gramCell
	shift  uint8 // shifting a hash right by shift bits results in the index of a cell
}

// gramCell holds the range wilds.many[from:to] of the patterns with a gram. An empty range means that the cell is free.
type gramCell struct {
	gram     gram
	from, to int32
}

// filterBits is the number of additional bits in an index of the filter, compared with an index of the cells.
const filterBits = 2

// newGramTable returns a table of patterns, which must be sorted by their grams.
func newGramTable[V any](all []wildcard[V]) gramTable {
	size := max(4, bits.Len(uint(2*len(all)-1)))
	t := gramTable{cells: make([]gramCell, 1<<size), filter: make([]uint64, 1<<(size+filterBits-6)), shift: uint8(32 - size)}
	for i := 0; i < len(all); {
		c := gramCell{all[i].gram(), int32(i), int32(i)}
		for i < len(all) && all[i].gram() == c.gram {
			i++
		}
		c.to = int32(i)
		at := c.gram.hash() >> t.shift
		for t.cells[at].from < t.cells[at].to {
			at = (at + 1) & uint32(len(t.cells)-1)
		}
		t.cells[at] = c
		bit := c.gram.hash() >> (t.shift - filterBits)
		t.filter[bit/64] |= 1 << (bit % 64)
	}
	return t
}

func (g gram) hash() uint32 { return uint32(g) * 0x9e3779b1 }

// next returns the first position of s, starting with i, where a gram of the table may begin. It returns -1 if there is
// none.
func (t *gramTable) next(s string, i int) int {
	filter, shift := t.filter, (t.shift-filterBits)&31
	if i+gramSize > len(s) {
		return -1
	}
	g := gramAt(s, i) << 8
	for j, c := range []byte(s[i+gramSize-1:]) {
		g = g>>8 | gram(c)<<24
		bit := g.hash() >> shift
		if word := int(bit / 64); word < len(filter) && filter[word]>>(bit%64)&1 != 0 {
			return i + j
		}
	}
	return -1
}

func (t *gramTable) find(g gram) *gramCell {
	for at := g.hash() >> t.shift; ; at = (at + 1) & uint32(len(t.cells)-1) {
		if c := &t.cells[at]; c.gram == g || c.from == c.to {
			return c
		}
	}
}

type numbers [64]uint64

const maxNumbers = 64 * 64

func (s *numbers) has(i int32) bool { return s[i>>6]>>(i&63)&1 != 0 }
func (s *numbers) add(i int32)      { s[i>>6] |= 1 << (i & 63) }

// These costs are subtracted from the remaining Work for each pattern, in addition to the number of bytes read.
const (
	costOfPattern = 16 // for each compared pattern, and for each match
	costOfSkipped = 2  // for each pattern skipped without comparing it
)

// matches calls yield for the patterns that match path, until *f.work is negative. path[:at] is the literal prefix of
// the patterns. The order does not depend on the path. matches does not allocate memory.
func (w *wilds[V]) matches(path string, at int, f *filter, yield func(*wildcard[V])) {
	missing := f.missing(len(w.few))
	for i := range w.few {
		c := &w.few[i]
		if *f.work < 0 {
			break
		}
		if *f.work -= costOfSkipped; c.needs&missing != 0 {
			continue
		}
		if *f.work -= costOfPattern + Work(len(path)-at); matchRest(c.rest, path[at:]) {
			yield(c)
		}
	}
	for from := 0; from < len(w.many) && *f.work >= 0; from += maxNumbers {
		*f.work -= Work(len(path) - at)
		w.matchInside(path, at, f.work, int32(from), yield)
	}
}

// matchInside tries up to maxNumbers patterns, beginning with many[from], and calls yield for each one that matches
// path.
func (w *wilds[V]) matchInside(path string, at int, work *Work, from int32, yield func(*wildcard[V])) {
	var tried, found numbers
	any := false
	for i := w.grams.next(path, at); i >= 0 && *work >= 0; i = w.grams.next(path, i+1) {
		cell := w.grams.find(gramAt(path, i))
		*work -= costOfPattern
		for k := max(cell.from, from); k < min(cell.to, from+maxNumbers); k++ {
			*work -= costOfSkipped
			c, n := &w.many[k], k-from
			begin := i - int(c.before)
			if tried.has(n) {
				continue
			}
			if *work -= costOfPattern; begin < at || !strings.HasPrefix(path[begin:], c.needle) {
				continue
			}
			tried.add(n)
			if c.alone {
				found.add(n)
				any = true
				continue
			}
			if *work -= Work(len(path) - at); matchRest(c.rest, path[at:]) {
				found.add(n)
				any = true
			}
		}
	}
	if !any {
		return
	}
	for word, set := range found {
		for ; set != 0; set &= set - 1 {
			*work -= costOfPattern
			yield(&w.many[int(from)+64*word+bits.TrailingZeros64(set)])
		}
	}
}
