// SPDX-License-Identifier: Apache-2.0

package deflateedit

import "encoding/binary"

// Format is the container around a deflate stream.
type Format uint8

// The formats. HTTP's "deflate" coding means Zlib, but some servers send Raw.
const (
	Raw  Format = iota // RFC 1951
	Gzip               // RFC 1952
	Zlib               // RFC 1950
)

// parseHeader recognises the container at the start of b and returns the size of
// its header. ok is false if more bytes are needed; n is negative if b does not
// begin such a stream.
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

// trailerSize is the size of the checksum (and length) after the stream.
var trailerSize = [...]int{Raw: 0, Gzip: 8, Zlib: 4}

// trailer corrects the checksum after the stream; what follows it is copied.
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
