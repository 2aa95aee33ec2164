// SPDX-License-Identifier: Apache-2.0

package pathpattern

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// Fold returns the path of a target, in normal form, without letter case, as
// Caddy's path matchers and many applications compare it. Its query is folded too.
// It does not allocate for a path without letters in upper case.
func Fold(path string) string {
	if !foldable(path) {
		return path
	}
	return string(appendFolded(make([]byte, 0, len(path)), path))
}

// Folded is the pattern without letter case: if p matches a path, Folded matches the
// path that Fold makes of it, unless a "*" of p ends inside an escape, as that of "*A"
// does in "%2A".
func (p Pattern) Folded() Pattern { return Pattern{text: Fold(p.text)} }

// foldable reports whether a path changes when it is folded.
func foldable(path string) bool {
	if strings.IndexByte(path, '%') < 0 {
		for i := range len(path) {
			if path[i]-'A' < 26 {
				return true
			}
		}
		return false
	}
	for i := 0; i < len(path); i++ {
		switch c := path[i]; {
		case c >= 'A' && c <= 'Z':
			return true
		case c == '%' && i+2 < len(path):
			if path[i+1] >= '8' { // of a byte beyond ASCII
				if r, size := escapedRune(path[i:]); size > 0 && foldedRune(r) != r {
					return true
				}
			}
			i += 2
		}
	}
	return false
}

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

// foldedRune is the lower case of a letter's upper case, because some letters, such as
// U+017F, have the upper case of others.
func foldedRune(r rune) rune { return unicode.ToLower(unicode.ToUpper(r)) }

// escapedRune decodes the escapes of a character beyond ASCII at the start of s. The
// size is the length of the escapes, or 0 if there is no such character.
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
