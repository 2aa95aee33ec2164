// SPDX-License-Identifier: Apache-2.0

// Package deflateedit changes the beginning of a text inside its compressed stream (gzip, zlib or raw deflate)
// without unpacking and packing the rest.
//
// # How it works
//
// A deflate stream (RFC 1951) is a sequence of blocks of Huffman-coded tokens: literal bytes, and matches that copy
// LENGTH bytes from up to 32 KiB back. Inserting text makes three parts invalid, and the Editor repairs them:
//
//   - The tokens at the edit. The Editor writes them as literals, in the codes of their block.
//   - Matches within 32 KiB after the edit that refer to text before it. The Editor increases their distance.
//   - The checksum. CRC-32 and Adler-32 are linear. The Editor can therefore compute the difference from the
//     changed beginning and the length of the unchanged rest (sumChange).
//
// Everything else is copied bit by bit. In this example, "<meta>" is inserted at offset 6 of "<head><title>…". A match
// is written as match(LENGTH, DISTANCE). The first match copies text from before the edit, the second does not:
//
//	old   '<' 'h' 'e' 'a' 'd' '>' '<' 't' … match(4, 60) … match(9, 20)
//	new   '<' 'h' 'e' 'a' 'd' '>' '<' 'm' 'e' 't' 'a' '>' '<' 't' … match(4, 66) … match(9, 20)
//
// If a block's codes lack a symbol, such as a literal '"', the block is ended early. The next tokens are written as
// a block with the fixed codes, and the old block's header is repeated for the rest. A block that ends early must
// not be marked as final. So the Editor copies all blocks as not final, and adds an empty final block.
//
// # Use
//
// Call Reset. Call Peek while the stream arrives, until you know the edits. Then call Start with the stream so far,
// Write with the rest, and Close.
//
// # Guarantees
//
//   - For every valid stream, unpacking the result gives the edited text.
//   - If the stream is corrupt or incomplete, the result is corrupt or incomplete at the same place. Bytes after
//     the stream are copied.
//   - Memory is bounded by about 200 KiB. Work is bounded by the compressed length: a token takes at least one bit,
//     and tokens after the last edit are not expanded.
//
// The sizes of Writes and calls of Flush change the bytes of the result, but not its text.
package deflateedit

import (
	"encoding/binary"
	"hash/adler32"
	"hash/crc32"
)

// Format is the container around a deflate stream.
type Format uint8

// The formats. HTTP's "deflate" coding means Zlib, but some servers send Raw.
const (
	Raw  Format = iota // RFC 1951
	Gzip               // RFC 1952
	Zlib               // RFC 1950
)

// parseHeader recognizes the container at the start of b and returns the size n of its header. gzip tells whether the
// container must be gzip. ok is false if parseHeader needs more bytes. n is negative if the Editor cannot read the
// container.
func parseHeader(b []byte, gzip bool) (f Format, n int, ok bool) {
	if !gzip {
		if len(b) < 2 {
			return Raw, 0, false
		}
		if b[0]&0x0F != 8 || b[0]>>4 > 7 || binary.BigEndian.Uint16(b)%31 != 0 {
			return Raw, 0, true
		}
		if b[1]&0x20 != 0 { // preset dictionary
			return Zlib, -1, true
		}
		return Zlib, 2, true
	}
	if len(b) < 10 {
		return Gzip, 0, false
	}
	if b[0] != 0x1F || b[1] != 0x8B || b[2] != 8 || b[3]&0xE0 != 0 {
		return Gzip, -1, true
	}
	flags := b[3]
	n = 10
	if flags&4 != 0 { // FEXTRA
		if len(b) < n+2 {
			return Gzip, 0, false
		}
		n += 2 + int(binary.LittleEndian.Uint16(b[n:]))
	}
	for _, flag := range [...]byte{8, 16} { // FNAME, FCOMMENT
		for more := flags&flag != 0; more; n++ {
			if n >= len(b) {
				return Gzip, 0, false
			}
			more = b[n] != 0
		}
	}
	if flags&2 != 0 { // FHCRC
		n += 2
	}
	return Gzip, n, n <= len(b)
}

