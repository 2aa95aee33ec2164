// SPDX-License-Identifier: Apache-2.0

// Package acap reads the ACAP 1.0 records of a robots.txt and answers as a
// crawler that conforms to them would. It is for tests of what is rendered, and
// for importing files.
package acap

import (
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

// Usage is a locally defined usage: one with qualifiers (section 2.7.1), or
// several (section 2.7.2).
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

// Request is an action request (section 2.6), which the document calls not
// ready.
type Request struct {
	Line         int
	Action, Path string // take-down or re-crawl, and one resource
}

// Problem is a line that is not as section 3 has it. The line is left out, but
// for a prohibition that only has something too much.
type Problem struct {
	Line    int
	Message string
}
