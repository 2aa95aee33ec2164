// SPDX-License-Identifier: Apache-2.0

package metainject

import "bytes"

// A scanner follows the HTML standard's tokenization and tree construction
// (https://html.spec.whatwg.org/multipage/parsing.html, scripting enabled) over
// the head of a page, as far as it takes to know where the head begins, which
// meta elements are its children, and where it ends.
//
// It is pushed: scan is given the page from its first byte, longer each time,
// and goes on where it stopped, so that no byte is looked at twice but for a
// few at a chunk's end. It copies nothing and allocates nothing until it finds
// a robots meta element.
//
// It gives up early, and says the head ends, in two places that the standard
// resolves with the whole tree builder: foreign content, tables and select
// inside a template; and a numeric character reference of more than 64 bytes
// in the head's text.
type scanner struct {
	set *Set
	xml bool

	state   state
	attr    attrState
	mode    mode
	ret     mode // where the outermost template stands
	depth   int  // open templates; in XHTML, open elements inside the head
	end     bool // the current tag is an end tag
	slash   bool // the current tag ended with "/>"; for XHTML
	doctype bool // the current bogus comment is a DOCTYPE
	tag     tagName

	pos     int // next byte to look at
	tok     int // start of the current tag, comment or declaration
	name    int // start of its name, also while an element's text is skipped
	nameEnd int

	done     bool
	headAt   int  // where the head's content begins; -1: not found
	implied  bool // the head was opened by what stands at headAt, not by a head tag
	document bool // something shows that this is a page and no fragment of one
	// charsetEnd is where the first meta element that declares a character
	// encoding ends, 0 if there is none; unlabelled tells that no browser knows
	// it, so that the next one counts.
	charsetEnd int
	unlabelled bool
	foreign    bool // the declared encoding is none that we may write ASCII into
	decided    bool // the encoding is known from elsewhere, a declaration in the page does not count
	metas      []found
	metaArray  [4]found
	open       bool // XHTML: the last of metas still waits for its end tag
}

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
)

func (s *scanner) reset(set *Set, xml bool) {
	*s = scanner{set: set, xml: xml, headAt: -1}
	s.metas = s.metaArray[:0]
}

// scan looks at b, all of the page that has come so far; eof says that nothing
// follows. It reports whether the head's end has been found.
func (s *scanner) scan(b []byte, eof bool) bool {
	if s.pos == 0 && !s.start(b, eof) {
		return false
	}
	for !s.done {
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
		default:
			more = s.script(b, eof)
		}
		if !more {
			if eof {
				s.finish(b)
			}
			return s.done
		}
	}
	return true
}

// start skips a byte order mark. A page in UTF-16 is none of ours.
func (s *scanner) start(b []byte, eof bool) bool {
	const bom = "\xEF\xBB\xBF"
	switch {
	case len(b) >= 2 && (b[0] == 0xFE && b[1] == 0xFF || b[0] == 0xFF && b[1] == 0xFE):
		s.foreign, s.done = true, true
	case bytes.HasPrefix(b, []byte(bom)):
		s.pos, s.decided = len(bom), true
	case !eof && len(b) < len(bom) && (len(b) == 0 || bom[:len(b)] == string(b) || b[0] >= 0xFE):
		return false
	case eof && len(b) == 0:
		s.done = true
	}
	return true
}

// finish is the end of the page inside the head or before it. A page that ends
// in the middle of a tag or comment before its head began is left alone: there
// is no place in it that what we add would not change the meaning of.
func (s *scanner) finish(b []byte) {
	s.done = true
	if s.headAt < 0 && !s.xml && s.state == stateData {
		s.headAt, s.implied = len(b), true
	}
}

// stop ends the scan at the first thing that does not belong to the head.
func (s *scanner) stop() bool {
	s.done = true
	return true
}

