// SPDX-License-Identifier: Apache-2.0

package headscan

import (
	"bytes"

	"golang.org/x/net/html"

	"github.com/robotspolicy/caddy-robots-policy/internal/leaf/ascii"
)

// Properties of bytes in markup.
const (
	isSpace   = 1 << iota // TAB, LF, FF, CR, SPACE
	isLetter              // an ASCII letter
	endsName              // ends the name of a tag: white space, '/', '>'
	endsAttr              // ends the name of an attribute: endsName and '='
	endsValue             // ends an unquoted value: white space, '>'
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
	return
}()

// tagName is an element's name, or a group of names that the scan does not distinguish.
type tagName uint8

const (
	tagOther tagName = iota
	tagBase          // base and the other void elements of the head
	tagBody
	tagBr
	tagEmbeds // elements that change how browsers parse the rest of a template
	tagFrameset
	tagHead
	tagHTML
	tagMeta
	tagNoframes
	tagNoscript
	tagPlaintext
	tagRawBody // elements with only text, not allowed in a head: textarea, xmp, iframe, noembed
	tagScript
	tagStyle
	tagTemplate
	tagTitle
)

// lookupTag returns the tagName for a name in any case.
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
	case "col", "math", "select", "svg":
		return tagEmbeds
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
	case "plaintext":
		return tagPlaintext
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

// tagName reads a tag's name and decides whether the tag ends the head.
func (s *Scanner) tagName(b []byte) bool {
	i := s.pos
	for i < len(b) && class[b[i]]&endsName == 0 {
		i++
	}
	s.pos = i
	if i == len(b) {
		return false
	}
	s.nameEnd, s.state, s.attrAt, s.quote = i, stateTag, i, 0
	if s.xml {
		m := metaAttributes{exact: true}
		if end, ok := walk(b, i, &m); ok {
			return s.xmlTag(b, end, &m)
		}
		return true
	}
	s.tag = lookupTag(b[s.name:i])
	if s.end {
		s.endTagNamed()
	} else if s.mode != modeInHead || plainHead>>s.tag&1 == 0 {
		s.startTagNamed()
	}
	if s.Done {
		return true
	}
	if s.tag == tagMeta {
		var m metaAttributes
		if end, ok := walk(b, i, &m); ok {
			s.tagDone(b, end, &m)
		}
		return true
	}
	end, ok := i+1, true
	if b[i] != '>' {
		end, ok = walk(b, i, nil)
	}
	if ok {
		s.tagDone(b, end, nil)
	}
	return true
}

// plainHead is the set of elements of the head that do not need special treatment.
const plainHead = 1<<tagBase | 1<<tagMeta | 1<<tagNoframes | 1<<tagNoscript | 1<<tagScript | 1<<tagStyle | 1<<tagTemplate | 1<<tagTitle

func (s *Scanner) startTagNamed() {
	if s.mode == modeEvidence {
		if s.tag == tagHTML || s.tag == tagHead || s.tag == tagBody || s.tag == tagFrameset {
			s.isDocument()
		}
		return
	}
	if s.mode == modeTemplate {
		s.inTemplate()
		return
	}
	if s.tag == tagHTML || s.tag == tagHead {
		s.Document = true
		return
	}
	s.implyHead(s.tok)
	// All other tags end the head.
	//exhaustive:ignore
	switch s.tag {
	case tagBase, tagMeta, tagNoframes, tagScript, tagStyle, tagTemplate, tagTitle:
	case tagNoscript:
		if s.mode == modeAfterHead {
			s.stop()
		}
	case tagBody, tagFrameset:
		s.Document = true
		s.stop()
	default:
		s.stop()
	}
}

// inTemplate handles a start tag in a template. After svg, math, select and col in a template, browsers differ, and
// only a complete tree builder could determine how they parse the rest. So from then on, the scan continues only over
// markup that all browsers parse in the same way. At nested templates, and at a '<' in the text of scripts, styles and
// titles, it stops as if the head had ended.
func (s *Scanner) inTemplate() {
	switch {
	case s.tag == tagEmbeds:
		s.unsure = true
	case s.tag == tagPlaintext,
		s.unsure && (s.tag == tagTemplate || s.tag == tagRawBody || s.tag == tagNoframes || s.tag == tagNoscript):
		s.stop()
	}
}

