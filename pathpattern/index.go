// SPDX-License-Identifier: Apache-2.0

package pathpattern

import (
	"math"
	"slices"
	"strings"
)

// Entry is a pattern with the value that an Index yields if the pattern matches.
type Entry[V any] struct {
	Pattern Pattern
	Value   V
}

// Index finds the patterns that match a path without trying all of them. It is a radix tree of the patterns' literal
// prefixes. The literal prefix of a pattern is the text before its first "*" or final "$". A wildcard pattern belongs
// to the node at the end of its literal prefix, and this node holds the rest of the pattern. An Index is immutable and
// safe for concurrent use.
type Index[V any] struct {
	nodes []node[V]
	size  int
}

// node is a node of an Index. text is the whole literal prefix that leads to the node. The children of a node are
// consecutive in Index.nodes. first holds, for each child, the byte that leads to the child.
type node[V any] struct {
	text   string
	first  string
	child  int32
	length int32 // the length of the pattern without wildcards that ends at the node, or 0 if there is none
	value  V
	wild   *wilds[V] // the wildcard patterns whose literal prefix is text, or nil
}

// NewIndex returns an index of the entries. merge combines the values of entries with equal patterns.
func NewIndex[V any](entries []Entry[V], merge func(a, b V) V) *Index[V] {
	sorted := sortEntries(entries, merge)
	x := &Index[V]{size: len(sorted), nodes: make([]node[V], 1)}
	todo := []run{{0, 0, len(sorted), 0}}
	for len(todo) > 0 {
		r := todo[len(todo)-1]
		todo = todo[:len(todo)-1]
		if r.from < r.to {
			todo = x.fill(sorted, r, todo)
		}
	}
	return x
}

type keyed[V any] struct {
	literal string
	Entry[V]
}

// sortEntries sorts entries by literal prefix and then by pattern. It merges entries with equal patterns.
func sortEntries[V any](entries []Entry[V], merge func(a, b V) V) []keyed[V] {
	ks := make([]keyed[V], len(entries))
	for i, e := range entries {
		ks[i] = keyed[V]{e.Pattern.literal(), e}
	}
	slices.SortStableFunc(ks, func(a, b keyed[V]) int {
		if c := strings.Compare(a.literal, b.literal); c != 0 {
			return c
		}
		return strings.Compare(a.Pattern.text, b.Pattern.text)
	})
	unique := ks[:0]
	for _, k := range ks {
		if n := len(unique); n > 0 && unique[n-1].Pattern == k.Pattern {
			unique[n-1].Value = merge(unique[n-1].Value, k.Value)
			continue
		}
		unique = append(unique, k)
	}
	return unique
}

// run describes a node that fill has to build. at is the index of the node. The node is for the sorted entries with the
// indices from "from" up to, but not including, "to". Their first skip bytes are equal.
type run struct{ at, from, to, skip int }

// fill builds the node that r describes, and appends its children to todo.
func (x *Index[V]) fill(sorted []keyed[V], r run, todo []run) []run {
	group := sorted[r.from:r.to]
	n := &x.nodes[r.at]
	// The literals are sorted. So if the first and the last have a common prefix, all of them have it.
	end := r.skip + commonPrefix(group[0].literal[r.skip:], group[len(group)-1].literal[r.skip:])
	n.text = group[0].literal[:end]
	var wild []wildcard[V]
	i := 0
	for ; i < len(group) && len(group[i].literal) == end; i++ {
		text, value := group[i].Pattern.text, group[i].Value
		if len(text) == end {
			n.length, n.value = int32(end), value
			continue
		}
		wild = append(wild, wildcard[V]{
			rest: text[end:], needs: needs(text[end:]), length: int32(group[i].Pattern.Len()), value: value,
		})
	}
	if len(wild) > 0 {
		n.wild = newWilds(wild)
	}
	n.child = int32(len(x.nodes))
	var first []byte
	for i < len(group) {
		c, from := group[i].literal[end], i
		for i < len(group) && group[i].literal[end] == c {
			i++
		}
		todo = append(todo, run{int(n.child) + len(first), r.from + from, r.from + i, end})
		first = append(first, c)
	}
	n.first = string(first)
	x.nodes = append(x.nodes, make([]node[V], len(first))...)
	return todo
}

