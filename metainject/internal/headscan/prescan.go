// SPDX-License-Identifier: Apache-2.0

package headscan

import (
	"bytes"

	"github.com/robotspolicy/caddy-robots-policy/metainject/internal/ascii"
)

// prescan finds a declaration of the encoding that is not a child of the head, as
// browsers do, which look through the first bytes without parsing them
// (https://html.spec.whatwg.org/multipage/parsing.html#prescan-a-byte-stream-to-determine-its-encoding).
// It is needed only where nothing else declares the encoding, and returns false if
// more bytes have to arrive first.
func (s *Scanner) prescan(b []byte, eof bool) bool {
	if s.prescanned || s.Decided || s.xml || s.Foreign || s.CharsetEnd > 0 && s.CharsetEnd <= CharsetLimit {
		return true
	}
	if len(b) < CharsetLimit && !eof {
		return false
	}
	s.prescanned = true
	b = b[:min(len(b), CharsetLimit)]
	for i := 0; i < len(b); {
		j := bytes.IndexByte(b[i:], '<')
		if j < 0 || i+j+1 >= len(b) {
			return true
		}
		i += j
		rest := b[i+1:]
		switch c := rest[0]; {
		case bytes.HasPrefix(rest, []byte("!--")):
			n := bytes.Index(rest[1:], []byte("-->"))
			if n < 0 {
				return true
			}
			i += 2 + n + 3
		case class[c]&isLetter != 0, c == '/' && len(rest) > 1 && class[rest[1]]&isLetter != 0:
			at := i + 1
			for at < len(b) && class[b[at]]&(isSpace|endsValue) == 0 && (b[at] != '/' || at == i+1) {
				at++
			}
			var m metaAttributes
			end := walk(b, at, &m)
			if end == 0 {
				return true
			}
			if ascii.EqualFold(b[i+1:at], "meta") && s.declares(b, &m) {
				s.CharsetEnd = end
				return true
			}
			i = end
		case c == '!' || c == '/' || c == '?':
			n := bytes.IndexByte(rest, '>')
			if n < 0 {
				return true
			}
			i += n + 2
		default:
			i++
		}
	}
	return true
}

// declares stores the encoding that a meta element outside the head declares.
func (s *Scanner) declares(b []byte, m *metaAttributes) bool {
	v := metaValues{httpEquiv: m.httpEquiv.value(b), content: m.content.value(b), charset: m.charset.value(b)}
	label, ok := m.label(&v)
	if !ok {
		return false
	}
	switch EncodingOf(label) {
	case Unlabelled:
		return false
	case Other:
		s.Foreign = true
	case ASCIIBased, UTF16:
		s.Charset = string(label)
	}
	return true
}
