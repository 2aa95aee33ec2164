// SPDX-License-Identifier: Apache-2.0

package clickhouse

import (
	"errors"
	"strings"
)

// escapes are the bytes that have a meaning in a literal or in a field of TabSeparated, and
// what stands for them in both.
var escapes = [256]byte{'\\': '\\', '\'': '\'', '\t': 't', '\n': 'n', '\r': 'r', '\b': 'b', '\f': 'f', 0: '0'}

// Escape writes a text so that it is one field of a row, and can stand between the quotes of
// a literal.
func Escape(s string) string {
	var b strings.Builder
	for i := range len(s) {
		if e := escapes[s[i]]; e != 0 {
			b.WriteByte('\\')
			b.WriteByte(e)
		} else {
			b.WriteByte(s[i])
		}
	}
	return b.String()
}

// Quote writes a text as a literal.
func Quote(s string) string { return "'" + Escape(s) + "'" }

// List writes texts as a list of literals in parentheses. There must be one at least.
func List(texts []string) string {
	quoted := make([]string, len(texts))
	for i, t := range texts {
		quoted[i] = Quote(t)
	}
	return "(" + strings.Join(quoted, ", ") + ")"
}

// unescape reads a field of a row.
func unescape(s string) (string, error) {
	if !strings.Contains(s, `\`) {
		return s, nil
	}
	var b strings.Builder
	for i := 0; i < len(s); i++ {
		if s[i] != '\\' {
			b.WriteByte(s[i])
			continue
		}
		if i++; i == len(s) {
			return "", errors.New("a field ends in a backslash")
		}
		c := s[i]
		for plain, e := range escapes {
			if e == c && e != 0 {
				c = byte(plain)
				break
			}
		}
		b.WriteByte(c)
	}
	return b.String(), nil
}
