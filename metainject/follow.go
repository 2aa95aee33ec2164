// SPDX-License-Identifier: Apache-2.0

package metainject

import "encoding/binary"

// skipStored reads the bytes of a stored block.
func (d *inflater) skipStored() event {
	n := min(d.stored, len(d.src)-d.pos)
	d.pos += n
	d.text += int64(n)
	if d.stored -= n; d.stored > 0 {
		return needMore
	}
	return endBlock
}

// maxSkip is by how much skip may go beyond its limit: what the bits that are read
// at a time can stand for.
const maxSkip = 64 + maxMatch

// skip reads the symbols of a block without handing them out, until the text is as
// long as limit or longer, and stops before a match that reaches back before the
// place back in the text.
func (d *inflater) skip(back, limit int64) (ev event) {
	src, r, text := d.src, d.bitReader, d.text
	for text < limit {
		if r.nbits < 48 {
			if r.pos+8 <= len(src) {
				r.hold |= binary.LittleEndian.Uint64(src[r.pos:]) << r.nbits
				r.pos += int((63 - r.nbits) >> 3)
				r.nbits |= 56
			} else {
				for r.nbits <= 48 && r.pos < len(src) {
					r.hold |= uint64(src[r.pos]) << r.nbits
					r.pos++
					r.nbits += 8
				}
			}
		}
		hold, left := r.hold, r.nbits
		e := d.lit.table[hold&(1<<tableBits-1)]
		for e < 256<<4 && e&15 != 0 && left >= tableBits { // literals
			hold >>= e & 15
			left -= uint(e & 15)
			text++
			e = d.lit.table[hold&(1<<tableBits-1)]
		}
		r.hold, r.nbits = hold, left
		if left < 48 && r.pos < len(src) {
			continue
		}
		sym, k := uint(e>>4), uint(e&15)
		if e > endOfBlock<<4|15 && left >= 48 && k != 0 {
			// A match whose bits are all there, with codes that are in the tables.
			if took, length, dist := d.match(hold, sym, k); took != 0 && dist <= text-back {
				r.hold, r.nbits = hold>>took, left-took
				text += length
				continue
			}
		}
		if k == 0 || k > left {
			if sym, k = d.lit.find(hold, left); k == 0 {
				ev = r.short(15)
				break
			}
		}
		hold, left = hold>>k, left-k
		if sym < 256 {
			text++
			r.hold, r.nbits = hold, left
			continue
		}
		if sym == 256 {
			r.hold, r.nbits = hold, left
			ev = endBlock
			break
		}
		if sym > 285 {
			ev = badStream
			break
		}
		sym -= 257
		x := uint(lengthExtra[sym])
		if left < x {
			ev = needMore
			break
		}
		length := int64(lengthBase[sym]) + int64(hold&(1<<x-1))
		dist, bits, bad := d.distance(hold>>x, left-x)
		if dist == 0 {
			ev = bad
			break
		}
		if int64(dist) > text-back {
			ev = reaches
			break
		}
		r.hold, r.nbits = hold>>(x+bits), left-x-bits
		text += length
	}
	r.normalize()
	d.bitReader, d.text = r, text
	return ev
}

// match reads a match from hold: its length's symbol, which takes k bits, is sym.
// took is 0 if the tables do not tell.
func (d *inflater) match(hold uint64, sym, k uint) (took uint, length, dist int64) {
	sym -= 257
	if sym >= uint(len(lengthBase)) {
		return 0, 0, 0
	}
	x := uint(lengthExtra[sym])
	length = int64(lengthBase[sym]) + int64(hold>>k&(1<<x-1))
	took = k + x
	e := d.dist.table[hold>>took&(1<<tableBits-1)]
	s := uint(e >> 4)
	if e&15 == 0 || s >= uint(len(distBase)) {
		return 0, 0, 0
	}
	took += uint(e & 15)
	x = uint(distExtra[s])
	return took + x, length, int64(distBase[s]) + int64(hold>>took&(1<<x-1))
}
