// SPDX-License-Identifier: Apache-2.0

package deflateedit

import (
	"math/bits"
	"slices"
	"sync"
)

const tableBits = 11

// An entry tells what a code stands for: bits 0 to 5 are the number of bits of the code and its extra bits, 8 to
// 12 those of the code, from 16 the literal, or the length or distance for extra bits of zero. 0 is no code. The
// shift of the bit buffer comes first, because a processor shifts by the lowest six bits as they are.
type entry uint32

const (
	isLiteral entry = 1 << 7
	isLength  entry = 1 << 6
)

func (e entry) all() uint { return uint(e & 63) }

// value returns what the code in the lowest bits of hold stands for.
func (e entry) value(hold uint64) uint {
	n := e >> 8 & 31
	return uint(e>>16) + uint(hold>>n&(1<<(e&63-n)-1))
}

// The entries of the symbols of both alphabets, for codes of no bits.
var (
	litEntries = func() (t [288]entry) {
		for i := range 256 {
			t[i] = isLiteral | entry(i)<<16
		}
		for i, base := range lengthBase {
			t[257+i] = isLength | entry(base)<<16 | entry(lengthExtra[i])
		}
		return
	}()
	distEntries = func() (t [32]entry) {
		for i, base := range distBase {
			t[i] = entry(base)<<16 | entry(distExtra[i])
		}
		return
	}()
)

// huffman decodes one canonical code: short codes by a table, long ones bit by bit.
type huffman struct {
	// By the next bits of the stream; 0 for longer and invalid codes and the end of a block.
	table  [1 << tableBits]entry
	count  [16]uint16
	symbol [288]uint16
	// The code of endOfBlock, if there is one.
	endCode uint16
	endLen  uint8
}

// build makes the decoder for a code with these lengths, if there is one, and fills the table if there are
// entries. loose allows zlib's incomplete codes: no symbol, or one of one bit.
func (h *huffman) build(lengths []uint8, entries []entry, loose bool) bool {
	h.count = [16]uint16{}
	for _, l := range lengths {
		h.count[l]++
	}
	h.count[0] = 0
	left, longest := 1, 0
	var offset, code [17]uint16
	for l := 1; l <= 15; l++ {
		left = left<<1 - int(h.count[l])
		if left < 0 {
			return false
		}
		if h.count[l] > 0 {
			longest = l
		}
		offset[l+1] = offset[l] + h.count[l]
		code[l+1] = (code[l] + h.count[l]) << 1
	}
	if left > 0 && (!loose || longest > 1) {
		return false
	}
	if entries != nil {
		clear(h.table[:])
	}
	for sym, l := range lengths {
		if l == 0 {
			continue
		}
		h.symbol[offset[l]] = uint16(sym)
		offset[l]++
		c := code[l]
		code[l]++
		if sym == endOfBlock {
			h.endCode, h.endLen = bits.Reverse16(c)>>(16-l), l
		}
		if l > tableBits || entries == nil || entries[sym] == 0 {
			continue
		}
		e := entries[sym] + entry(l)<<8 + entry(l)
		for i := bits.Reverse16(c) >> (16 - l); i < 1<<tableBits; i += 1 << l {
			h.table[i] = e
		}
	}
	return true
}

// fixedHuffman returns the fixed codes (RFC 1951 section 3.2.6), built once: a block may have ten bits only.
var fixedHuffman = sync.OnceValues(func() (lit, dist *huffman) {
	lit, dist = new(huffman), new(huffman)
	lit.build(fixedLitLen[:], litEntries[:], false)
	dist.build(fixedDistLen[:], distEntries[:], false)
	return
})

// find decodes a symbol from the lowest left bits of hold; n is 0 without enough bits, or such a code.
func (h *huffman) find(hold uint64, left uint) (sym, n uint) {
	code, first, index := 0, 0, 0
	for n = 1; n <= min(15, left); n++ {
		code |= int(hold & 1)
		hold >>= 1
		count := int(h.count[n])
		if code-count < first {
			return uint(h.symbol[index+code-first]), n
		}
		index += count
		first = (first + count) << 1
		code <<= 1
	}
	return 0, 0
}

// canonical computes the codes of these lengths, to be sent from the lowest bit.
func canonical(lengths []uint8, codes []uint16) {
	var count, next [17]uint16
	for _, l := range lengths {
		count[l]++
	}
	count[0] = 0
	for l := 1; l < 16; l++ {
		next[l+1] = (next[l] + count[l]) << 1
	}
	for i, l := range lengths {
		if l > 0 {
			codes[i] = bits.Reverse16(next[l]) >> (16 - l)
			next[l]++
		}
	}
}

// treeBuilder builds Huffman codes of limited length.
type treeBuilder struct {
	leaf   []uint32 // frequency << 9 | symbol
	weight [2 * numLit]uint32
	parent [2 * numLit]uint16
}

// lengths assigns code lengths up to limit to the symbols that occur, at least two, so that the code is complete.
func (t *treeBuilder) lengths(freq []uint32, lengths []uint8, limit int) {
	t.leaf = t.leaf[:0]
	for i, f := range freq {
		lengths[i] = 0
		if f > 0 {
			t.leaf = append(t.leaf, f<<9|uint32(i))
		}
	}
	for i := 0; len(t.leaf) < 2; i++ {
		if freq[i] == 0 {
			t.leaf = append(t.leaf, 1<<9|uint32(i))
		}
	}
	slices.Sort(t.leaf)
	// Two queues: leaves, and the nodes made so far, both by weight.
	n := len(t.leaf)
	for i, l := range t.leaf {
		t.weight[i] = l >> 9
	}
	leafAt, nodeAt := 0, n
	take := func(end int) (i int) {
		if leafAt < n && (nodeAt == end || t.weight[leafAt] <= t.weight[nodeAt]) {
			i, leafAt = leafAt, leafAt+1
		} else {
			i, nodeAt = nodeAt, nodeAt+1
		}
		return i
	}
	for node := n; node < 2*n-1; node++ {
		a := take(node)
		b := take(node)
		t.weight[node] = t.weight[a] + t.weight[b]
		t.parent[a], t.parent[b] = uint16(node), uint16(node)
	}
	// How many codes of each length; a node's depth replaces its weight.
	var count [numLit + 1]int
	t.weight[2*n-2] = 0
	for i := 2*n - 3; i >= 0; i-- {
		t.weight[i] = t.weight[t.parent[i]] + 1
		if i < n {
			count[min(int(t.weight[i]), limit)]++
		}
	}
	fit(count[:limit+1])
	// The rarest symbols get the longest codes.
	i := 0
	for l := limit; l > 0; l-- {
		for ; count[l] > 0; count[l]-- {
			lengths[t.leaf[i]&511] = uint8(l)
			i++
		}
	}
}

// fit lengthens codes, given the number of each length, until Kraft's inequality holds after some were cut.
func fit(count []int) {
	limit := len(count) - 1
	room := 0
	for l := 1; l <= limit; l++ {
		room += count[l] << (limit - l)
	}
	for ; room > 1<<limit; room-- {
		count[limit]--
		l := limit - 1
		for count[l] == 0 {
			l--
		}
		count[l]--
		count[l+1] += 2
	}
}
