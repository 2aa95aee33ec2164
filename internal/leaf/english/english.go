// SPDX-License-Identifier: Apache-2.0

// Package english writes numbers and lists of words in messages.
package english

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// Count returns a number of things: "no errors", "1 error", "2 errors".
func Count(n int, word string) string {
	switch n {
	case 0:
		return "no " + word + "s"
	case 1:
		return "1 " + word
	}
	return fmt.Sprintf("%d %ss", n, word)
}

// Number returns a number with commas: 53,234.
func Number(n int64) string {
	s := strconv.FormatInt(n, 10)
	for i := len(s) - 3; i > 0 && s[i-1] != '-'; i -= 3 {
		s = s[:i] + "," + s[i:]
	}
	return s
}

// List joins words as in a sentence: "a, b and c". last is the word before the last one.
func List[S ~string](words []S, last string) string {
	var b strings.Builder
	for i, w := range words {
		switch {
		case i == 0:
		case i == len(words)-1:
			b.WriteString(" " + last + " ")
		default:
			b.WriteString(", ")
		}
		b.WriteString(string(w))
	}
	return b.String()
}

// OneLine makes a text safe within a line. It replaces line breaks, control characters and characters that change
// the direction of writing by spaces.
func OneLine(s string) string {
	return strings.Map(func(c rune) rune {
		if c < ' ' || c >= 0x7f && c < 0xa0 || c == '\u2028' || c == '\u2029' || c >= '\u202a' && c <= '\u202e' || c >= '\u2066' && c <= '\u2069' {
			return ' '
		}
		return c
	}, s)
}

// Some lists at most n words: for n=2 and nine words it returns "a, b and 7 more".
func Some[S ~string](words []S, n int) string {
	if len(words) > n {
		words = append(slices.Clone(words[:n-1]), S(fmt.Sprintf("%d more", len(words)-n+1)))
	}
	return List(words, "and")
}
