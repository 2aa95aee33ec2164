// SPDX-License-Identifier: Apache-2.0

// Package english formats numbers and lists of words for messages.
package english

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// Count returns a number with a noun, in the singular or plural: "no errors", "1 error", "2 errors".
func Count(n int, word string) string {
	switch n {
	case 0:
		return "no " + word + "s"
	case 1:
		return "1 " + word
	}
	return fmt.Sprintf("%d %ss", n, word)
}

// Number returns a number with commas, such as "53,234".
func Number(n int64) string {
	s := strconv.FormatInt(n, 10)
	for i := len(s) - 3; i > 0 && s[i-1] != '-'; i -= 3 {
		s = s[:i] + "," + s[i:]
	}
	return s
}

// List joins words to a phrase such as "a, b and c". last is the word before the last item, such as "and".
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

// OneLine makes a text safe for a single line. It replaces line breaks, control characters and characters that change
// the direction of text with spaces.
func OneLine(s string) string {
	return strings.Map(func(c rune) rune {
		if c < ' ' || c >= 0x7f && c < 0xa0 || c == '\u2028' || c == '\u2029' || c >= '\u202a' && c <= '\u202e' || c >= '\u2066' && c <= '\u2069' {
			return ' '
		}
		return c
	}, s)
}

// Some returns a list of at most n words. For n=2 and nine words, it returns "a, b and 7 more".
func Some[S ~string](words []S, n int) string {
	if len(words) > n {
		words = append(slices.Clone(words[:n-1]), S(fmt.Sprintf("%d more", len(words)-n+1)))
	}
	return List(words, "and")
}
