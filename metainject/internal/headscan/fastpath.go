// SPDX-License-Identifier: Apache-2.0

package headscan

import (
	"bytes"
	"encoding/binary"
	"math/bits"
)

// Names of elements and attributes as integers, which can be compared fast. The lowest byte of an integer is the first
// letter. To convert up to eight letters to lower case, combine their integer with capitals by "|".
const (
	wordMeta     = 'm' | 'e'<<8 | 't'<<16 | 'a'<<24
	wordLink     = 'l' | 'i'<<8 | 'n'<<16 | 'k'<<24
	wordBase     = 'b' | 'a'<<8 | 's'<<16 | 'e'<<24
	wordStyle    = 's' | 't'<<8 | 'y'<<16 | 'l'<<24 | 'e'<<32
	wordTitle    = 't' | 'i'<<8 | 't'<<16 | 'l'<<24 | 'e'<<32
	wordScript   = 's' | 'c'<<8 | 'r'<<16 | 'i'<<24 | 'p'<<32 | 't'<<40
	wordName     = 'n' | 'a'<<8 | 'm'<<16 | 'e'<<24
	wordContent  = 'c' | 'o'<<8 | 'n'<<16 | 't'<<24 | 'e'<<32 | 'n'<<40 | 't'<<48
	wordCharset  = 'c' | 'h'<<8 | 'a'<<16 | 'r'<<24 | 's'<<32 | 'e'<<40 | 't'<<48
	wordProperty = 'p' | 'r'<<8 | 'o'<<16 | 'p'<<24 | 'e'<<32 | 'r'<<40 | 't'<<48 | 'y'<<56
	wordXMLNS    = 'x' | 'm'<<8 | 'l'<<16 | 'n'<<24 | 's'<<32
	capitals     = 0x2020202020202020
)

// elements skips complete elements of the usual kinds and evaluates the meta tags among them. It stops at all other
// markup, where the state machine continues. The state machine could do the same work, but takes three times as long.
func (s *Scanner) elements(b []byte) {
	i := s.pos
	for {
		for i < len(b) && class[b[i]]&isSpace != 0 {
			i++
		}
		s.pos = i
		if len(b)-i < 16 || b[i] != '<' {
			return
		}
		word := binary.LittleEndian.Uint64(b[i+1:]) | capitals
		var n int
		var tag tagName
		switch uint32(word) {
		case wordMeta:
			n, tag = 4, tagMeta
		case wordLink, wordBase:
			n, tag = 4, tagBase
		case wordScript & 0xFFFFFFFF:
			word &= 1<<48 - 1
			if word != wordScript {
				return
			}
			n, tag = 6, tagScript
		case wordStyle & 0xFFFFFFFF, wordTitle & 0xFFFFFFFF:
			word &= 1<<40 - 1
			if word != wordStyle && word != wordTitle {
				return
			}
			n, tag = 5, tagStyle
		default:
			return
		}
		at := i + 1 + n
		if class[b[at]]&endsName == 0 {
			return
		}
		if tag == tagMeta {
			var m metaAttributes
			end, ok := walk(b, at, &m)
			if !ok {
				return
			}
			s.tok, s.pos, s.Document = i, end, true
			s.meta(b, &m)
			i = end
			continue
		}
		end, ok := at+1, true
		if b[at] != '>' {
			end, ok = walk(b, at, nil)
		}
		if !ok {
			return
		}
		if i += len("<") + n; tag == tagBase {
			i = end
			continue
		}
		if i = s.skipText(b, i-n, at, end, tag, word); i == 0 {
			return
		}
	}
}

// skipText skips the text of an element, which begins at i, and its end tag. It returns the position after the end tag.
// name is the element's name as an integer. If the end tag is incomplete or unusual, skipText returns 0, and the state
// machine continues.
func (s *Scanner) skipText(b []byte, nameAt, nameEnd, i int, tag tagName, name uint64) int {
	n := nameEnd - nameAt
	for {
		j := bytes.IndexByte(b[i:], '<')
		if j < 0 {
			i = len(b)
			break
		}
		if i += j; len(b)-i < 16 || b[i+1] == '!' && tag == tagScript {
			break
		}
		if b[i+1] == '/' && (binary.LittleEndian.Uint64(b[i+2:])|capitals)<<(64-8*n) == name<<(64-8*n) {
			switch c := b[i+2+n]; {
			case c == '>':
				return i + 3 + n
			case class[c]&endsName != 0:
				s.takeOver(nameAt, nameEnd, i, tag)
				return 0
			}
		}
		i++
	}
	s.takeOver(nameAt, nameEnd, i, tag)
	return 0
}

func (s *Scanner) takeOver(nameAt, nameEnd, i int, tag tagName) {
	s.tok, s.name, s.nameEnd, s.pos, s.tag, s.end = nameAt-1, nameAt, nameEnd, i, tag, false
	s.state = stateRaw
	if tag == tagScript {
		s.state = stateScript
	}
}

// walk reads a tag's attributes, beginning at i, and returns the end of the tag. If b does not contain this end, ok is
// false, and end is the start of the last attribute. m may be nil. walk is fast for name="value", and leaves other
// attributes to walkAny.
func walk(b []byte, i int, m *metaAttributes) (end int, ok bool) {
	for len(b)-i >= 16 {
		c := b[i]
		if c == '>' {
			return i + 1, true
		}
		if class[c]&endsName != 0 {
			i++
			continue
		}
		// Eight bytes are checked at once. Bit 6 is set in letters, and not in any byte that ends a name, so the first
		// byte without bit 6 probably ends the name.
		const bit6 = 0x4040404040404040
		word := binary.LittleEndian.Uint64(b[i:])
		n := bits.TrailingZeros64(^word&bit6) / 8
		at := i + n + 1
		if n == 0 || b[at-1] != '=' {
			break
		}
		q := b[at]
		if q != '"' && q != '\'' {
			break
		}
		j := bytes.IndexByte(b[at+1:], q)
		if j < 0 {
			return i, false
		}
		i = at + j + 2
		if m != nil {
			m.set(m.slotOf(word, n), at, i)
		}
	}
	return walkAny(b, i, m)
}

// slotOf does the same as slot for a name of n bytes stored in an integer. n is at most 8.
func (m *metaAttributes) slotOf(word uint64, n int) int {
	if !m.exact {
		word |= capitals
	}
	switch n {
	case 4:
		if uint32(word) == wordName {
			return attrName
		}
	case 5:
		if word&(1<<40-1) == wordXMLNS {
			return attrNamespace
		}
	case 7:
		switch word & (1<<56 - 1) {
		case wordContent:
			return attrContent
		case wordCharset:
			return attrCharset
		}
	case 8:
		if word == wordProperty {
			return attrProperty
		}
	}
	return -1
}
