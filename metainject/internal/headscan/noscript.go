// SPDX-License-Identifier: Apache-2.0

package headscan

import "bytes"

// noscriptEnds looks at the text of a noscript element in the head, which ends at
// s.pos. Parsers without scripting read it as markup ("in head noscript" insertion
// mode), and anything but metadata in it begins the body for them.
func (s *Scanner) noscriptEnds(b []byte) {
	if s.tag == tagNoscript && s.mode == modeInHead && s.NoscriptAt < 0 && !onlyMetadata(b[s.textAt:s.pos]) {
		s.NoscriptAt = s.tok
	}
}

// onlyMetadata reports whether the content of a noscript element is what a head may
// have there. It may say no where a parser would find a way, which does no harm.
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
		end := walk(b, i, nil)
		if end == 0 {
			return false
		}
		// Any other tag is not of a head.
		//exhaustive:ignore
		switch lookupTag(name) {
		case tagMeta, tagBase: // void elements; base itself ends the head, but no page has it there
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