// Len returns the number of different patterns.
func (x *Index[V]) Len() int { return x.size }

// Matches calls yield with the value of every pattern that matches path, which must be in normal form. For one
// index, the order is always the same. Patterns without wildcards are sorted by length.
func (x *Index[V]) Matches(path string, yield func(V)) {
	w := Work(math.MaxInt)
	x.MatchesWithin(path, &w, yield)
}

// Work is the number of bytes and patterns that an operation may still compare. A negative number means that the
// operation has reached its limit.
type Work int

// MatchesWithin does the same as Matches, but stops when *work is negative. In that case some matches may be missing.
func (x *Index[V]) MatchesWithin(path string, work *Work, yield func(V)) {
	x.matches(path, work, func(v *V) { yield(*v) })
}

// matches does the same as MatchesWithin, but calls yield with pointers to the values in the index.
func (x *Index[V]) matches(path string, work *Work, yield func(*V)) {
	f := filter{path: path, work: work}
	at, n := 0, int32(0)
	for *work >= 0 {
		nd := &x.nodes[n]
		if !strings.HasPrefix(path[at:], nd.text[at:]) {
			return
		}
		at = len(nd.text)
		if nd.length > 0 {
			*work -= costOfPattern
			yield(&nd.value)
		}
		if nd.wild != nil {
			nd.wild.matches(path, at, &f, func(c *wildcard[V]) { yield(&c.value) })
		}
		if at == len(path) {
			return
		}
		i := strings.IndexByte(nd.first, path[at])
		if i < 0 {
			return
		}
		n = nd.child + int32(i)
	}
}

func commonPrefix(a, b string) int {
	n := min(len(a), len(b))
	for i := range n {
		if a[i] != b[i] {
			return i
		}
	}
	return n
}

// filter excludes patterns that need a pair of neighboring bytes that the path does not contain.
type filter struct {
	path string
	work *Work
	made bool
	lack uint64
}

// worthwhile is the smallest number of patterns that makes the filter worth computing.
const worthwhile = 4

// missing returns the set of byte pairs that the path does not contain (see Pairs). patterns is the number of patterns
// to try. If it is too small for the filter to save time, missing may return 0, the empty set.
func (f *filter) missing(patterns int) uint64 {
	if !f.made && patterns >= worthwhile {
		f.made, f.lack = true, ^Pairs(f.path)
	}
	return f.lack
}

// Pairs returns a Bloom filter of the pairs of neighboring bytes in s.
func Pairs(s string) (m uint64) {
	for i := 1; i < len(s); i++ {
		m |= pair(s[i-1], s[i])
	}
	return m
}

func pair(a, b byte) uint64 { return 1 << ((uint(a)*29 + uint(b)*7) & 63) }

// Needs returns a Bloom filter of byte pairs that every path matching p contains.
func (p Pattern) Needs() uint64 { return needs(p.text) }

// needs returns a Bloom filter of the byte pairs that every text matching rest contains.
func needs(rest string) (m uint64) {
	rest = strings.TrimSuffix(rest, "$")
	for part := range strings.SplitSeq(rest, "*") {
		for i := 1; i < len(part); i++ {
			m |= pair(part[i-1], part[i])
		}
	}
	return m
}

// IsPlain reports whether the pattern has neither "*" nor "$".
func (p Pattern) IsPlain() bool { return !p.Wild() && !p.Anchored() }

// Prefix returns the text before the first "*" or final "$". Every matching path begins with this text. For a pattern
// that begins with "*", Prefix returns "/".
func (p Pattern) Prefix() string {
	if lit := p.literal(); lit != "" {
		return lit
	}
	return "/"
}

// Within reports whether p lies within q. If q has neither "*" nor "$", this means that the prefix of p begins with q.
// Otherwise it means that q covers p.
func (p Pattern) Within(q Pattern) bool {
	if q.IsPlain() {
		return strings.HasPrefix(p.Prefix(), q.text)
	}
	return q.Covers(p)
}
