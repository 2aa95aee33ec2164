// SPDX-License-Identifier: Apache-2.0

package metainject

import "encoding/binary"

// format is what a deflate stream is wrapped in.
type format uint8

const (
	rawFormat  format = iota
	gzipFormat        // RFC 1952
	zlibFormat        // RFC 1950
)

// headerOf recognises the wrapping and its length. ok is false if more bytes
// are needed; n is negative if this is no such stream.
func headerOf(b []byte, gzip bool) (f format, n int, ok bool) {
	if !gzip {
		if len(b) < 2 {
			return rawFormat, 0, false
		}
		if b[0]&0x0F != 8 || b[0]>>4 > 7 || binary.BigEndian.Uint16(b)%31 != 0 {
			return rawFormat, 0, true
		}
		if b[1]&0x20 != 0 { // a preset dictionary
			return zlibFormat, -1, true
		}
		return zlibFormat, 2, true
	}
	if len(b) < 10 {
		return gzipFormat, 0, false
	}
	if b[0] != 0x1F || b[1] != 0x8B || b[2] != 8 || b[3]&0xE0 != 0 {
		return gzipFormat, -1, true
	}
	flags := b[3]
	n = 10
	if flags&4 != 0 { // FEXTRA
		if len(b) < n+2 {
			return gzipFormat, 0, false
		}
		n += 2 + int(binary.LittleEndian.Uint16(b[n:]))
	}
	for _, flag := range [...]byte{8, 16} { // FNAME, FCOMMENT
		for more := flags&flag != 0; more; n++ {
			if n >= len(b) {
				return gzipFormat, 0, false
			}
			more = b[n] != 0
		}
	}
	if flags&2 != 0 { // FHCRC
		n += 2
	}
	return gzipFormat, n, n <= len(b)
}

// trailerSize is how many bytes of the wrapping stand behind the stream.
var trailerSize = [...]int{rawFormat: 0, gzipFormat: 8, zlibFormat: 4}

// trailer corrects the checksum behind the stream. What follows is copied.
func (z *splicer) trailer() bool {
	size := trailerSize[z.format]
	take := min(size-len(z.tail), len(z.inf.src)-z.inf.pos)
	z.tail = append(z.tail, z.inf.src[z.inf.pos:z.inf.pos+take]...)
	z.inf.pos += take
	if len(z.tail) < size {
		return false
	}
	out := &z.w.out
	out.settle()
	switch z.format {
	case gzipFormat:
		sum, n := binary.LittleEndian.Uint32(z.tail), binary.LittleEndian.Uint32(z.tail[4:])
		out.b = binary.LittleEndian.AppendUint32(out.b, z.sum.crc32(sum, z.inf.text))
		out.b = binary.LittleEndian.AppendUint32(out.b, n+uint32(z.sum.delta))
	case zlibFormat:
		out.b = binary.BigEndian.AppendUint32(out.b, z.sum.adler32(binary.BigEndian.Uint32(z.tail), z.inf.text))
	}
	z.phase = asItCame
	return true
}
