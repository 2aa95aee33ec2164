// SPDX-License-Identifier: Apache-2.0

package headscan

import (
	"bytes"
	"strconv"
)

// answer is the answer to a yes-or-no question about the page's bytes. Some of the bytes may not have arrived yet.
type answer uint8

const (
	no answer = iota
	yes
	unsure // more bytes are needed
)

// rawText skips the text of an element such as title, style or noscript (RCDATA and RAWTEXT states).
func (s *Scanner) rawText(b []byte, eof bool) bool {
	for {
		j := bytes.IndexByte(b[s.pos:], '<')
		if j < 0 {
			s.pos = len(b)
			return false
		}
		s.pos += j
		switch s.tagAhead(b, "</", eof) {
		case yes:
			s.noscriptEnds(b)
			s.rawEnd(b)
			return true
		case unsure:
			return false
		case no:
		}
		s.pos++
	}
}

// rawEnd starts reading the element's end tag at s.pos.
func (s *Scanner) rawEnd(b []byte) {
	if s.unsure && bytes.IndexByte(b[s.textAt:s.pos], '<') >= 0 {
		s.stop()
	}
	n := s.nameEnd - s.name
	s.tok, s.name, s.nameEnd = s.pos, s.pos+2, s.pos+2+n
	s.pos, s.end, s.state, s.attrAt, s.quote = s.nameEnd, true, stateTag, s.nameEnd, 0
}

// tagAhead reports whether a tag of the current element is at s.pos. Such a tag consists of the argument open, which is
// "<" or "</", of the element's name, and of a byte that ends a name.
func (s *Scanner) tagAhead(b []byte, open string, eof bool) answer {
	name, rest := b[s.name:s.nameEnd], b[s.pos:]
	if len(rest) > 1 && len(open) > 1 && rest[1] != '/' {
		return no
	}
	n := len(open) + len(name)
	for i := len(open); i < min(n, len(rest)); i++ {
		c, d := rest[i], name[i-len(open)]
		if c != d && (c|0x20 != d|0x20 || class[c]&isLetter == 0) {
			return no
		}
	}
	if len(rest) <= n {
		return atEnd(eof)
	}
	if class[rest[n]]&endsName == 0 {
		return no
	}
	return yes
}

func atEnd(eof bool) answer {
	if eof {
		return no
	}
	return unsure
}

// wordAhead reports whether the bytes at s.pos begin with word.
func (s *Scanner) wordAhead(b []byte, word string, eof bool) answer {
	rest := b[s.pos:]
	if len(rest) >= len(word) {
		if string(rest[:len(word)]) == word {
			return yes
		}
		return no
	}
	if word[:len(rest)] == string(rest) {
		return atEnd(eof)
	}
	return no
}

// script skips the text of a script. It follows the script data states of the tokenizer. "<!--" begins the escaped
// states, in which a "</script" that follows a "<script" does not end the element.
func (s *Scanner) script(b []byte, eof bool) bool {
	for s.state != stateTag {
		i := s.pos
		if s.state == stateScript {
			if j := bytes.IndexByte(b[i:], '<'); j >= 0 {
				i += j
			} else {
				i = len(b)
			}
		} else {
			for i < len(b) && b[i] != '<' && b[i] != '-' {
				i++
			}
		}
		s.pos = i
		if i == len(b) {
			return false
		}
		var wait bool
		if b[i] == '-' {
			wait = s.scriptDash(b, eof)
		} else {
			wait = s.scriptLess(b, eof)
		}
		if wait {
			return false
		}
	}
	return true
}

func (s *Scanner) scriptDash(b []byte, eof bool) (wait bool) {
	switch s.wordAhead(b, "-->", eof) {
	case unsure:
		return true
	case yes:
		s.pos, s.state = s.pos+3, stateScript
	case no:
		s.pos++
	}
	return false
}

func (s *Scanner) scriptLess(b []byte, eof bool) (wait bool) {
	switch s.tagAhead(b, "</", eof) {
	case unsure:
		return true
	case yes:
		if s.state != stateScriptDouble {
			s.rawEnd(b)
			return false
		}
		s.pos, s.state = s.pos+1, stateScriptEscaped
		return false
	case no:
	}
	var a answer
	// Only these two states can change to another state here.
	//exhaustive:ignore
	switch s.state {
	case stateScript:
		if a = s.wordAhead(b, "<!--", eof); a == yes {
			// Skip only "<!". The two hyphens may also be the start of "-->", as in "<!-->".
			s.pos, s.state = s.pos+2, stateScriptEscaped
			return false
		}
	case stateScriptEscaped:
		if a = s.tagAhead(b, "<", eof); a == yes {
			s.state = stateScriptDouble
		}
	}
	if a == unsure {
		return true
	}
	s.pos++
	return false
}

// noscriptEnds examines the text of a noscript element in the head. Parsers without scripting read this text as
// markup. For these parsers, the body begins here if the text contains anything but metadata.
func (s *Scanner) noscriptEnds(b []byte) {
	if s.tag == tagNoscript && s.mode == modeInHead && s.NoscriptAt < 0 && !onlyMetadata(b[s.textAt:s.pos]) {
		s.NoscriptAt = s.tok
	}
}

// onlyMetadata reports whether the content of a noscript element may be in a head. In an unclear case, onlyMetadata
// returns false, which is safe.
func onlyMetadata(b []byte) bool {
	for i := 0; i < len(b); {
		c := b[i]
		if class[c]&isSpace != 0 {
			i++
			continue
		}
		if c != '<' {
			return false
		}
		if bytes.HasPrefix(b[i:], []byte("<!--")) {
			n := bytes.Index(b[i+4:], []byte("-->"))
			if n < 0 {
				return false
			}
			i += 4 + n + 3
			continue
		}
		from := i + 1
		for i = from; i < len(b) && class[b[i]]&endsName == 0; {
			i++
		}
		name := b[from:i]
		end, ok := walk(b, i, nil)
		if !ok {
			return false
		}
		// All other tags belong to the body.
		//exhaustive:ignore
		switch lookupTag(name) {
		case tagMeta, tagBase: // void elements
			i = end
		case tagStyle:
			n := bytes.Index(b[end:], []byte("</style>"))
			if string(name) != "style" || n < 0 {
				return false
			}
			i = end + n + len("</style>")
		default:
			return false
		}
	}
	return true
}

// maxReference is the maximum length in bytes of a numeric character reference.
const maxReference = 64

// spaceReference returns the length of the character reference at the start of b if it stands for white space, or 0
// otherwise. ok is false if more bytes are needed.
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
	i, base, digits := 2, 10, "0123456789"
	if i < len(b) && b[i]|0x20 == 'x' {
		i, base, digits = 3, 16, "0123456789abcdefABCDEF"
	}
	rest := bytes.TrimLeft(b[i:min(len(b), maxReference)], digits)
	number := b[i : min(len(b), maxReference)-len(rest)]
	i += len(number)
	if i == maxReference {
		return 0, true
	}
	if i == len(b) && !eof {
		return 0, false
	}
	if v, err := strconv.ParseUint(string(number), base, 8); err != nil || v > ' ' || class[v]&isSpace == 0 {
		return 0, true
	}
	if i < len(b) && b[i] == ';' {
		i++
	}
	return i, true
}
