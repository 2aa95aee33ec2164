// SPDX-License-Identifier: Apache-2.0

// Package pathpattern implements the path patterns of robots.txt (RFC 9309 sections 2.2.2 and 2.2.3). It converts
// paths and patterns to a normal form, compares patterns, and indexes large numbers of them. Different
// servers can read the same request target as different paths; the package also finds all these paths.
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

// Parse returns the pattern with the text s. It converts s to the normal form of AppendNormalPath, except that every
// "*" and a "$" at the end are special characters (RFC 9309 section 2.2.3). "*.gif" and "**.gif" become "/*.gif",
// which matches the same paths. "*/x" is not changed, because no single pattern that starts with "/" matches the same
// paths. Parse keeps all other redundant "*", because readers of robots.txt count them in the pattern's length. The
// query of a pattern begins after a "?", or after a "*" and a "=". In the query, %2F and %3F mean the same as "/" and
// "?".
//
// The texts of errors are for the author of a policy.
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

// rooted returns a text that starts with "/" instead of "*". If the text starts with several "*", the first one is
// replaced with the "/". If the text starts with a single "*", the "/" is added before the "*".
func rooted(text string) string {
	if strings.HasPrefix(text, "**") {
		text = text[1:]
	}
	return "/" + text
}

// MustParse parses a valid pattern. It panics on an error.
func MustParse(s string) Pattern {
	p, err := Parse(s)
	if err != nil {
		panic("pathpattern: " + s + ": " + err.Error())
	}
	return p
}

// String returns the pattern in normal form, which is the spelling in robots.txt.
func (p Pattern) String() string { return p.text }

// Len returns the length in bytes for the comparison of patterns in RFC 9309 section 2.2.2. The length includes special
// characters. A "*" at the start has the length of "/*".
func (p Pattern) Len() int {
	if p.text != "" && p.text[0] == '*' {
		return len(p.text) + 1
	}
	return len(p.text)
}

// maxInside limits how many "*" Longer adds before other text. Some crawlers match with regular expressions, which take
// longer with every "*".
const maxInside = 2

// Longer returns the pattern with n more "*", which make it longer without changing what it matches. It adds them at
// the end or, if the pattern ends with "$", next to another "*". It returns p if it cannot add them.
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

// Match reports whether the pattern matches path, which must be in normal form. In the worst case, the time is
// proportional to the product of the lengths of the pattern and the path.
func (p Pattern) Match(path string) bool {
	lit := p.literal()
	return strings.HasPrefix(path, lit) && matchRest(p.text[len(lit):], path[len(lit):])
}

// matchRest reports whether pattern matches s. pattern is the text of a Pattern after its literal prefix. It is "",
// "$", or a text that starts with "*".
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
