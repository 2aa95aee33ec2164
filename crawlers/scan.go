// SPDX-License-Identifier: Apache-2.0

package crawlers

import (
	"math/bits"
	"strings"
)

// scanner finds the positions in a User-Agent where a token may begin. The zero value starts at the first byte.
type scanner struct {
	end   int    // end of the eight bytes that are being examined
	stops uint64 // the bits from stopBytes for these eight bytes, without the bits that were already used
	all   uint64 // bitwise OR of all bytes so far
}

// foreign reports whether the User-Agent has characters outside ASCII. Call foreign only after the method next has
// returned the last position.
func (s *scanner) foreign() bool { return s.all&0x8080808080808080 != 0 }

// next returns the next position that follows a delimiter, or len(ua) at the end. It skips most positions where a token
// cannot begin.
func (r *Recognizer) next(ua string, s *scanner) int {
	// The compiler keeps these copies in registers.
	end, stops, all, filter, shift := s.end, s.stops, s.all, r.filter, r.shift&31
	for {
		for stops == 0 {
			var x uint64
			switch {
			case end+8 <= len(ua):
				x = eight(ua[end:])
			case end < len(ua):
				x = lastBytes(ua[end:])
			default:
				s.end, s.all = end, all
				return len(ua)
			}
			end += 8
			all |= x
			stops = stopBytes(x)
		}
		stop := end - 8 + bits.TrailingZeros64(stops)/8
		stops &= stops - 1
		if ua[stop] == ':' && strings.HasPrefix(ua[stop:], "://") {
			for end = stop + len("://"); end < len(ua) && class[ua[end]]&isURLEnd == 0; end++ {
				all |= uint64(ua[end])
			}
			stops = 0
			continue
		}
		if at := stop + 1; at+4 <= len(ua) && !r.mayBeShort(ua, at) {
			k := key(ua[at:]) >> shift
			if word := int(k / 64); word >= len(filter) || filter[word]>>(k%64)&1 == 0 {
				continue
			}
		}
		if class[ua[stop]]&isBefore != 0 && (ua[stop] != '/' || stop+1 < len(ua) && followsProduct(ua, stop)) {
			s.end, s.stops, s.all = end, stops, all
			return stop + 1
		}
	}
}

// mayBeShort reports whether a token whose first word has fewer than four letters may begin at i. At least three
// more bytes must follow i.
func (r *Recognizer) mayBeShort(ua string, i int) bool {
	if !r.short[ua[i]] || class[ua[i+1]]&class[ua[i+2]]&class[ua[i+3]]&isPlain != 0 {
		return false
	}
	k := shortKey(ua[i : i+3])
	return r.shortWords[k/64]>>(k%64)&1 != 0
}

// shortKey returns a hash below 1024 of up to three bytes of a word, without regard to case. The hash covers only the
// bytes before the first byte without the property isPlain.
func shortKey(word string) uint32 {
	k := uint32(word[0] & 0x1f)
	for i := 1; i < len(word) && class[word[i]]&isPlain != 0; i++ {
		k = k<<5 | uint32(word[i]&0x1f)
	}
	return k * 0x9e3779b1 >> 22
}

// stopBytes returns a mask with the highest bit set in the bytes that may be directly before a token in a User-Agent.
// It marks bytes of x that are less than a hyphen, the bytes ":;<=[{", and a slash before a letter. If several such
// bytes follow each other, it may mark only the last one. In a User-Agent, the mask contains all bytes directly before
// tokens, and few other bytes.
func stopBytes(x uint64) uint64 {
	const (
		ones = 0x0101010101010101
		low  = 0x7f * ones
		high = 0x80 * ones
	)
	y := x & low                                     // prevents a carry into the next byte
	notLess := y + (0x80-'-')*ones                   // the highest bit of a byte is 0 for a byte less than a hyphen
	slash := y ^ '/'*ones + low                      // the highest bit is 0 for a slash
	bracket := y | 0x20*ones ^ '{'*ones + low        // the highest bit is 0 for "[" and "{"
	from, to := y+(0x80-':')*ones, y+(0x80-'>')*ones // the highest bit is 1 for a byte of at least ":", and for a byte of at least ">"
	letter := y>>7 | 1<<63                           // whether the next byte is at least "@", or is not in x
	stops := (^notLess | ^bracket | from&^to) & high &^ x
	return stops&^(stops>>8) | ^slash&letter&high&^x // drops a stop if the next byte is also a stop, because no token begins with a stop
}

// followsProduct reports whether the slash at ua[i] follows a product name and precedes a letter or underscore. A
// product name is a word without dots. The result is true for "Mozilla/GPTBot" and false for "example.com/gptbot".
func followsProduct(ua string, i int) bool {
	if c := fold[ua[i+1]]; c != '_' && (c < 'a' || c > 'z') {
		return false
	}
	begin := i
	for begin > 0 && class[ua[begin-1]]&isWord != 0 {
		begin--
	}
	if begin == i {
		return false
	}
	return begin == 0 || class[ua[begin-1]]&isBefore != 0 && ua[begin-1] != '/' && ua[begin-1] != ':'
}

// eight returns the first eight bytes of s as a 64-bit word in little-endian order.
func eight(s string) uint64 {
	_ = s[7]
	return uint64(s[0]) | uint64(s[1])<<8 | uint64(s[2])<<16 | uint64(s[3])<<24 |
		uint64(s[4])<<32 | uint64(s[5])<<40 | uint64(s[6])<<48 | uint64(s[7])<<56
}

// lastBytes is like eight for a string of fewer than eight bytes. It fills the rest of the word with letters.
func lastBytes(s string) uint64 {
	x := uint64(0x6161616161616161)
	for i := len(s) - 1; i >= 0; i-- {
		x = x<<8 | uint64(s[i])
	}
	return x
}

// key returns a hash of the first four bytes of s, without regard to case. The upper bits of the hash are distributed
// most evenly.
func key(s string) uint32 {
	_ = s[3]
	four := uint32(s[0]) | uint32(s[1])<<8 | uint32(s[2])<<16 | uint32(s[3])<<24
	return (four | 0x20202020) * 0x9e3779b1
}

func wordEnd(s string, i int) int {
	for i < len(s) && class[s[i]]&isWord != 0 {
		i++
	}
	return i
}
