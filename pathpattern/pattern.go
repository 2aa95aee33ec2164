// SPDX-License-Identifier: Apache-2.0

// Package pathpattern implements the path patterns of robots.txt: their normal form (RFC 9309 section 2.2.2), "*"
// and "$" (section 2.2.3), and an index of many patterns. It also finds the paths that servers may read in a
// request target.
package pathpattern

import (
	"errors"
	"strings"
)

// Pattern is a path pattern in normal form. The zero value is not a pattern.
type Pattern struct {
	text string
}

// All is the pattern "/", which matches every path.
var All = Pattern{text: "/"}

var (
	errEmpty = errors.New("the pattern is empty")
	errStart = errors.New(`a path pattern starts with "/" or "*"`)
	errSpace = errors.New("a path pattern has no spaces or control characters; write a space as %20")
	errHash  = errors.New(`"#" starts a comment in robots.txt; write it as %23`)
)

// Parse puts s into the normal form of AppendNormalPath, in which "*" anywhere and "$" at the end are special (RFC
// 9309 section 2.2.3). "*.gif" becomes "/*.gif", which matches the same, and so does "**.gif"; "*/x" stays, because
// no single pattern with "/" does. Other needless "*" stay, because readers count them in the pattern's length. After
// a "?", or a "*" and a "=", comes the query, in which %2F and %3F are spellings of "/" and "?".
//
// The errors are written for the author of a policy.
func Parse(s string) (Pattern, error) {
	switch {
	case s == "":
		return Pattern{}, errEmpty
	case s[0] != '/' && s[0] != '*':
		return Pattern{}, errStart
	}
	for i := range len(s) {
		if s[i] <= ' ' || s[i] == 0x7f {
			return Pattern{}, errSpace
		}
		if s[i] == '#' {
			return Pattern{}, errHash
		}
	}
	body, anchored := s, false
	if len(s) > 1 && s[len(s)-1] == '$' {
		body, anchored = s[:len(s)-1], true
	}
	if !strings.HasPrefix(strings.TrimLeft(body, "*"), "/") {
		body = rooted(body)
	}
	b := make([]byte, 0, len(s)+8)
	at := inPath
	for i, part := range strings.Split(body, "*") {
		if i > 0 {
			at = max(at, inEither)
			b = append(b, '*')
		}
		b, at = appendNormal(b, part, at)
	}
	if anchored {
		b = append(b, '$')
	}
	return Pattern{text: string(b)}, nil
}

// rooted replaces the first of several "*" at the start of a text with "/", or adds a "/" to a single one.
func rooted(text string) string {
	if strings.HasPrefix(text, "**") {
		text = text[1:]
	}
	return "/" + text
}

// MustParse parses a pattern that is known to be valid. It panics on an error.
func MustParse(s string) Pattern {
	p, err := Parse(s)
	if err != nil {
		panic("pathpattern: " + s + ": " + err.Error())
	}
	return p
}

// String returns the normal form, as printed in robots.txt.
func (p Pattern) String() string { return p.text }

// Len returns the length in bytes that RFC 9309 section 2.2.2 compares, special characters included; a "*" at the
// start counts as "/*".
func (p Pattern) Len() int {
	if p.text != "" && p.text[0] == '*' {
		return len(p.text) + 1
	}
	return len(p.text)
}

// maxInside bounds the "*" that Longer adds before other text. Some crawlers match by regular expressions, whose time
// grows with each of them.
const maxInside = 2

// Longer returns the pattern with n more "*", which change only its length: at the end, or next to another one if the
// pattern ends with "$". It returns p if there is no place for them.
func (p Pattern) Longer(n int) Pattern {
	at := len(p.text)
	if p.Anchored() {
		at = strings.LastIndexByte(p.text, '*')
	}
	if at < 0 || p.Anchored() && n > maxInside {
		return p
	}
	return Pattern{p.text[:at] + strings.Repeat("*", n) + p.text[at:]}
}

// IsZero reports whether p is not a pattern.
func (p Pattern) IsZero() bool { return p.text == "" }

// Anchored reports whether the pattern ends in the special "$".
func (p Pattern) Anchored() bool { return len(p.text) > 1 && p.text[len(p.text)-1] == '$' }

// Wild reports whether the pattern has a "*".
func (p Pattern) Wild() bool { return strings.IndexByte(p.text, '*') >= 0 }

// IsAll reports whether the pattern matches every path.
func (p Pattern) IsAll() bool { return p.Plain() == All }

// literal returns the text before the first special character.
func (p Pattern) literal() string {
	s := p.text
	if p.Anchored() {
		s = s[:len(s)-1]
	}
	if i := strings.IndexByte(s, '*'); i >= 0 {
		s = s[:i]
	}
	return s
}

// Match reports whether the pattern matches path, which must be in normal form. Its time is proportional to both
// lengths at worst.
func (p Pattern) Match(path string) bool {
	lit := p.literal()
	return strings.HasPrefix(path, lit) && matchRest(p.text[len(lit):], path[len(lit):])
}

// matchRest matches what follows a literal prefix: "", "$", or text that starts with "*".
func matchRest(pattern, s string) bool {
	if pattern == "" {
		return true
	}
	anchored := pattern[len(pattern)-1] == '$'
	if anchored {
		pattern = pattern[:len(pattern)-1]
		if pattern == "" {
			return s == ""
		}
	}
	pattern = pattern[1:] // the "*"
	for {
		i := strings.IndexByte(pattern, '*')
		if i < 0 {
			if anchored {
				return strings.HasSuffix(s, pattern)
			}
			return strings.Contains(s, pattern)
		}
		j := strings.Index(s, pattern[:i])
		if j < 0 {
			return false
		}
		s, pattern = s[j+i:], pattern[i+1:]
	}
}
