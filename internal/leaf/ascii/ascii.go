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
	if !strings.ContainsFunc(s, func(c rune) bool { return 'A' <= c && c <= 'Z' }) {
		return s
	}
	b := []byte(s)
	for i, c := range b {
		if 'A' <= c && c <= 'Z' {
			b[i] = c | 0x20
		}
	}
	return string(b)
}

// IsSpace reports whether c is white space according to the HTML standard.
func IsSpace(c byte) bool {
	return c == ' ' || c == '\n' || c == '\t' || c == '\r' || c == '\f'
}
