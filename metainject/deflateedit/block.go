// SPDX-License-Identifier: Apache-2.0

package deflateedit

import (
	"encoding/binary"
	"math/bits"
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
	out      bitString
	litLen   [numLit + 2]uint8 // including the symbols that are never used (RFC 1951 section 3.2.6)
	distLen  [numDist + 2]uint8
	litCode  [numLit + 2]uint16
	distCode [numDist + 2]uint16
	isFixed  bool // the current codes are the fixed codes of RFC 1951
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

// block writes tokens as one block, which is not the last of the stream. It uses the fixed codes, because dynamic
// codes would make a page only about 30 bytes shorter.
func (w *blockWriter) block(toks []token) {
	w.out.add(1<<1, 3)
	w.fixedCodes()
	w.tokens(toks)
	w.endBlock()
}

// The lengths of the fixed codes (RFC 1951 section 3.2.6), including the symbols that are never used.
var (
	fixedLitLen = func() (l [numLit + 2]uint8) {
		for i := range l {
			switch {
			case i < 144 || i >= 280:
				l[i] = 8
			case i < 256:
				l[i] = 9
			default:
				l[i] = 7
			}
		}
		return
	}()
	fixedDistLen = func() (l [numDist + 2]uint8) {
		for i := range l {
			l[i] = 5
		}
		return
	}()
)

func (w *blockWriter) fixedCodes() {
	if w.isFixed {
		return
	}
	w.isFixed = true
	w.litLen, w.distLen = fixedLitLen, fixedDistLen
	canonical(w.litLen[:], w.litCode[:])
	canonical(w.distLen[:], w.distCode[:])
}

// use makes the writer use the codes of the inflater's current block.
func (w *blockWriter) use(d *inflater) {
	if d.lit != &d.own.lit {
		w.fixedCodes()
		return
	}
	w.isFixed = false
	lit, dist := d.lengths[:d.nlit], d.lengths[d.nlit:d.nlit+d.ndist]
	clear(w.litLen[copy(w.litLen[:], lit):])
	clear(w.distLen[copy(w.distLen[:], dist):])
	canonical(w.litLen[:], w.litCode[:])
	canonical(w.distLen[:], w.distCode[:])
}

func (w *blockWriter) has(toks []token) bool {
	for _, t := range toks {
		if t&isMatch == 0 {
			if w.litLen[t&0xFF] == 0 {
				return false
			}
		} else if w.litLen[257+int(lengthSymbol[t.length()])] == 0 || w.distLen[distSymbol(t.dist())] == 0 {
			return false
		}
	}
	return true
}

func (w *blockWriter) tokens(toks []token) {
	out := w.out
	for _, t := range toks {
		if t&isMatch == 0 {
			out.add(uint64(w.litCode[t&0xFF]), uint(w.litLen[t&0xFF]))
			continue
		}
		n, dist := t.length(), t.dist()
		l, d := int(lengthSymbol[n]), distSymbol(dist)
		k := uint(w.litLen[257+l])
		out.add(uint64(w.litCode[257+l])|uint64(n-int(lengthBase[l]))<<k, k+uint(lengthExtra[l]))
		k = uint(w.distLen[d])
		out.add(uint64(w.distCode[d])|uint64(dist-int(distBase[d]))<<k, k+uint(distExtra[d]))
	}
	w.out = out
}

func (w *blockWriter) endBlock() {
	w.out.add(uint64(w.litCode[endOfBlock]), uint(w.litLen[endOfBlock]))
}

// sync writes an empty stored block, which ends on a byte boundary.
func (w *blockWriter) sync() {
	w.out.add(0, 3)
	w.out.align()
	w.out.b = append(w.out.b, 0, 0, 0xFF, 0xFF)
}
