// SPDX-License-Identifier: Apache-2.0

package headscan

import "bytes"

// answer is what a look at bytes that may be cut off can tell.
type answer uint8

const (
	no answer = iota
	yes
	unsure // more bytes are needed
)

// rawText skips the text of a title, style, noscript, … element up to its end
// tag (RCDATA and RAWTEXT states).
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

// rawEnd turns to the end tag at s.pos, whose name is the start tag's.
func (s *Scanner) rawEnd(b []byte) {
	if s.unsure && bytes.IndexByte(b[s.textAt:s.pos], '<') >= 0 {
		s.stop()
	}
	n := s.nameEnd - s.name
	s.tok, s.name, s.nameEnd = s.pos, s.pos+2, s.pos+2+n
	s.pos, s.end, s.state, s.attr = s.nameEnd, true, stateTag, beforeAttr
}

// tagAhead reports whether at s.pos stands open, then the name of the current
// element, then what ends a name.
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

// wordAhead reports whether word stands at s.pos.
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

// script skips a script's text: the script data states, of which the escaped
// ones begin at "<!--" and hide a "</script" behind a "<script".
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
	// Only these two states of scripts lead to another.
	//exhaustive:ignore
	switch s.state {
	case stateScript:
		if a = s.wordAhead(b, "<!--", eof); a == yes {
			// The two hyphens may be those of "-->" too.
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
