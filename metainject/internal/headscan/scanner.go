// SPDX-License-Identifier: Apache-2.0

// Package headscan scans a page as it arrives. It finds the robots meta tags in the page's head and the place for
// new ones.
package headscan

import (
	"bytes"
	"strings"
)

// Names decides which meta tags address crawlers.
type Names interface {
	// Known returns the audience of a meta tag with this name, in lower case, or "" if it is not a robots meta tag.
	Known(name []byte) string
	// Speaks reports whether content contains a rule for the audience.
	Speaks(audience, content string) bool
}

// A Scanner follows the HTML standard's tokenization and tree construction
// (https://html.spec.whatwg.org/multipage/parsing.html, scripting enabled) over the head of a page. Each call of
// Scan gets the whole page so far, and continues where the previous call stopped. It copies nothing, and allocates
// nothing until it finds a robots meta tag.
//
// If only a complete tree builder could continue, the Scanner stops as if the head had ended. This happens at long
// numeric character references, at plaintext in a template, and at some elements that follow svg, math, select or col
// in a template (see inTemplate).
type Scanner struct {
	names Names
	xml   bool

	state   state
	mode    mode
	ret     mode // mode to return to after the outermost template
	depth   int  // the number of open templates or, in XHTML, of open elements inside the head
	end     bool // the current tag is an end tag
	slash   bool // in XHTML, the current tag ended with "/>"
	unsure  bool // in a template, after markup that only a tree builder can follow
	doctype bool // the current bogus comment is a DOCTYPE
	tag     tagName

	pos     int // position of the next byte to read
	tok     int // start of the current tag, comment or declaration
	name    int // start of the name of the current tag or of the element whose text is skipped
	nameEnd int
	attrAt  int // in an incomplete tag, the start of the last attribute

	quote byte // in an incomplete tag, the closing quote that is missing in the last attribute, or 0

	Done    bool // the end of the head has been found
	HeadAt  int  // start of the head's content, or -1 if it has not been found
	Implied bool // the head has no start tag, and the content at HeadAt opened it
	// Headless means that an XHTML page needs a head. If HeadAt and HeadEnd are equal, the page has no head, and HeadAt
	// is the place for a new one. Otherwise, its head is an empty-element tag, and HeadAt and HeadEnd are the start and
	// end of the "/>" of this tag.
	Headless bool
	HeadEnd  int
	// AMP means that the declaration of the encoding must stay the first child of the head
	// (https://amp.dev/documentation/guides-and-tutorials/learn/spec/amphtml).
	AMP      bool
	Document bool // the scan has found evidence that the text is a whole page and not a fragment
	// CharsetEnd is the end of the meta tag that declares the encoding, or 0 if there is none.
	CharsetEnd int
	// NoscriptAt is the place of the first noscript element that ends the head for parsers without scripting, or
	// -1.
	NoscriptAt int
	// Charset is only set if nothing can be inserted at CharsetEnd, because the declaration is outside the head or after
	// NoscriptAt. It is the declared encoding.
	Charset string
	// Foreign means that nothing can be written into the page, usually because of its encoding.
	Foreign bool
	Decided bool // the encoding is already known, so that declarations in the page do not matter

	unlabeled  bool // browsers do not know the declared encoding, and use the next declaration
	metas      []Meta
	metaArray  [4]Meta
	open       bool // in XHTML, the end tag of the last of metas has not been read yet
	textAt     int  // start of the current element's text
	until      int  // end of the search for evidence of a document
	prescanned bool
}

// CharsetLimit is the number of bytes in which a browser looks for the declaration of the
// encoding (https://html.spec.whatwg.org/multipage/semantics.html#charset).
const CharsetLimit = 1024

// evidenceLimit is the number of bytes after the head in which the Scanner looks for evidence of a
// document, such as a doctype after a PHP warning.
const evidenceLimit = 8 << 10

// jsonStarts has the possible first bytes of JSON. It includes ")", because some servers put ")]}'" before JSON.
const jsonStarts = `{[")`

type state uint8

const (
	stateData state = iota
	stateTagName
	stateTag
	stateComment
	stateBogus
	stateRaw
	stateScript
	stateScriptEscaped
	stateScriptDouble
	stateXMLUntil // XHTML: an instruction or a CDATA section
)

// mode is the insertion mode of the tree construction.
type mode uint8

const (
	modeInitial mode = iota
	modeBeforeHTML
	modeBeforeHead
	modeInHead
	modeAfterHead
	modeTemplate
	modeEvidence // after the head, while the scan looks for evidence of a document
)

// Reset prepares the Scanner for a new page. xml means that the page is XHTML.
func (s *Scanner) Reset(names Names, xml bool) {
	*s = Scanner{names: names, xml: xml, HeadAt: -1, NoscriptAt: -1}
	s.metas = s.metaArray[:0]
}

// Metas returns the complete robots meta tags found so far. The caller may set their field Done.
func (s *Scanner) Metas() []Meta {
	if s.open {
		return s.metas[:len(s.metas)-1]
	}
	return s.metas
}

// BehindHead reports whether the Scanner has read the end tag of the head, and is not inside a tag or comment after it.
// It also returns true while the Scanner only looks for evidence of a document.
func (s *Scanner) BehindHead() bool {
	return s.mode == modeAfterHead && s.state == stateData || s.mode == modeEvidence || s.Done
}

// XML reports whether the page is read as XHTML.
func (s *Scanner) XML() bool { return s.xml }

