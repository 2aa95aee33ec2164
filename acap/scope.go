// SPDX-License-Identifier: Apache-2.0

package acap

import (
	"strings"

	"github.com/robotspolicy/caddy-robots-policy/pathpattern"
)

// fold is a resource path pattern in the form in which it is compared: in normal
// form and without case (section 2.8). A path that does not start with "/" is
// relative to the document root, and gets one.
func fold(pattern string) (pathpattern.Pattern, bool) {
	if pattern != "" && pattern[0] != '/' && pattern[0] != '*' {
		pattern = "/" + pattern
	}
	p, err := pathpattern.Parse(pattern)
	if err != nil {
		return p, false
	}
	return Fold(p), true
}

// Fold is a pattern without case, as ACAP compares patterns (section 2.8).
func Fold(p pathpattern.Pattern) pathpattern.Pattern {
	lower := strings.ToLower(p.String())
	if lower == p.String() {
		return p
	}
	// Hexadecimal digits are upper case in the normal form, so that it stays one.
	return pathpattern.MustParse(lower)
}

// FoldPath is a path as folded patterns are matched against.
func FoldPath(path string) string {
	return pathpattern.NormalizePath(strings.ToLower(pathpattern.NormalizePath(path)))
}

// Scope says which of two patterns has the narrower scope.
type Scope int8

// The answers of Compare. Undetermined is also the answer for equal patterns.
const (
	Undetermined Scope = iota
	First
	Second
)

// Compare finds the narrower of two folded patterns by section 2.4.5: byte by
// byte to the first difference. There a pattern that goes on is narrower than
// one that ends, any character is narrower than "$", and any but "$" narrower
// than "*". Other differences do not tell.
func Compare(a, b pathpattern.Pattern) Scope {
	s, t := a.String(), b.String()
	for i := 0; ; i++ {
		switch {
		case i == len(s) && i == len(t):
			return Undetermined
		case i == len(s):
			return Second
		case i == len(t):
			return First
		case s[i] == t[i]:
			continue
		case s[i] == '$':
			return Second
		case t[i] == '$':
			return First
		case s[i] == '*':
			return Second
		case t[i] == '*':
			return First
		}
		return Undetermined
	}
}