// trailerSize is the size in bytes of the checksum and, for gzip, the length after the stream.
var trailerSize = [...]int{Raw: 0, Gzip: 8, Zlib: 4}

// trailer corrects the checksum after the stream, and copies the bytes that follow.
func (e *Editor) trailer() bool {
	size := trailerSize[e.format]
	take := min(size-len(e.tail), len(e.in.src)-e.in.pos)
	e.tail = append(e.tail, e.in.src[e.in.pos:e.in.pos+take]...)
	e.in.pos += take
	if len(e.tail) < size {
		return false
	}
	out := &e.w.out
	out.settle()
	switch e.format {
	case Gzip:
		sum, n := binary.LittleEndian.Uint32(e.tail), binary.LittleEndian.Uint32(e.tail[4:])
		out.b = binary.LittleEndian.AppendUint32(out.b, e.sum.crc32(sum, e.in.text))
		out.b = binary.LittleEndian.AppendUint32(out.b, n+uint32(e.sum.delta))
	case Zlib:
		out.b = binary.BigEndian.AppendUint32(out.b, e.sum.adler32(binary.BigEndian.Uint32(e.tail), e.in.text))
	case Raw: // no checksum
	}
	e.phase = copyRest
	return true
}

// A Status is the reason why Peek returned.
type Status uint8

const (
	More      Status = iota // Peek has appended about limit bytes, and there may be more
	NeedInput               // the rest of the text has not arrived yet
	End                     // the text is complete
	Corrupt                 // the stream has another format, or is damaged at this place
)

// Peek unpacks about limit further bytes of text and appends them to text. text must be the whole text that earlier
// calls have returned. stream must be the whole part of the stream that has arrived. In each call, stream begins with
// the stream of the previous call.
func (e *Editor) Peek(stream, text []byte, limit int) ([]byte, Status) {
	if !e.known {
		f, n, ok := parseHeader(stream, e.gzip)
		if !ok {
			return text, NeedInput
		}
		if n < 0 {
			return text, Corrupt
		}
		e.format, e.header, e.known = f, n, true
	}
	e.in.src = stream[e.header:]
	for limit += len(text); len(text) < limit; {
		n, ev := e.in.step(e.buf[:], limit-len(text))
		for _, t := range e.buf[:n] {
			text = appendToken(text, t)
		}
		switch ev {
		case needMore:
			return text, NeedInput
		case endStream:
			return text, End
		case badStream:
			return text, Corrupt
		case gotSome, gotBlock, endBlock, reaches:
		}
	}
	return text, More
}

// Trailing returns the number of bytes after the stream and its trailer, once Peek has returned End. It is negative
// if the trailer is incomplete.
func (e *Editor) Trailing() int {
	return len(e.in.src) - e.in.pos - trailerSize[e.format]
}

func appendToken(text []byte, t token) []byte {
	if t&isMatch == 0 {
		return append(text, byte(t))
	}
	from, n := len(text)-t.dist(), t.length()
	if t.dist() >= n {
		return append(text, text[from:from+n]...)
	}
	for i := range n {
		text = append(text, text[from+i])
	}
	return text
}

// A sumChange describes how the edits change the checksum of the text. It is computed from the edited beginning alone,
// because CRC-32 and Adler-32 are linear.
type sumChange struct {
	crc            uint32 // XOR of the CRC-32 of the old and of the new beginning
	a, b           uint32 // differences of the two halves of Adler-32
	textEnd, delta int    // length of the old beginning, and number of bytes that the edits add
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

func (s *sumChange) crc32(old uint32, n int64) uint32 {
	return old ^ crcShift(s.crc, uint64(n)-uint64(s.textEnd))
}

// adler32 returns the Adler-32 checksum of the new text. old is the checksum of the old text, whose length is n. If old
// cannot be a checksum of any text, adler32 returns it unchanged.
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

// crcShift returns the CRC of a text with n zero bytes appended.
func crcShift(crc uint32, n uint64) uint32 {
	for i := 0; n != 0; i, n = i+1, n>>1 {
		if n&1 != 0 {
			crc = crcMul(crcPower[i], crc)
		}
	}
	return crc
}

// crcMul multiplies two polynomials. The highest bit of each number is the coefficient of the lowest power.
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