func (s *Scanner) known(name []byte) string { return s.names.Known(name) }

// Scan scans b, which is the page so far. eof means that b is the whole page. Scan reports whether the scan is
// finished: the head has ended, and the declaration of the encoding was found or is not within the first
// CharsetLimit bytes.
func (s *Scanner) Scan(b []byte, eof bool) bool {
	return s.scanHead(b, eof) && s.prescan(b, eof)
}

func (s *Scanner) scanHead(b []byte, eof bool) bool {
	if s.pos == 0 && !s.start(b, eof) {
		return false
	}
	for !s.Done {
		var more bool
		switch s.state {
		case stateData:
			if s.xml {
				more = s.xmlData(b)
			} else {
				more = s.data(b, eof)
			}
		case stateTagName:
			more = s.tagName(b)
		case stateTag:
			more = s.attributes(b)
		case stateComment:
			more = s.comment(b)
		case stateBogus:
			more = s.bogus(b)
		case stateRaw:
			more = s.rawText(b, eof)
		case stateXMLUntil:
			more = s.xmlUntil(b)
		case stateScript, stateScriptEscaped, stateScriptDouble:
			more = s.script(b, eof)
		}
		if !more {
			if eof || s.mode == modeEvidence && len(b) >= s.until {
				s.finish(b)
			}
			return s.Done
		}
	}
	return true
}

// start skips a byte order mark. If the page is in UTF-16, nothing can be inserted.
func (s *Scanner) start(b []byte, eof bool) bool {
	const bom = "\xEF\xBB\xBF"
	switch {
	case len(b) >= 2 && (b[0] == 0xFE && b[1] == 0xFF || b[0] == 0xFF && b[1] == 0xFE):
		s.Foreign, s.Done = true, true
	case bytes.HasPrefix(b, []byte(bom)):
		s.pos, s.Decided = len(bom), true
	case !eof && len(b) < len(bom) && (len(b) == 0 || bom[:len(b)] == string(b) || b[0] >= 0xFE):
		return false
	case eof && len(b) == 0:
		s.Done = true
	}
	return true
}

// finish handles a page that ends before the end of its head. If the page ends in a tag or comment before its head
// began, it is not changed, because an insertion would change its meaning.
func (s *Scanner) finish(b []byte) {
	s.Done = true
	if s.HeadAt < 0 && !s.xml && s.state == stateData {
		s.HeadAt, s.Implied = len(b), true
	}
}

// stop ends the head. If nothing has shown yet that this is a document, the scan continues a little to find
// evidence.
func (s *Scanner) stop() bool {
	if s.Document || s.xml || s.Foreign {
		s.Done = true
	} else {
		s.mode, s.until, s.unsure = modeEvidence, s.pos+evidenceLimit, false
	}
	return true
}

// isDocument records evidence of a document and ends the search for it.
func (s *Scanner) isDocument() {
	s.Document = true
	if s.mode == modeEvidence {
		s.Done = true
	}
}

// data follows the tokenizer's data state, which reads white space, other text, or '<'.
func (s *Scanner) data(b []byte, eof bool) bool {
	if s.mode == modeInHead {
		if s.elements(b); s.state != stateData {
			return true
		}
	}
	i := s.pos
	if s.mode == modeEvidence && i >= s.until {
		s.Done = true
		return true
	}
	if s.mode >= modeTemplate {
		j := bytes.IndexByte(b[i:], '<')
		if j < 0 {
			s.pos = len(b)
			return false
		}
		i += j
	} else {
		for i < len(b) && class[b[i]]&isSpace != 0 {
			i++
		}
	}
	s.pos = i
	if i == len(b) {
		return false
	}
	if b[i] == '&' && s.mode < modeTemplate {
		n, ok := spaceReference(b[i:], eof)
		if !ok {
			return false
		}
		if n > 0 {
			s.pos += n
			return true
		}
	}
	if b[i] != '<' {
		if s.mode == modeInitial && strings.IndexByte(jsonStarts, b[i]) >= 0 {
			s.Foreign, s.Done = true, true // JSON served as HTML
			return true
		}
		return s.text()
	}
	s.tok = i
	if i+1 == len(b) {
		return eof && s.text()
	}
	switch c := b[i+1]; {
	case class[c]&isLetter != 0:
		s.end, s.name, s.pos, s.state = false, i+1, i+2, stateTagName
		return s.tagName(b)
	case c == '/':
		if i+2 == len(b) {
			return eof && s.text()
		}
		switch c := b[i+2]; {
		case class[c]&isLetter != 0:
			s.end, s.name, s.pos, s.state = true, i+2, i+3, stateTagName
			return s.tagName(b)
		case c == '>':
			s.pos = i + 3
		default:
			s.pos, s.state, s.doctype = i+2, stateBogus, false
		}
	case c == '!':
		return s.markup(b, eof)
	case c == '?':
		s.pos, s.state, s.doctype = i+2, stateBogus, false
	default:
		return s.text()
	}
	return true
}

// text handles a character other than white space, which begins the body.
func (s *Scanner) text() bool {
	if s.mode >= modeTemplate {
		s.pos++
		return true
	}
	s.implyHead(s.pos)
	return s.stop()
}

// implyHead opens the head at the position at, unless a tag has already opened it.
func (s *Scanner) implyHead(at int) {
	if s.mode < modeInHead {
		s.HeadAt, s.Implied, s.mode = at, true, modeInHead
	}
}
