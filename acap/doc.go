// SPDX-License-Identifier: Apache-2.0

// Package acap reads the ACAP 1.0 records of a robots.txt and answers as a
// crawler that conforms to them would. It is for tests of what is rendered, and
// for importing files.
package acap

import (
	"strings"

	"github.com/robotspolicy/caddy-robots-policy/pathpattern"
	"github.com/robotspolicy/caddy-robots-policy/policy"
)

// File is what a robots.txt says in ACAP (section 2).
type File struct {
	Version            string // of the "##ACAP version=" comment (section 2.9.3), or ""
	IgnoreConventional bool   // section 2.9.1
	Sets               []Set
	Usages             []Usage
	Records            []Record
	Problems           []Problem
}

// Set is a named set of resources (section 2.7.3).
type Set struct {
	Name     string
	Patterns []string

	folded []pathpattern.Pattern
}

// Usage is a locally defined usage: one with qualifiers (section 2.7.1), or several (2.7.2).
type Usage struct {
	Name  string
	Parts []Part
}

// Part is one usage of a Usage.
type Part struct {
	Usage      policy.Usage
	Qualifiers *policy.Qualifiers
	Local      string // the Usage that the part was named by, if any
}

// Record is addressed to some crawlers, or with "*" to any (section 2.3).
type Record struct {
	Line                 int // of its first field
	Crawlers             []string
	PermissionsReference string
	Fields               []Field
	Subs                 []SubRecord
	Requests             []Request
}

// SubRecord is what holds for some usage purposes only (section 2.3.3).
type SubRecord struct {
	Purposes []string // patterns
	Fields   []Field
}

// Field is a permission or a prohibition (section 2.4).
type Field struct {
	Line       int
	Allow      bool
	Parts      []Part // one, or those of a locally defined usage
	Local      string
	Patterns   []string // one, or those of a set
	Set        string
	Unreadable bool // a permission with a qualifier that is none: it is no permission

	folded []pathpattern.Pattern // the patterns as they are compared
}

// Request is an action request (section 2.6), which the document calls not ready.
type Request struct {
	Line         int
	Action, Path string // take-down or re-crawl, and one resource
}

// Problem is a line that violates section 3. It is left out, unless it is a prohibition with something
// superfluous.
type Problem struct {
	Line    int
	Message string
}

// fold is a pattern as it is compared: in normal form, without case (section 2.8), and relative to the
// document root.
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

// Fold is a pattern without case (section 2.8).
func Fold(p pathpattern.Pattern) pathpattern.Pattern {
	lower := strings.ToLower(p.String())
	if lower == p.String() {
		return p
	}
	// Hexadecimal digits are upper case in the normal form, so that it stays one.
	return pathpattern.MustParse(lower)
}

// FoldPath is the path that folded patterns are matched with.
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

// Compare finds the narrower of two folded patterns (section 2.4.5), at the first byte that differs:
// a pattern that goes on is narrower than one that ends, any character narrower than "$", and any but
// "$" narrower than "*". Otherwise it is undetermined.
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
