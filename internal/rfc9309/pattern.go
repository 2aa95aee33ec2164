// SPDX-License-Identifier: Apache-2.0

package rfc9309

import "strings"

// pattern is the value of a rule in normal form.
type pattern string

func newPattern(value string) pattern { return pattern(normalize(value, true)) }

const hex = "0123456789ABCDEF"

// normalize decodes what RFC 9309 section 2.2.2 has decoded, unreserved characters, and
// encodes bytes beyond ASCII. A space in a pattern matches nothing. A literal "*" or "$" of a path is the encoded one of a
// pattern.
func normalize(s string, pattern bool) string {
	var b strings.Builder
	for i := 0; i < len(s); i++ {
		c := s[i]
		switch {
		case c == '%' && i+2 < len(s) && unhex(s[i+1]) >= 0 && unhex(s[i+2]) >= 0:
			if c = byte(unhex(s[i+1])<<4 | unhex(s[i+2])); unreserved(c) {
				b.WriteByte(c)
			} else {
				encode(&b, c)
			}
			i += 2
		case c >= 0x80 || !pattern && (c <= ' ' || c == '*' || c == '$'):
			encode(&b, c)
		default:
			b.WriteByte(c)
		}
	}
	return b.String()
}

func encode(b *strings.Builder, c byte) {
	b.WriteByte('%')
	b.WriteByte(hex[c>>4])
	b.WriteByte(hex[c&15])
}

func unhex(c byte) int {
	return strings.IndexByte(hex, strings.ToUpper(string(rune(c)))[0])
}

// unreserved are the characters of RFC 3986 section 2.3.
func unreserved(c byte) bool {
	return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || strings.IndexByte("-._~", c) >= 0
}

// matches tries the pattern from the start of a path in normal form (RFC 9309 section
// 2.2.3).
func (p pattern) matches(path string) bool {
	text, anchored := strings.CutSuffix(string(p), "$")
	parts := strings.Split(text, "*")
	if !strings.HasPrefix(path, parts[0]) {
		return false
	}
	path = path[len(parts[0]):]
	for i, part := range parts[1:] {
		if anchored && i == len(parts)-2 {
			return strings.HasSuffix(path, part)
		}
		at := strings.Index(path, part)
		if at < 0 {
			return false
		}
		path = path[at+len(part):]
	}
	return !anchored || path == ""
}
