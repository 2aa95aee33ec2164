// SPDX-License-Identifier: Apache-2.0

package pathpattern

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// class is a kind of byte. It determines how the normal form writes the byte.
type class uint8

const (
	encoded   class = iota // always written as %XX
	special                // "*" and "$", which are written as %XX if they are literal (RFC 9309 section 2.2.3)
	separator              // "/" and "?", which keep their spelling except in a query
	plain                  // always written as the byte itself, even if the input has %XX
)

var classes = func() (t [256]class) {
	for c := range 128 {
		switch b := byte(c); {
		case b >= 'a' && b <= 'z', b >= 'A' && b <= 'Z', b >= '0' && b <= '9':
			t[c] = plain
		}
	}
	for _, b := range []byte("-._~:[]@!&'()+,;=") {
		t[b] = plain
	}
	t['*'], t['$'] = special, special
	t['/'], t['?'] = separator, separator
	return t
}()

const upperHex = "0123456789ABCDEF"

// place is the part of a target that a byte is in. In a path, "/" and "?" are separators, which differ from %2F and
// %3F. In a query, "/" and "?" are data, and have the same meaning as %2F and %3F (RFC 3986 section 3.4).
type place uint8

const (
	inPath   place = iota
	inEither       // in a pattern after a "*", which may match text that includes a "?"
	inQuery
)

func (p place) after(c byte) place {
	if c == '?' || p == inEither && c == '=' {
		return inQuery
	}
	return p
}

// appendNormal appends the normal form of s to b, and returns the place where s ends. It treats every "*" in s as an
// ordinary byte. at is the place where s begins.
func appendNormal(b []byte, s string, at place) ([]byte, place) {
	for i := 0; i < len(s); i++ {
		c, escaped := s[i], false
		if c == '%' {
			hi, lo := -1, -1
			if i+2 < len(s) {
				hi, lo = unhex(s[i+1]), unhex(s[i+2])
			}
			if hi >= 0 && lo >= 0 { // otherwise this "%" does not begin an escape
				i += 2
				c, escaped = byte(hi<<4|lo), true
			}
		}
		if k := classes[c]; k == plain || k == separator && (!escaped || at == inQuery) {
			b = append(b, c)
			at = at.after(c)
		} else {
			b = append(b, '%', upperHex[c>>4], upperHex[c&15])
		}
	}
	return b, at
}

func unhex(c byte) int {
	switch {
	case c >= '0' && c <= '9':
		return int(c - '0')
	case c >= 'a' && c <= 'f':
		return int(c-'a') + 10
	case c >= 'A' && c <= 'F':
		return int(c-'A') + 10
	}
	return -1
}

// isNormalEscape reports whether s begins with an escape that the normal form does not change.
func isNormalEscape(s string, at place) bool {
	if len(s) < 3 || s[1] > 'F' || s[2] > 'F' { // the normal form changes lower-case digits
		return false
	}
	hi, lo := unhex(s[1]), unhex(s[2])
	if hi < 0 || lo < 0 {
		return false
	}
	k := classes[hi<<4|lo]
	return k <= special || k == separator && at != inQuery
}

// IsNormal reports whether a path is in normal form. Nearly every path that a client sends is in normal form.
func IsNormal(path string) bool {
	if path == "" || path[0] != '/' {
		return false
	}
	query := strings.IndexByte(path, '?')
	for i := 0; i < len(path); i++ {
		if classes[path[i]] >= separator {
			continue
		}
		at := inPath
		if query >= 0 && i > query {
			at = inQuery
		}
		if path[i] != '%' || !isNormalEscape(path[i:], at) {
			return false
		}
		i += 2
	}
	return true
}

// AppendNormalPath appends the normal form of path to b. path is the path and query of a request target, unchanged from
// the request. Paths and patterns must be in normal form before they are compared (RFC 9309 section 2.2.2). In normal
// form:
//   - Unreserved bytes and ":[]@!&'()+,;=" are not encoded.
//   - "*" and "$" are written as %2A and %24, in the same way as in patterns (section 2.2.3).
//   - "/" and "?" are not changed. %2F and %3F are not changed before the query. In the query, %2F and %3F become "/"
//     and "?".
//   - All other bytes are percent-encoded with upper-case digits.
//
// If a path does not start with "/", AppendNormalPath adds a "/". It does not change a path in normal form.
func AppendNormalPath(b []byte, path string) []byte {
	if path == "" || path[0] != '/' {
		b = append(b, '/')
	}
	b, _ = appendNormal(b, path, inPath)
	return b
}

// NormalizePath returns the result of AppendNormalPath as a string.
func NormalizePath(path string) string {
	if IsNormal(path) {
		return path
	}
	return string(AppendNormalPath(make([]byte, 0, len(path)+8), path))
}

// Fold returns a target in lower case, including its query. Caddy's path matchers and many applications compare paths
// without letter case. The target must be in normal form. Fold allocates memory only if the target has upper-case
// letters, or is very long.
func Fold(path string) string {
	var buf [1024]byte // a longer path costs an allocation
	folded := appendFolded(buf[:0], path)
	if string(folded) == path {
		return path
	}
	return string(folded)
}

// Folded returns the pattern in lower case. If p matches a path, the result matches the Fold of the path. There is one
// exception, because Fold does not change escapes of ASCII characters: the text that a "*" in p matches may end inside
// an escape. For example, "*A" matches "%2A", but "*a" does not.
func (p Pattern) Folded() Pattern { return Pattern{text: Fold(p.text)} }

func appendFolded(b []byte, path string) []byte {
	for i := 0; i < len(path); i++ {
		c := path[i]
		if c != '%' {
			if c >= 'A' && c <= 'Z' {
				c += 'a' - 'A'
			}
			b = append(b, c)
			continue
		}
		r, size := escapedRune(path[i:])
		if folded := foldedRune(r); size > 0 && folded != r {
			var buf [utf8.UTFMax]byte
			b, _ = appendNormal(b, string(buf[:utf8.EncodeRune(buf[:], folded)]), inPath)
		} else {
			size = max(size, min(3, len(path)-i))
			b = append(b, path[i:i+size]...)
		}
		i += size - 1
	}
	return b
}

// foldedRune returns the lower case of r. It first converts r to upper case, because letters such as U+017F have the
// same upper case as an ASCII letter.
func foldedRune(r rune) rune { return unicode.ToLower(unicode.ToUpper(r)) }

// escapedRune decodes an escaped character that is not ASCII at the start of s. size is the number of decoded bytes,
// or 0 if s does not start with such a character.
func escapedRune(s string) (r rune, size int) {
	var buf [utf8.UTFMax]byte
	n := 0
	for ; n < len(buf) && 3*n+2 < len(s) && s[3*n] == '%'; n++ {
		hi, lo := unhex(s[3*n+1]), unhex(s[3*n+2])
		if hi < 8 || lo < 0 {
			break
		}
		buf[n] = byte(hi<<4 | lo)
	}
	r, n = utf8.DecodeRune(buf[:n])
	if r == utf8.RuneError {
		return 0, 0
	}
	return r, 3 * n
}
