// SPDX-License-Identifier: Apache-2.0

package accesslog

import (
	"strconv"
	"unicode/utf16"
	"unicode/utf8"
)

// unescape appends to b what a text stands for, with the escapes of JSON, which nginx
// can write too, and those of nginx and Apache: \xHH and the letters of C. A damaged
// escape stays as it is.
func unescape(b, s []byte) []byte {
	for i := 0; i < len(s); i++ {
		if s[i] != '\\' || i+1 == len(s) {
			b = append(b, s[i])
			continue
		}
		i++
		switch c := s[i]; c {
		case '"', '\\', '/':
			b = append(b, c)
		case 'b', 'f', 'n', 'r', 't', 'v':
			b = append(b, controls[c])
		case 'u':
			r, n := hexRune(s[i+1:])
			if n == 0 {
				b = append(b, '\\', 'u')
				continue
			}
			i += n
			b = utf8.AppendRune(b, r)
		case 'x':
			v, ok := hexNumber(s[i+1:], 2)
			if !ok {
				b = append(b, '\\', 'x')
				continue
			}
			i += 2
			b = append(b, byte(v))
		default:
			b = append(b, '\\', c)
		}
	}
	return b
}

// controls are the control characters that letters stand for.
var controls = [256]byte{'b': '\b', 'f': '\f', 'n': '\n', 'r': '\r', 't': '\t', 'v': '\v'}

// hexNumber reads a number of so many digits.
func hexNumber(s []byte, digits int) (uint64, bool) {
	if len(s) < digits {
		return 0, false
	}
	v, err := strconv.ParseUint(string(s[:digits]), 16, 16)
	return v, err == nil
}

// hexRune reads the four digits after \u, and the second half of a surrogate pair.
func hexRune(s []byte) (r rune, n int) {
	v, ok := hexNumber(s, 4)
	if !ok {
		return 0, 0
	}
	r = rune(v)
	if !utf16.IsSurrogate(r) {
		return r, 4
	}
	if len(s) >= 6 && s[4] == '\\' && s[5] == 'u' {
		if low, ok := hexNumber(s[6:], 4); ok {
			if pair := utf16.DecodeRune(r, rune(low)); pair != utf8.RuneError {
				return pair, 10
			}
		}
	}
	return utf8.RuneError, 4
}
