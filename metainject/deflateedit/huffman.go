// SPDX-License-Identifier: Apache-2.0

package deflateedit

import (
	"math/bits"
	"sync"
)

const tableBits = 11

// An entry describes a code:
//   - Bits 0 to 5 are the number of bits of the code plus its extra bits. They come first because a processor uses
//     the lowest six bits of a shift without masking.
//   - Bits 8 to 12 are the number of bits of the code alone.
//   - The bits from 16 are the literal, or the length or distance for extra bits of zero.
//
// 0 means that the code does not exist.
type entry uint32

const (
	isLiteral entry = 1 << 7
	isLength  entry = 1 << 6
)

func (e entry) all() uint { return uint(e & 63) }

// value returns the literal, length or distance of a symbol. The lowest bits of hold are the symbol's code and its
// extra bits.
func (e entry) value(hold uint64) uint {
	n := e >> 8 & 31
	return uint(e>>16) + uint(hold>>n&(1<<(e&63-n)-1))
}

// The entries of the symbols in the alphabet of literals and lengths, and in the alphabet of distances. The number of
// bits of the code is still missing in these entries, and build adds it.
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

// huffman is one canonical code. To decode it, huffman looks up short codes in a table, and reads long ones bit by bit.
type huffman struct {
	// table is indexed by the next tableBits bits of the stream. An element is 0 for longer codes, invalid codes and
	// the end of a block.
	table  [1 << tableBits]entry
	count  [16]uint16
	symbol [288]uint16
	code   [288]uint16 // code of each symbol, whose lowest bit is sent first
	length [288]uint8  // number of bits of each code; 0 if the symbol has no code
}

// build makes the code with the given lengths, and reports whether such a code exists. If entries is
// not empty, build fills the table. If loose is true, the code may be incomplete in the two ways that zlib accepts: it
// has no symbols, or a single symbol of one bit.
func (h *huffman) build(lengths []uint8, entries []entry, loose bool) bool {
	h.count = [16]uint16{}
	for _, l := range lengths {
		h.count[l]++
	}
	h.count[0] = 0
	left, longest := 1, 0
	var offset, next [17]uint16
	for l := 1; l <= 15; l++ {
		left = left<<1 - int(h.count[l])
		if left < 0 {
			return false
		}
		if h.count[l] > 0 {
			longest = l
		}
		offset[l+1] = offset[l] + h.count[l]
		next[l+1] = (next[l] + h.count[l]) << 1
	}
	if left > 0 && (!loose || longest > 1) {
		return false
	}
	if entries != nil {
		clear(h.table[:])
	}
	clear(h.length[copy(h.length[:], lengths):])
	for sym, l := range lengths {
		if l == 0 {
			continue
		}
		h.symbol[offset[l]] = uint16(sym)
		offset[l]++
		h.code[sym] = bits.Reverse16(next[l]) >> (16 - l)
		next[l]++
		if l > tableBits || entries == nil || entries[sym] == 0 {
			continue
		}
		e := entries[sym] + entry(l)<<8 + entry(l)
		for i := h.code[sym]; i < 1<<tableBits; i += 1 << l {
			h.table[i] = e
		}
	}
	return true
}

// fixedHuffman returns the fixed codes (RFC 1951 section 3.2.6). They are built only once, because building them takes
// much longer than reading a short block that uses them.
var fixedHuffman = sync.OnceValues(func() (lit, dist *huffman) {
	lit, dist = new(huffman), new(huffman)
	lit.build(fixedLitLen, litEntries[:], false)
	dist.build(fixedDistLen, distEntries[:], false)
	return
})

// find decodes a symbol from hold. Only the lowest bits of hold are valid, and left is their number. n is the number of
// bits of the symbol's code, or 0 if there are not enough bits or the code does not exist.
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
