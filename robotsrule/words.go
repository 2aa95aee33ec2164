// SPDX-License-Identifier: Apache-2.0

package robotsrule

import (
	"slices"
	"strings"
)

// A word is a rule without a field of its own in Set: a permissive word, a rule
// unknown here, or a malformed value of a known one. It is "name", "name:value"
// as in X-Robots-Tag and meta content, or "name=item" with a bare item of RFC
// 8941, as in Robots-Tag. The name is in lowercase; the value is as it came.

func wordName(w string) (name string, valued bool) {
	if i := strings.IndexAny(w, ":="); i >= 0 {
		return w[:i], true
	}
	return w, false
}

func (s Set) words() []string {
	if s.other == "" {
		return nil
	}
	return strings.Split(s.other, "\n")
}

func joinWords(words []string) string {
	slices.Sort(words)
	return strings.Join(slices.Compact(words), "\n")
}

func mergeWords(a, b string) string {
	switch {
	case b == "" || a == b:
		return a
	case a == "":
		return b
	}
	return joinWords(append(strings.Split(a, "\n"), strings.Split(b, "\n")...))
}

// permissive reports whether the bare word only allows: all, and the contrary of a
// known restriction.
func permissive(word string) bool {
	switch word {
	case "all", "index", "indexifembedded":
		return true
	}
	for _, n := range flagNames {
		if n[len("no"):] == word {
			return true
		}
	}
	return false
}

// clean makes text fit for a header field or an attribute on one line: control
// characters and runs of white space become one space.
func clean(text string) string {
	ok := true
	for i := 0; i < len(text) && ok; i++ {
		c := text[i]
		ok = c > ' ' && c != 0x7f || c == ' ' && i > 0 && i < len(text)-1 && text[i-1] != ' '
	}
	if ok {
		return text
	}
	return strings.Join(strings.FieldsFunc(text, func(c rune) bool { return c <= ' ' || c == 0x7f }), " ")
}

// lower puts ASCII letters in lowercase and leaves other bytes alone, so that
// text in an unknown charset stays what it is.
func lower(s string) string {
	for i := 0; i < len(s); i++ {
		if 'A' <= s[i] && s[i] <= 'Z' {
			b := []byte(s)
			for ; i < len(b); i++ {
				if 'A' <= b[i] && b[i] <= 'Z' {
					b[i] += 'a' - 'A'
				}
			}
			return string(b)
		}
	}
	return s
}
