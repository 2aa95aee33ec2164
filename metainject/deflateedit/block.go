// SPDX-License-Identifier: Apache-2.0

package deflateedit

import (
	"bytes"
	"encoding/binary"
	"math/bits"
	"slices"
)

// bitString is a string of bits, least significant first.
type bitString struct {
	b   []byte // whole bytes
	acc uint64 // bits that are not in b yet
	n   uint   // bits in acc, fewer than 32 between calls
}

func (s *bitString) reset() { s.b, s.acc, s.n = s.b[:0], 0, 0 }

// add appends the lowest n bits of v. n is at most 32.
func (s *bitString) add(v uint64, n uint) {
	s.acc |= v << s.n
	s.n += n
	if s.n >= 32 {
		s.b = binary.LittleEndian.AppendUint32(s.b, uint32(s.acc))
		s.acc >>= 32
		s.n -= 32
	}
}

// settle moves the whole bytes of acc into b.
func (s *bitString) settle() {
	for s.n >= 8 {
		s.b = append(s.b, byte(s.acc))
		s.acc >>= 8
		s.n -= 8
	}
}

func (s *bitString) align() {
	s.n = (s.n + 7) &^ 7
	s.settle()
}

func (s *bitString) addBytes(b []byte) {
	s.settle()
	if s.n == 0 {
		s.b = append(s.b, b...)
		return
	}
	at, n := len(s.b), s.n
	s.b = append(s.b, b...) // this only sets the length; the loop below writes the shifted bits
	to, acc := s.b[at:], s.acc
	for ; len(b) >= 8; b, to = b[8:], to[8:] {
		v := binary.LittleEndian.Uint64(b)
		binary.LittleEndian.PutUint64(to, acc|v<<n)
		acc = v >> (64 - n)
	}
	for i, c := range b {
		v := acc | uint64(c)<<n
		to[i] = byte(v)
		acc = v >> 8
	}
	s.acc = acc
}

func (s *bitString) addBits(t *bitString) {
	for _, c := range t.b {
		s.add(uint64(c), 8)
	}
	s.add(t.acc, t.n)
}

const (
	endOfBlock = 256
	numLit     = 286
	numDist    = 30
)

// A blockWriter writes tokens as deflate blocks.
type blockWriter struct {
	out       bitString
	lit, dist *huffman // the codes of the current block
}

var lengthSymbol = func() (t [259]uint8) {
	for sym, base := range lengthBase {
		for n := int(base); n < min(259, int(base)+1<<lengthExtra[sym]); n++ {
			t[n] = uint8(sym)
		}
	}
	return
}()

func distSymbol(dist int) int {
	if dist <= 4 {
		return dist - 1
	}
	n := bits.Len(uint(dist-1)) - 1
	return 2*n + (dist-1)>>(n-1)&1
}

// block writes tokens as one block, and does not mark it as the final block. It uses the fixed codes, because dynamic
// codes would make a page only about 30 bytes shorter.
func (w *blockWriter) block(toks []token) {
	w.out.add(1<<1, 3)
	w.lit, w.dist = fixedHuffman()
	w.tokens(toks)
	w.endBlock()
}

// The lengths of the fixed codes (RFC 1951 section 3.2.6), including the symbols that are never used.
var (
	fixedLitLen = slices.Concat(
		bytes.Repeat([]byte{8}, 144),
		bytes.Repeat([]byte{9}, 112),
		bytes.Repeat([]byte{7}, 24),
		bytes.Repeat([]byte{8}, 8),
	)
	fixedDistLen = bytes.Repeat([]byte{5}, numDist+2)
)

// has reports whether the codes have a symbol for each token.
func (w *blockWriter) has(toks []token) bool {
	for _, t := range toks {
		if t&isMatch == 0 {
			if w.lit.length[t&0xFF] == 0 {
				return false
			}
		} else if w.lit.length[257+int(lengthSymbol[t.length()])] == 0 || w.dist.length[distSymbol(t.dist())] == 0 {
			return false
		}
	}
	return true
}

func (w *blockWriter) tokens(toks []token) {
	out, lit, dist := w.out, w.lit, w.dist
	for _, t := range toks {
		if t&isMatch == 0 {
			out.add(uint64(lit.code[t&0xFF]), uint(lit.length[t&0xFF]))
			continue
		}
		n, back := t.length(), t.dist()
		l, d := int(lengthSymbol[n]), distSymbol(back)
		k := uint(lit.length[257+l])
		out.add(uint64(lit.code[257+l])|uint64(n-int(lengthBase[l]))<<k, k+uint(lengthExtra[l]))
		k = uint(dist.length[d])
		out.add(uint64(dist.code[d])|uint64(back-int(distBase[d]))<<k, k+uint(distExtra[d]))
	}
	w.out = out
}

func (w *blockWriter) endBlock() {
	w.out.add(uint64(w.lit.code[endOfBlock]), uint(w.lit.length[endOfBlock]))
}

// sync writes an empty stored block, which ends on a byte boundary.
func (w *blockWriter) sync() {
	w.out.add(0, 3)
	w.out.align()
	w.out.b = append(w.out.b, 0, 0, 0xFF, 0xFF)
}