// data is the tokenizer's data state: white space, other text, or a '<'.
func (s *scanner) data(b []byte, eof bool) bool {
	if s.mode == modeInHead {
		if s.elements(b); s.state != stateData {
			return true
		}
	}
	i := s.pos
	if s.mode == modeTemplate {
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
	if b[i] == '&' {
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

// text is a character that is no white space: the body begins with it.
func (s *scanner) text() bool {
	if s.mode == modeTemplate {
		s.pos++
		return true
	}
	s.implyHead(s.pos)
	return s.stop()
}

// implyHead opens the head, and html before it, where no tag has.
func (s *scanner) implyHead(at int) {
	if s.mode < modeInHead {
		s.headAt, s.implied, s.mode = at, true, modeInHead
	}
}

// markup is what follows "<!": a comment, a DOCTYPE or a bogus comment.
func (s *scanner) markup(b []byte, eof bool) bool {
	rest := b[s.pos+2:]
	const word = "doctype"
	if len(rest) >= 2 && rest[0] == '-' && rest[1] == '-' {
		s.pos, s.state = s.pos+4, stateComment
		return true
	}
	if len(rest) >= len(word) && equalFold(rest[:len(word)], word) {
		s.pos, s.state, s.doctype = s.pos+2+len(word), stateBogus, true
		return true
	}
	if !eof && (len(rest) == 0 || len(rest) == 1 && rest[0] == '-' ||
		len(rest) < len(word) && equalFold(rest, word[:len(rest)])) {
		return false
	}
	s.pos, s.state, s.doctype = s.pos+2, stateBogus, false
	return true
}

// comment looks for "-->" or "--!>"; "<!-->" and "<!--->" are whole comments.
func (s *scanner) comment(b []byte) bool {
	from := s.tok + len("<!--")
	for {
		j := bytes.IndexByte(b[s.pos:], '>')
		if j < 0 {
			s.pos = len(b)
			return false
		}
		i := s.pos + j
		s.pos = i + 1
		in := b[from:i]
		if bytes.HasSuffix(in, []byte("--")) ||
			!s.xml && (len(in) == 0 || string(in) == "-" || bytes.HasSuffix(in, []byte("--!"))) {
			s.state = stateData
			return true
		}
	}
}

// bogus skips a bogus comment or a DOCTYPE; both end at the first '>', also
// inside a DOCTYPE's quotes.
func (s *scanner) bogus(b []byte) bool {
	j := bytes.IndexByte(b[s.pos:], '>')
	if j < 0 {
		s.pos = len(b)
		return false
	}
	s.pos += j + 1
	s.state = stateData
	if s.doctype && s.mode == modeInitial {
		s.mode, s.document = modeBeforeHTML, true
	}
	return true
}

// spaceReference reports how long the character reference at the start of b is
// if it stands for white space, and 0 if it does not. ok is false if more bytes
// are needed to tell.
func spaceReference(b []byte, eof bool) (n int, ok bool) {
	for _, name := range [...]string{"&Tab;", "&NewLine;"} {
		if bytes.HasPrefix(b, []byte(name)) {
			return len(name), true
		}
		if !eof && len(b) < len(name) && name[:len(b)] == string(b) {
			return 0, false
		}
	}
	if len(b) == 1 {
		return 0, eof
	}
	if b[1] != '#' {
		return 0, true
	}
	i, base, v, digits := 2, 10, 0, 0
	if i < len(b) && b[i]|0x20 == 'x' {
		i, base = 3, 16
	}
	for ; i < len(b) && i < 64; i++ {
		d := hexDigit(b[i])
		if d >= base {
			break
		}
		digits++
		v = min(v*base+d, 1<<20)
	}
	if i >= 64 {
		return 0, true
	}
	if i == len(b) && !eof {
		return 0, false
	}
	if digits == 0 || v > ' ' || class[byte(v)]&isSpace == 0 {
		return 0, true
	}
	if i < len(b) && b[i] == ';' {
		i++
	}
	return i, true
}

func hexDigit(c byte) int {
	switch {
	case '0' <= c && c <= '9':
		return int(c - '0')
	case 'a' <= c|0x20 && c|0x20 <= 'f':
		return int(c|0x20-'a') + 10
	}
	return 16
}
