// SPDX-License-Identifier: Apache-2.0

package deflateedit

import "encoding/binary"

var (
	lengthBase  = [29]uint16{3, 4, 5, 6, 7, 8, 9, 10, 11, 13, 15, 17, 19, 23, 27, 31, 35, 43, 51, 59, 67, 83, 99, 115, 131, 163, 195, 227, 258}
	lengthExtra = [29]uint8{0, 0, 0, 0, 0, 0, 0, 0, 1, 1, 1, 1, 2, 2, 2, 2, 3, 3, 3, 3, 4, 4, 4, 4, 5, 5, 5, 5, 0}
	distBase    = [30]uint16{1, 2, 3, 4, 5, 7, 9, 13, 17, 25, 33, 49, 65, 97, 129, 193, 257, 385, 513, 769, 1025, 1537, 2049, 3073, 4097, 6145, 8193, 12289, 16385, 24577}
	distExtra   = [30]uint8{0, 0, 0, 0, 1, 1, 2, 2, 3, 3, 4, 4, 5, 5, 6, 6, 7, 7, 8, 8, 9, 9, 10, 10, 11, 11, 12, 12, 13, 13}
)

// fill makes at least 56 bits available, or all remaining bits of src.
func (r *bitReader) fill(src []byte) {
	if r.pos+8 <= len(src) {
		r.hold |= binary.LittleEndian.Uint64(src[r.pos:]) << r.nbits
		r.pos += int((63 - r.nbits) >> 3)
		r.nbits |= 56
		return
	}
	for r.nbits <= 48 && r.pos < len(src) {
		r.hold |= uint64(src[r.pos]) << r.nbits
		r.pos++
		r.nbits += 8
	}
}

const tableMask = 1<<tableBits - 1

// longest is the maximum number of bits of a match.
const longest = 15 + 5 + 15 + 13

// symbols reads tokens of a block with Huffman codes.
func (d *inflater) symbols(toks []token, limit int) (n int, ev event) {
	r, text := d.bitReader, 0
	for n < len(toks) && text < limit {
		if r.nbits < longest {
			r.fill(d.src)
		}
		if e := d.lit.table[r.hold&tableMask]; e&isLiteral != 0 && e.all() <= r.nbits {
			toks[n] = token(e >> 16)
			n++
			text++
			r.hold >>= e & 63
			r.nbits -= e.all()
			continue
		}
		took, t, found := d.symbol(r.hold, r.nbits)
		if found == gotSome && t&isMatch != 0 && int64(t.dist()) > d.text+int64(text) {
			found = badStream
		}
		if ev = found; ev == gotSome || ev == endBlock {
			r.hold >>= took
			r.nbits -= took
		}
		if ev != gotSome {
			break
		}
		toks[n] = t
		n++
		text += t.size()
	}
	r.normalize()
	d.bitReader = r
	d.text += int64(text)
	return n, ev
}

// symbol reads one token or the end of the block from hold. Only the lowest bits of hold are valid, and left is their
// number. took is the number of bits that it read.
func (d *inflater) symbol(hold uint64, left uint) (took uint, t token, ev event) {
	if e := d.lit.table[hold&tableMask]; e&isLength != 0 && left >= longest {
		if f := d.dist.table[hold>>e.all()&tableMask]; f != 0 {
			return e.all() + f.all(), match(int(e.value(hold)), int(f.value(hold>>e.all()))), gotSome
		}
	}
	sym, n := d.lit.find(hold, left)
	switch {
	case n == 0:
		return 0, 0, short(left)
	case sym < endOfBlock:
		return n, token(sym), gotSome
	case sym == endOfBlock:
		return n, 0, endBlock
	case sym > 285:
		return 0, 0, badStream
	}
	x := uint(lengthExtra[sym-257])
	if left < n+x {
		return 0, 0, needMore
	}
	length := int(lengthBase[sym-257]) + int(hold>>n&(1<<x-1))
	took = n + x
	hold, left = hold>>took, left-took
	sym, n = d.dist.find(hold, left)
	if n == 0 {
		return 0, 0, short(left)
	}
	if sym > 29 {
		return 0, 0, badStream
	}
	if x = uint(distExtra[sym]); left < n+x {
		return 0, 0, needMore
	}
	return took + n + x, match(length, int(distBase[sym])+int(hold>>n&(1<<x-1))), gotSome
}

// short returns the reason why the available bits do not begin with a valid code. left is the number of these bits. If
// they are enough for the longest code, the stream is corrupt. If not, more input is needed.
func short(left uint) event {
	if left < 15 {
		return needMore
	}
	return badStream
}

func (d *inflater) skipStored() event {
	n := min(d.stored, len(d.src)-d.pos)
	d.pos += n
	d.text += int64(n)
	if d.stored -= n; d.stored > 0 {
		return needMore
	}
	return endBlock
}

// maxSkip is the maximum number of bytes that skip reads beyond its limit: two literals and a match.
const maxSkip = 2 + maxMatch

// skip reads symbols until the text has limit bytes. If it finds a match that copies text from before the position
// back, it stops before this match and returns the event reaches.
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

// skipTabled is the fast part of skip. It stops at symbols whose codes are not in the tables (see huffman), and shortly
// before the end of the input. The package spends most of its time in this function. It looks up the next symbol before
// it refills the bit buffer, so that neither operation waits for the other.
func (d *inflater) skipTabled(r bitReader, text, back, limit int64) (bitReader, int64) {
	src, lit, dist := d.src, &d.lit.table, &d.dist.table
	r.fill(src)
	pos, hold, left := r.pos, r.hold, r.nbits
	e := lit[hold&tableMask]
	for text < limit && pos+16 <= len(src) {
		hold |= binary.LittleEndian.Uint64(src[pos:]) << (left & 63)
		pos += int((63 - left) >> 3)
		left |= 56
		// Now all 64 bits of hold are valid. They are enough for a literal, a match with its extra bits, and looking up the
		// next symbol in a table with up to 11 bits.
		if e&isLiteral != 0 {
			hold >>= e & 63
			left -= e.all()
			text++
			if e = lit[hold&tableMask]; e&isLiteral != 0 {
				hold >>= e & 63
				left -= e.all()
				text++
				if e = lit[hold&tableMask]; e&isLiteral != 0 {
					hold >>= e & 63
					left -= e.all()
					text++
					e = lit[hold&tableMask]
					continue
				}
				hold |= binary.LittleEndian.Uint64(src[pos:]) << (left & 63)
				pos += int((63 - left) >> 3)
				left |= 56
			}
		}
		behind := hold >> (e & 63)
		f := dist[behind&tableMask]
		if e&isLength == 0 || f == 0 || int64(f.value(behind)) > text-back {
			break
		}
		text += int64(e.value(hold))
		hold = behind >> (f & 63)
		left -= e.all() + f.all()
		e = lit[hold&tableMask]
	}
	r.pos, r.hold, r.nbits = pos, hold, left
	return r, text
}
