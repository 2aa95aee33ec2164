// SPDX-License-Identifier: Apache-2.0

package deflateedit

import "encoding/binary"

// An inflater reads a deflate stream (RFC 1951) token by token. It does not produce the text, because that costs
// much more than reading the tokens.
type inflater struct {
	bitReader
	src     []byte // the input; read from bitReader.pos
	buf     []byte // storage of src, unless src belongs to the caller
	state   inflateState
	final   bool
	stored  int      // the number of bytes that are left in a stored block
	text    int64    // length of the text so far
	lit     *huffman // the codes of the current block
	dist    *huffman
	own     struct{ lit, dist huffman }
	lengths [numLit + numDist]uint8 // lengths of dynamic codes: first of the literals, then of the distances
	head    bitString               // header of the current block with its "last" bit clear; empty for a stored one
	blocks  int                     // the number of block headers that have been read
	first   bitReader               // the position after the first header
}

// bitReader is a position in a stream of bits. It reads the least significant bit of each byte first. hold has nbits
// bits of the bytes before pos that have not been read yet. Between calls of the inflater's methods, these are fewer
// than eight bits.
type bitReader struct {
	pos   int
	hold  uint64
	nbits uint
}

type inflateState uint8

const (
	atHeader inflateState = iota
	inSymbols
	inStored
	streamOver
)

// An event is the reason why the inflater stopped.
type event uint8

const (
	gotSome  event = iota // the requested amount was read
	needMore              // more input is needed
	gotBlock              // a header has been read
	endBlock              // the block is complete
	endStream
	badStream // the stream is invalid at the reader's position
	reaches   // a match has a larger distance than allowed
)

// A token is a literal byte or a match. The top bit marks a match. Bits 16 to 24 are its length, and the lower 16
// bits are its distance.
type token uint32

const isMatch token = 1 << 31

func match(length, dist int) token { return isMatch | token(length)<<16 | token(dist) }

func (t token) length() int { return int(t>>16) & 0x1FF }
func (t token) dist() int   { return int(t & 0xFFFF) }

func (t token) size() int {
	if t&isMatch != 0 {
		return t.length()
	}
	return 1
}

func (d *inflater) reset() {
	d.bitReader, d.src, d.state, d.text, d.blocks = bitReader{}, nil, atHeader, 0, 0
}

// rewind moves the reader back to the beginning of the stream. If the reader is still in the first block, rewind
// moves it to the end of that block's header, so that the codes of the block need not be built again.
func (d *inflater) rewind() (inFirstBlock bool) {
	if d.blocks != 1 || d.state != inSymbols {
		d.reset()
		return false
	}
	d.bitReader, d.text = d.first, 0
	return true
}

// push appends a copy of b to the unread input.
func (d *inflater) push(b []byte) {
	d.buf = append(append(d.buf[:0], d.src[d.pos:]...), b...)
	d.src, d.pos = d.buf, 0
}

// need makes n bits available (at most 32). It returns false if the input ends earlier.
func (d *inflater) need(n uint) bool {
	for d.nbits < n {
		if d.pos == len(d.src) {
			return false
		}
		d.hold |= uint64(d.src[d.pos]) << d.nbits
		d.pos++
		d.nbits += 8
	}
	return true
}

func (d *inflater) take(n uint) int {
	v := d.hold & (1<<n - 1)
	d.hold >>= n
	d.nbits -= n
	return int(v)
}

// step reads a block header, or tokens for about limit bytes of text. It stores the tokens in toks, and returns their
// number. The bytes of a block without compression are returned as literals.
func (d *inflater) step(toks []token, limit int) (n int, ev event) {
	switch d.state {
	case atHeader:
		save := d.bitReader
		ev = d.header()
		if ev != gotBlock {
			d.bitReader = save
		}
		return 0, ev
	case inStored:
		n = min(limit, len(toks), d.stored, len(d.src)-d.pos)
		for i, c := range d.src[d.pos : d.pos+n] {
			toks[i] = token(c)
		}
		d.pos += n
		d.text += int64(n)
		if d.stored -= n; d.stored > 0 {
			if d.pos == len(d.src) {
				return n, needMore
			}
			return n, gotSome
		}
		return n, d.blockOver()
	case inSymbols:
		n, ev = d.symbols(toks, limit)
		if ev == endBlock {
			ev = d.blockOver()
		}
		return n, ev
	case streamOver:
	}
	return 0, endStream
}

