// SPDX-License-Identifier: Apache-2.0

package headscan

import (
	"bytes"

	"github.com/robotspolicy/caddy-robots-policy/metainject/internal/ascii"
)

// markup is what follows "<!": a comment, a DOCTYPE or a bogus comment.
func (s *Scanner) markup(b []byte, eof bool) bool {
	rest := b[s.pos+2:]
	const word = "doctype"
	if len(rest) >= 2 && rest[0] == '-' && rest[1] == '-' {
		s.pos, s.state = s.pos+4, stateComment
		return true
	}
	if s.unsure && len(rest) > 0 && rest[0] == '[' {
		return s.stop() // CDATA, or a comment
	}
	if len(rest) >= len(word) && ascii.EqualFold(rest[:len(word)], word) {
		s.pos, s.state, s.doctype = s.pos+2+len(word), stateBogus, true
		return true
	}
	if !eof && (len(rest) == 0 || len(rest) == 1 && rest[0] == '-' ||
		len(rest) < len(word) && ascii.EqualFold(rest, word[:len(rest)])) {
		return false
	}
	s.pos, s.state, s.doctype = s.pos+2, stateBogus, false
	return true
}

// comment looks for "-->" or "--!>"; "<!-->" and "<!--->" are whole comments.
func (s *Scanner) comment(b []byte) bool {
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
func (s *Scanner) bogus(b []byte) bool {
	j := bytes.IndexByte(b[s.pos:], '>')
	if j < 0 {
		s.pos = len(b)
		return false
	}
	s.pos += j + 1
	s.state = stateData
	if s.doctype && s.mode != modeTemplate {
		s.isDocument()
		if s.mode == modeInitial {
			s.mode = modeBeforeHTML
		}
	}
	return true
}
