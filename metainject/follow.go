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

// maxSkip is by how much skip may go beyond its limit: a literal and a match.
const maxSkip = 1 + maxMatch

// skip reads the symbols of a block without handing them out, until the text is as
// long as limit or longer, and stops before a match that reaches back before the
// place back in the text.
func (d *inflater) skip(back, limit int64) (ev event) {
	r, text := d.bitReader, d.text
	for ev == gotSome {
		if r, text = d.skipTabled(r, text, back, limit); text >= limit {
			break
		}
		r.fill(d.src)
		var took uint
		var t token
		switch took, t, ev = d.symbol(r.hold, r.nbits); {
		case ev != gotSome:
		case t&isMatch == 0:
			text++
		case int64(t.dist()) > text-back:
			took, ev = 0, reaches
		default:
			text += int64(t.length())
		}
		r.hold >>= took
		r.nbits -= took
	}
	r.normalize()
	d.bitReader, d.text = r, text
	return ev
}

// skipTabled is skip as far as all is in the tables, and far enough from the end of
// what has come. What a symbol begins with is looked up before bits are added
// behind it, so that the one does not wait for the other.
func (d *inflater) skipTabled(r bitReader, text, back, limit int64) (bitReader, int64) {
	src, lit, dist := d.src, &d.lit.table, &d.dist.table
	r.fill(src)
	pos, hold, left := r.pos, r.hold, r.nbits
	e := lit[hold&tableMask]
	for text < limit && pos+16 <= len(src) {
		hold |= binary.LittleEndian.Uint64(src[pos:]) << (left & 63)
		pos += int((63 - left) >> 3)
		left |= 56
		if e&isLiteral != 0 {
			hold >>= e & 31
			left -= uint(e & 31)
			text++
			if e = lit[hold&tableMask]; e&isLiteral != 0 {
				hold >>= e & 31
				left -= uint(e & 31)
				text++
				e = lit[hold&tableMask]
				continue
			}
			hold |= binary.LittleEndian.Uint64(src[pos:]) << (left & 63)
			pos += int((63 - left) >> 3)
			left |= 56
		}
		behind := hold >> (e >> 8 & 63)
		f := dist[behind&tableMask]
		if e&isLength == 0 || f == 0 || int64(f.value(behind)) > text-back {
			break
		}
		text += int64(e.value(hold))
		hold = behind >> (f >> 8 & 63)
		left -= e.all() + f.all()
		e = lit[hold&tableMask]
	}
	r.pos, r.hold, r.nbits = pos, hold, left
	return r, text
}
