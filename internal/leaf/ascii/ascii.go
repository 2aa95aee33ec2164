// SPDX-License-Identifier: Apache-2.0

// Package ascii compares ASCII text and ignores case. Unlike package strings, it ignores case only for ASCII letters,
// as HTML, HTTP and robots.txt require.
package ascii

import "strings"

// EqualFold reports whether b equals lower if case is ignored. lower must be in lower case.
func EqualFold[T string | []byte](b T, lower string) bool {
	if len(b) != len(lower) {
		return false
	}
	for i := range len(lower) {
		c := b[i]
		if 'A' <= c && c <= 'Z' {
			c |= 0x20
		}
		if c != lower[i] {
			return false
		}
	}
	return true
}

// Lower returns s with its ASCII letters in lower case.
func Lower(s string) string {
	for i := range len(s) {
		if 'A' <= s[i] && s[i] <= 'Z' {
			return lowerFrom(s, i)
		}
	}
	return s
}

// lowerFrom does the same as Lower for a text whose first i bytes are in lower case.
func lowerFrom(s string, i int) string {
	var b strings.Builder
	b.Grow(len(s))
	b.WriteString(s[:i])
	for ; i < len(s); i++ {
		c := s[i]
		if 'A' <= c && c <= 'Z' {
			c |= 0x20
		}
		b.WriteByte(c)
	}
	return b.String()
}

// IsSpace reports whether c is white space according to the HTML standard.
func IsSpace(c byte) bool {
	return c == ' ' || c == '\n' || c == '\t' || c == '\r' || c == '\f'
}
