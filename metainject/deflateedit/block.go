// SPDX-License-Identifier: Apache-2.0

package deflateedit

import (
	"encoding/binary"
	"math/bits"
)

// bitString is a string of bits, least significant first.
type bitString struct {
	b   []byte // whole bytes
	acc uint64 // what does not fill one yet
	n   uint   // bits in acc, fewer than 32 between calls
}

func (s *bitString) reset() { s.b, s.acc, s.n = s.b[:0], 0, 0 }

// add appends the low n bits of v, n at most 32.
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
	s.b = append(s.b, b...) // for the length; the bits are shifted below
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
	maxCodeBits = 14 // keeps the length 15, and so a 19th code length, out of headers
	endOfBlock  = 256
	numLit      = 286
	numDist     = 30
)

// A blockWriter writes tokens as deflate blocks.
type blockWriter struct {
	out      bitString
	litFreq  [numLit]uint32
	distFreq [numDist]uint32
	codeFreq [19]uint32
	litLen   [numLit + 2]uint8 // with the symbols that are never used (RFC 1951 section 3.2.6)
	distLen  [numDist + 2]uint8
	codeLen  [19]uint8
	litCode  [numLit + 2]uint16
	distCode [numDist + 2]uint16
	isFixed  bool // the codes are the fixed ones
	codeCode [19]uint16
	runs     []uint16 // code lengths as they are sent: symbol | extra bits << 5
	tree     treeBuilder
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

// fewTokens are too few to pay for the header of a dynamic block.
const fewTokens = 32

// block writes tokens as one block, which is not the last, with codes of its own or the fixed ones,
// whichever is shorter.
func (w *blockWriter) block(toks []token) {
	if len(toks) < fewTokens || w.fixedIsShorter(toks) {
		w.out.add(1<<1, 3)
		w.fixedCodes()
	} else {
		w.header()
	}
	w.tokens(toks)
	w.endBlock()
}

// fixedIsShorter makes codes for the tokens and reports whether the fixed codes need no more bits.
func (w *blockWriter) fixedIsShorter(toks []token) bool {
	clear(w.litFreq[:])
	clear(w.distFreq[:])
	w.litFreq[endOfBlock] = 1
	for _, t := range toks {
		if t&isMatch == 0 {
			w.litFreq[t&0xFF]++
			continue
		}
		w.litFreq[257+int(lengthSymbol[t.length()])]++
		w.distFreq[distSymbol(t.dist())]++
	}
	own, fixed := w.makeCodes(), 3
	for i, f := range w.litFreq {
		own += int(f) * int(w.litLen[i])
		fixed += int(f) * int(fixedLitLen[i])
	}
	for i, f := range w.distFreq {
		own += int(f) * int(w.distLen[i])
		fixed += int(f) * 5
	}
	return fixed <= own
}

// The lengths of the fixed codes (RFC 1951 section 3.2.6), with the symbols that are never used.
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

// makeCodes builds a block's own codes and returns the bits that its header takes.
func (w *blockWriter) makeCodes() int {
	w.isFixed = false
	w.tree.lengths(w.litFreq[:], w.litLen[:numLit], maxCodeBits)
	w.tree.lengths(w.distFreq[:], w.distLen[:numDist], maxCodeBits)
	clear(w.litLen[numLit:])
	clear(w.distLen[numDist:])
	canonical(w.litLen[:], w.litCode[:])
	canonical(w.distLen[:], w.distCode[:])
	w.runLengths()
	clear(w.codeFreq[:])
	n := 3 + 14 + 3*19
	for _, r := range w.runs {
		w.codeFreq[r&31]++
	}
	w.tree.lengths(w.codeFreq[:], w.codeLen[:], 7)
	canonical(w.codeLen[:], w.codeCode[:])
	for i, f := range w.codeFreq {
		n += int(f) * (int(w.codeLen[i]) + runExtra(i))
	}
	return n
}

func (w *blockWriter) used() (nlit, ndist int) {
	nlit, ndist = numLit, numDist
	for nlit > 257 && w.litLen[nlit-1] == 0 {
		nlit--
	}
	for ndist > 1 && w.distLen[ndist-1] == 0 {
		ndist--
	}
	return nlit, ndist
}

func runExtra(sym int) int {
	switch sym {
	case 16:
		return 2
	case 17:
		return 3
	case 18:
		return 7
	}
	return 0
}

// runLengths encodes the lengths of both codes as runs (RFC 1951 section 3.2.7).
func (w *blockWriter) runLengths() {
	nlit, ndist := w.used()
	var all [numLit + numDist]uint8
	l := append(append(all[:0], w.litLen[:nlit]...), w.distLen[:ndist]...)
	w.runs = w.runs[:0]
	for i := 0; i < len(l); {
		v, n := l[i], 1
		for i+n < len(l) && l[i+n] == v {
			n++
		}
		i += n
		if v != 0 {
			w.runs = append(w.runs, uint16(v))
			n--
		}
		for n >= 3 {
			switch {
			case v != 0:
				k := min(n, 6)
				w.runs = append(w.runs, 16|uint16(k-3)<<5)
				n -= k
			case n <= 10:
				w.runs = append(w.runs, 17|uint16(n-3)<<5)
				n = 0
			default:
				k := min(n, 138)
				w.runs = append(w.runs, 18|uint16(k-11)<<5)
				n -= k
			}
		}
		for ; n > 0; n-- {
			w.runs = append(w.runs, uint16(v))
		}
	}
}

func (w *blockWriter) header() {
	nlit, ndist := w.used()
	ncode := 19
	for ncode > 4 && w.codeLen[codeOrder[ncode-1]] == 0 {
		ncode--
	}
	w.out.add(2<<1, 3)
	w.out.add(uint64(nlit-257)|uint64(ndist-1)<<5|uint64(ncode-4)<<10, 14)
	for _, c := range codeOrder[:ncode] {
		w.out.add(uint64(w.codeLen[c]), 3)
	}
	for _, r := range w.runs {
		sym := r & 31
		w.out.add(uint64(w.codeCode[sym]), uint(w.codeLen[sym]))
		w.out.add(uint64(r>>5), uint(runExtra(int(sym))))
	}
}

// use adopts the codes of the inflater's current block.
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
