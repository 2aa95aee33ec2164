// SPDX-License-Identifier: Apache-2.0

package pathpattern

import (
	"slices"
	"strings"
)

// IsPlain reports whether the pattern has neither "*" nor "$", so that it
// matches what begins with it.
func (p Pattern) IsPlain() bool { return !p.Wild() && !p.Anchored() }

// Prefix is the pattern's text up to its first "*" or "$": what every path that
// it matches begins with. A pattern that begins with "*" counts as "/*".
func (p Pattern) Prefix() string {
	if lit := p.literal(); lit != "" {
		return lit
	}
	return "/"
}

// Within reports whether p lies within q: whether p's prefix begins with a plain
// q, or q matches every path that p matches.
func (p Pattern) Within(q Pattern) bool {
	if q.IsPlain() {
		return strings.HasPrefix(p.Prefix(), q.text)
	}
	return q.Covers(p)
}

// compareCost is what one comparison of Containers costs beyond the bytes that
// it looks at.
const compareCost = 8

// Containers finds, for each of inner, which of outer it lies within: their
// places in outer, in order. None of outer is plain. The work is bounded by
// budget, in about as many nanoseconds; compared is how many of inner have been
// compared with all of outer, and those after them have no list.
func Containers(inner, outer []Pattern, budget int) (lists [][]int32, compared int) {
	c := newContainers(outer)
	lists = make([][]int32, len(inner))
	for i, p := range inner {
		var ok bool
		if lists[i], ok = c.of(p, &budget); !ok {
			lists[i] = nil
			return lists, i
		}
	}
	return lists, len(inner)
}

// containers are patterns by their literal prefixes.
type containers struct {
	patterns []Pattern
	needs    []uint64
	at       map[string][]int32
	lengths  []int // of the prefixes, each once
}

func newContainers(outer []Pattern) *containers {
	c := &containers{patterns: outer, needs: make([]uint64, len(outer)), at: map[string][]int32{}}
	for i, q := range outer {
		lit := q.literal()
		c.needs[i] = needs(q.text[len(lit):])
		c.at[lit] = append(c.at[lit], int32(i))
	}
	for lit := range c.at {
		c.lengths = append(c.lengths, len(lit))
	}
	slices.Sort(c.lengths)
	c.lengths = slices.Compact(c.lengths)
	return c
}

// of lists the patterns that p lies within. It fails when the budget ends.
func (c *containers) of(p Pattern, budget *int) (list []int32, ok bool) {
	sample := p.sample()
	lit := p.Prefix()
	lack := ^pairs(sample)
	for _, n := range c.lengths {
		if n > len(lit) {
			break
		}
		*budget -= n/compareCost + 1
		for _, i := range c.at[lit[:n]] {
			if *budget--; *budget < 0 {
				return nil, false
			}
			if c.needs[i]&lack != 0 {
				continue
			}
			*budget -= len(sample) - n + len(c.patterns[i].text) + compareCost
			if q := c.patterns[i]; matchRest(q.text[n:], sample[n:]) && (p.text[0] != '*' || q.Covers(p)) {
				list = append(list, i)
			}
		}
	}
	slices.Sort(list)
	return list, *budget >= 0
}