func (s *Scanner) endTagNamed() {
	if s.mode >= modeTemplate {
		return
	}
	// Other end tags are ignored.
	//exhaustive:ignore
	switch s.tag {
	case tagHead:
		s.implyHead(s.tok)
	case tagBody, tagHTML, tagBr:
		s.implyHead(s.tok)
		s.stop()
	}
}

// attributes continues the search for the end of an incomplete tag. The end is a '>' outside of quotes, so the
// attributes are only read again if another '>' has arrived, and no quote is open.
func (s *Scanner) attributes(b []byte) bool {
	arrived := b[s.pos:]
	s.pos = len(b)
	if s.quote != 0 && bytes.IndexByte(arrived, s.quote) >= 0 {
		s.quote = 0
	}
	if s.quote != 0 || bytes.IndexByte(arrived, '>') < 0 {
		return false
	}
	var ok bool
	if s.attrAt, ok = walk(b, s.attrAt, nil); !ok {
		s.quote = openQuote(b[s.attrAt:])
		return false
	}
	m := metaAttributes{exact: s.xml}
	end, _ := walk(b, s.nameEnd, &m)
	if s.xml {
		return s.xmlTag(b, end, &m)
	}
	s.tagDone(b, end, &m)
	return true
}

// openQuote returns the closing quote that is missing in attribute, or 0.
func openQuote(attribute []byte) byte {
	_, value, _ := bytes.Cut(attribute[min(1, len(attribute)):], []byte("="))
	value = bytes.TrimLeft(value, " \t\n\f\r")
	if len(value) > 0 && (value[0] == '"' || value[0] == '\'') && bytes.IndexByte(value[1:], value[0]) < 0 {
		return value[0]
	}
	return 0
}

// tagDone handles a tag that ends at end. m holds the attributes of a meta tag.
func (s *Scanner) tagDone(b []byte, end int, m *metaAttributes) {
	s.pos, s.state = end, stateData
	if s.end {
		s.endTag()
		return
	}
	if s.unsure && b[end-2] == '/' && (s.tag == tagScript || s.tag == tagStyle || s.tag == tagTitle) {
		s.stop() // "/>" ends a foreign element, but not an HTML element
		return
	}
	// Other tags have no effect here.
	//exhaustive:ignore
	switch s.tag {
	case tagHTML:
		s.AMP = s.AMP || s.mode < modeTemplate && isAMP(b[s.tok:end])
		if s.mode < modeBeforeHead {
			s.mode = modeBeforeHead
		}
	case tagHead:
		if s.mode < modeInHead {
			s.HeadAt, s.mode = s.pos, modeInHead
		}
	case tagMeta:
		if s.mode < modeTemplate {
			s.Document = true
			s.meta(b, m)
		}
	case tagScript:
		s.state, s.textAt = stateScript, end
	case tagNoframes, tagNoscript, tagRawBody, tagStyle, tagTitle:
		s.state, s.textAt = stateRaw, end
	case tagTemplate:
		if s.mode == modeEvidence {
			return
		}
		if s.mode != modeTemplate {
			s.ret, s.mode = s.mode, modeTemplate
		}
		s.depth++
	}
}

func (s *Scanner) endTag() {
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
				s.mode, s.unsure = s.ret, false
			}
		}
	case modeBeforeHTML, modeBeforeHead, modeAfterHead, modeEvidence:
	}
}

// isAMP reports whether an html tag marks the page as AMP with an attribute such as amp, ⚡ or amp4email.
func isAMP(tag []byte) bool {
	const flash = "⚡"
	if !bytes.Contains(tag, []byte(flash)) && !hasAmp(tag) {
		return false
	}
	z := html.NewTokenizer(bytes.NewReader(tag))
	z.Next()
	for more := true; more; {
		var name []byte
		if name, _, more = z.TagAttr(); string(name) == "amp" || bytes.HasPrefix(name, []byte("amp4")) || bytes.HasPrefix(name, []byte(flash)) {
			return true
		}
	}
	return false
}

// hasAmp reports whether a word of tag begins with amp, in any case.
func hasAmp(tag []byte) bool {
	for i := 1; i+3 <= len(tag); i++ {
		if tag[i]|0x20 == 'a' && ascii.EqualFold(tag[i:i+3], "amp") && class[tag[i-1]]&isLetter == 0 {
			return true
		}
	}
	return false
}