func (d *inflater) blockOver() event {
	if d.final {
		d.state = streamOver
		// The rest of the last byte is padding.
		d.hold, d.nbits = 0, 0
		return endStream
	}
	d.state = atHeader
	return endBlock
}

// header reads a block's header. If the header is incomplete, the caller goes back to its start.
func (d *inflater) header() event {
	from := d.bitReader
	if !d.need(3) {
		return needMore
	}
	final := d.take(1) == 1
	kind := d.take(2)
	ev := gotBlock
	switch kind {
	case 0:
		d.hold, d.nbits = 0, 0
		if len(d.src)-d.pos < 4 {
			return needMore
		}
		n := binary.LittleEndian.Uint16(d.src[d.pos:])
		if binary.LittleEndian.Uint16(d.src[d.pos+2:]) != ^n {
			return badStream
		}
		d.pos += 4
		d.stored, d.state = int(n), inStored
	case 1:
		d.lit, d.dist = fixedHuffman()
		d.state = inSymbols
	case 2:
		if ev = d.dynamic(); ev == gotBlock {
			d.state = inSymbols
		}
	default:
		return badStream
	}
	if ev != gotBlock {
		return ev
	}
	d.final = final
	d.normalize()
	if d.blocks++; d.blocks == 1 {
		d.first = d.bitReader
	}
	d.head.reset()
	if kind != 0 {
		d.saveHeader(from)
	}
	return gotBlock
}

// normalize returns the unused whole bytes to the input.
func (d *bitReader) normalize() {
	d.pos -= int(d.nbits >> 3)
	d.nbits &= 7
	d.hold &= 1<<d.nbits - 1
}

// saveHeader stores the bits of the header that begins at from.
func (d *inflater) saveHeader(from bitReader) {
	end := d.bitReader
	left := (end.pos-from.pos)*8 + int(from.nbits) - int(end.nbits)
	d.bitReader = from
	d.need(1)
	d.take(1)
	d.head.add(0, 1)
	for left--; left > 0; {
		n := uint(min(left, 32))
		d.need(n)
		d.head.add(uint64(d.take(n)), n)
		left -= int(n)
	}
	d.bitReader = end
}

var codeOrder = [19]uint8{16, 17, 18, 0, 8, 7, 9, 6, 10, 5, 11, 4, 12, 3, 13, 2, 14, 1, 15}

// dynamic reads the codes of a dynamic block (RFC 1951 section 3.2.7).
func (d *inflater) dynamic() event {
	if !d.need(14) {
		return needMore
	}
	d.lit, d.dist = &d.own.lit, &d.own.dist
	nlit, ndist, ncode := d.take(5)+257, d.take(5)+1, d.take(4)+4
	if nlit > 286 || ndist > 30 {
		return badStream
	}
	l := d.lengths[:19]
	clear(l)
	for _, c := range codeOrder[:ncode] {
		if !d.need(3) {
			return needMore
		}
		l[c] = uint8(d.take(3))
	}
	if !d.lit.build(l, nil, false) {
		return badStream
	}
	l = d.lengths[:nlit+ndist]
	if ev := d.codeLengths(l); ev != gotBlock {
		return ev
	}
	if l[256] == 0 || !d.lit.build(l[:nlit], litEntries[:], true) || !d.dist.build(l[nlit:], distEntries[:], true) {
		return badStream
	}
	return gotBlock
}

// codeLengths reads into l the lengths of the block's two codes: of literals and lengths, and of distances. d.lit must
// hold the code in which these lengths are written.
func (d *inflater) codeLengths(l []uint8) event {
	for i := 0; i < len(l); {
		d.need(15 + 7)
		sym, n := d.lit.find(d.hold, d.nbits)
		if n == 0 {
			return short(d.nbits)
		}
		extra, base := uint(0), 0
		switch sym {
		case 16:
			extra, base = 2, 3
		case 17:
			extra, base = 3, 3
		case 18:
			extra, base = 7, 11
		}
		if d.nbits < n+extra {
			return needMore
		}
		d.take(n)
		if sym < 16 {
			l[i] = uint8(sym)
			i++
			continue
		}
		run, v := base+d.take(extra), uint8(0)
		if sym == 16 {
			if i == 0 {
				return badStream
			}
			v = l[i-1]
		}
		if i+run > len(l) {
			return badStream
		}
		for ; run > 0; run-- {
			l[i] = v
			i++
		}
	}
	return gotBlock
}
