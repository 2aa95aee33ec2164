// SPDX-License-Identifier: Apache-2.0

package deflateedit

import (
	"hash/adler32"
	"hash/crc32"
)

// A sumChange tells how edits near the beginning of a text change its checksum, without reading the
// rest: both checksums are linear in what precedes it.
type sumChange struct {
	crc            uint32 // XOR of the CRC-32 of the old and of the new beginning
	a, b           uint32 // differences of the two halves of Adler-32
	textEnd, delta int    // length of the old beginning, and how much the new one is longer
}

const adlerMod = 65521

func changeOfSum(text []byte, edits []Edit, gzip bool) (s sumChange) {
	s.textEnd = edits[len(edits)-1].End
	text = text[:s.textEnd]
	if gzip {
		s.crc = crc32.ChecksumIEEE(text)
	}
	var sum uint32
	z := adler32.New()
	add := func(b []byte) {
		if gzip {
			sum = crc32.Update(sum, crc32.IEEETable, b)
		} else {
			z.Write(b)
		}
		s.delta += len(b)
	}
	at := 0
	for _, e := range edits {
		add(text[at:e.Start])
		add(e.Text)
		at = e.End
	}
	s.delta -= s.textEnd
	if gzip {
		s.crc ^= sum
		return s
	}
	before, after := adler32.Checksum(text), z.Sum32()
	s.a = (after&0xFFFF + adlerMod - before&0xFFFF) % adlerMod
	s.b = (after>>16 + adlerMod - before>>16) % adlerMod
	return s
}

// crc32 returns the CRC-32 of the new text, given the old one's CRC-32 and length.
func (s *sumChange) crc32(old uint32, n int64) uint32 {
	return old ^ crcShift(s.crc, uint64(n)-uint64(s.textEnd))
}

// adler32 is crc32 for Adler-32. An impossible value stays as it is.
func (s *sumChange) adler32(old uint32, n int64) uint32 {
	if old&0xFFFF >= adlerMod || old>>16 >= adlerMod {
		return old
	}
	rest := uint32((uint64(n) - uint64(s.textEnd)) % adlerMod)
	a := (old&0xFFFF + s.a) % adlerMod
	b := uint32((uint64(old>>16) + uint64(s.b) + uint64(rest)*uint64(s.a)) % adlerMod)
	return b<<16 | a
}

// crcPower[i] is x to the power of 8·2^i modulo the CRC's polynomial.
var crcPower = func() (p [64]uint32) {
	p[0] = 1 << 23
	for i := 1; i < len(p); i++ {
		p[i] = crcMul(p[i-1], p[i-1])
	}
	return
}()

// crcShift returns what a CRC becomes when n zero bytes are appended.
func crcShift(crc uint32, n uint64) uint32 {
	for i := 0; n != 0; i, n = i+1, n>>1 {
		if n&1 != 0 {
			crc = crcMul(crcPower[i], crc)
		}
	}
	return crc
}

// crcMul multiplies polynomials whose lowest power is the highest bit.
func crcMul(x, y uint32) (r uint32) {
	for m := uint32(1) << 31; m != 0; m >>= 1 {
		if x&m != 0 {
			r ^= y
		}
		if y&1 != 0 {
			y = y>>1 ^ crc32.IEEE
		} else {
			y >>= 1
		}
	}
	return r
}
