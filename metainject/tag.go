// SPDX-License-Identifier: Apache-2.0

package metainject

import "bytes"

// What a byte means in markup.
const (
	isSpace    = 1 << iota // TAB, LF, FF, CR, SPACE
	isLetter               // ASCII
	endsName               // of a tag: white space, '/', '>'
	endsAttr               // of an attribute: endsName and '='
	endsValue              // of an unquoted value: white space, '>'
	notInToken             // never part of a product token
)

var class = func() (t [256]uint8) {
	for _, c := range " \t\n\f\r" {
		t[c] = isSpace | endsName | endsAttr | endsValue
	}
	t['/'] |= endsName | endsAttr
	t['>'] |= endsName | endsAttr | endsValue
	t['='] |= endsAttr
	for c := 'a'; c <= 'z'; c++ {
		t[c] |= isLetter
		t[c-0x20] |= isLetter
	}
	for c := range ' ' + 1 {
		t[c] |= notInToken
	}
	t[':'] |= notInToken
	t[0x7f] |= notInToken
	return
}()

// tagName is one of the elements that the scan has to tell apart.
type tagName uint8

const (
	tagOther tagName = iota
	tagBase          // and the other void elements of the head
	tagBody
	tagBr
	tagComplex // needs a tree builder when it stands in a template
	tagFrameset
	tagHead
	tagHTML
	tagMeta
	tagNoframes
	tagNoscript
	tagRawBody // text only, and no child of a head: textarea, xmp, iframe, noembed
	tagScript
	tagStyle
	tagTemplate
	tagTitle
)

func lookupTag(b []byte) tagName {
	var buf [10]byte
	if len(b) > len(buf) {
		return tagOther
	}
	for i, c := range b {
		if 'A' <= c && c <= 'Z' {
			c |= 0x20
		}
		buf[i] = c
	}
	switch string(buf[:len(b)]) {
	case "base", "basefont", "bgsound", "link":
		return tagBase
	case "body":
		return tagBody
	case "br":
		return tagBr
	case "caption", "col", "colgroup", "math", "plaintext", "select", "svg", "table",
		"tbody", "td", "tfoot", "th", "thead", "tr":
		return tagComplex
	case "frameset":
		return tagFrameset
	case "head":
		return tagHead
	case "html":
		return tagHTML
	case "iframe", "noembed", "textarea", "xmp":
		return tagRawBody
	case "meta":
		return tagMeta
	case "noframes":
		return tagNoframes
	case "noscript":
		return tagNoscript
	case "script":
		return tagScript
	case "style":
		return tagStyle
	case "template":
		return tagTemplate
	case "title":
		return tagTitle
	}
	return tagOther
}

// tagName reads a tag's name and, as soon as it is known, decides whether the
// head goes on.
func (s *scanner) tagName(b []byte) bool {
	i := s.pos
	for i < len(b) && class[b[i]]&endsName == 0 {
		i++
	}
	s.pos = i
	if i == len(b) {
		return false
	}
	s.nameEnd, s.state, s.attr = i, stateTag, beforeAttr
	if s.xml {
		return true
	}
	s.tag = lookupTag(b[s.name:i])
	if s.end {
		return s.endTagNamed()
	}
	return s.startTagNamed()
}

func (s *scanner) startTagNamed() bool {
	if s.mode == modeTemplate {
		if s.tag == tagComplex || s.tag == tagFrameset {
			return s.stop()
		}
		return true
	}
	if s.tag == tagHTML || s.tag == tagHead {
		s.document = true
		return true
	}
	s.implyHead(s.tok)
	switch s.tag {
	case tagMeta:
		s.document = true
	case tagBase, tagNoframes, tagScript, tagStyle, tagTemplate, tagTitle:
	case tagNoscript:
		if s.mode == modeAfterHead {
			return s.stop()
		}
	case tagBody, tagFrameset:
		s.document = true
		return s.stop()
	default:
		return s.stop()
	}
	return true
}

func (s *scanner) endTagNamed() bool {
	if s.mode == modeTemplate {
		return true
	}
	switch s.tag {
	case tagHead:
		s.implyHead(s.tok)
	case tagBody, tagHTML, tagBr:
		s.implyHead(s.tok)
		return s.stop()
	}
	return true
}

// attrState is where in a tag's attributes the scan stands.
type attrState uint8

const (
	beforeAttr attrState = iota
	inAttr
	afterAttr
	beforeValue
	inDouble
	inSingle
	inUnquoted
)

// attributes looks for the '>' that ends a tag.
func (s *scanner) attributes(b []byte) bool {
	i, st := s.pos, s.attr
	for i < len(b) {
		c := b[i]
		switch st {
		case beforeAttr:
			switch {
			case c == '>':
				s.slash = b[i-1] == '/'
				s.pos, s.state = i+1, stateData
				return s.tagDone(b)
			case class[c]&endsName == 0:
				st = inAttr // also where c is '='
			}
			i++
		case inAttr:
			for class[c]&endsAttr == 0 {
				if i++; i == len(b) {
					break
				}
				c = b[i]
			}
			if i == len(b) {
				break
			}
			switch c {
			case '=':
				st = beforeValue
				i++
			case '/', '>':
				st = beforeAttr
			default:
				st = afterAttr
				i++
			}
		case afterAttr:
			switch {
			case c == '=':
				st = beforeValue
				i++
			case class[c]&isSpace != 0:
				i++
			default:
				st = beforeAttr
			}
		case beforeValue:
			switch {
			case c == '"':
				st = inDouble
			case c == '\'':
				st = inSingle
			case class[c]&isSpace != 0:
			case c == '>':
				st = beforeAttr
				continue
			default:
				st = inUnquoted
				continue
			}
			i++
		case inDouble, inSingle:
			q := byte('"')
			if st == inSingle {
				q = '\''
			}
			j := bytes.IndexByte(b[i:], q)
			if j < 0 {
				i = len(b)
				break
			}
			i += j + 1
			st = beforeAttr
		case inUnquoted:
			for class[c]&endsValue == 0 {
				if i++; i == len(b) {
					break
				}
				c = b[i]
			}
			if i < len(b) {
				st = beforeAttr
			}
		}
	}
	s.pos, s.attr = i, st
	return false
}

// tagDone acts on a whole tag, which ends before s.pos.
func (s *scanner) tagDone(b []byte) bool {
	if s.xml {
		return s.xmlTag(b)
	}
	if s.end {
		return s.endTag()
	}
	switch s.tag {
	case tagHTML:
		if s.mode < modeBeforeHead {
			s.mode = modeBeforeHead
		}
	case tagHead:
		if s.mode < modeInHead {
			s.headAt, s.mode = s.pos, modeInHead
		}
	case tagMeta:
		if s.mode != modeTemplate {
			s.meta(b)
		}
	case tagScript:
		s.state = stateScript
	case tagNoframes, tagNoscript, tagRawBody, tagStyle, tagTitle:
		s.state = stateRaw
	case tagTemplate:
		if s.mode != modeTemplate {
			s.ret, s.mode = s.mode, modeTemplate
		}
		s.depth++
	}
	return true
}

func (s *scanner) endTag() bool {
	switch s.mode {
	case modeInitial:
		s.mode = modeBeforeHTML
	case modeInHead:
		if s.tag == tagHead {
			s.mode = modeAfterHead
		}
	case modeTemplate:
		if s.tag == tagTemplate {
			if s.depth--; s.depth == 0 {
				s.mode = s.ret
			}
		}
	}
	return true
}

// equalFold compares b with lower, which is lower-case ASCII.
func equalFold[T string | []byte](b T, lower string) bool {
	if len(b) != len(lower) {
		return false
	}
	for i := range len(lower) {
		c := b[i]
		if 'A' <= c && c <= 'Z' {
			c |= 0x20
		}
		if c != lower[i] {
			return false
		}
	}
	return true
}
