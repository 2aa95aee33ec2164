// SPDX-License-Identifier: Apache-2.0

// Package acap reads and writes the ACAP 1.0 records of a robots.txt. [File.Decide] makes the decision that a crawler
// makes if it reads the records and conforms to ACAP. Its decisions explain what records mean, and test records.
package acap

import (
	"iter"
	"slices"
	"strings"
	"time"

	"github.com/robotspolicy/caddy-robots-policy/pathpattern"
	"github.com/robotspolicy/caddy-robots-policy/policy"
)

// File holds the ACAP records of a robots.txt (section 2).
type File struct {
	Version            string // the version in the "##ACAP version=" comment (section 2.9.3), or ""
	IgnoreConventional bool   // readers must ignore the Allow and Disallow lines (section 2.9.1)
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
	line   int
}

// Usage is a locally defined usage: one usage with qualifiers (section 2.7.1), or several usages (2.7.2).
type Usage struct {
	Name  string
	Parts []Part

	line int
}

// Part is one usage with its qualifiers, as a part of a Field or of a locally defined Usage.
type Part struct {
	Usage      policy.Usage
	Qualifiers *policy.Qualifiers
	Local      string // the name of the Usage that the part refers to, or ""
}

// Record is a record for some crawlers, or for any crawler if the record names "*" (section 2.3).
type Record struct {
	Line                 int // the line number of the first field
	Crawlers             []string
	PermissionsReference string
	Fields               []Field
	Subs                 []SubRecord
	Requests             []Request
}

// SubRecord holds fields that apply to some usage purposes only (section 2.3.3).
type SubRecord struct {
	Purposes []string // patterns of usage purposes
	Fields   []Field
}

// All yields the fields of a record and of its sub-records. Each field comes with the purposes of its sub-record.
func (r *Record) All() iter.Seq2[*Field, []string] {
	return func(yield func(*Field, []string) bool) {
		for _, s := range append([]SubRecord{{Fields: r.Fields}}, r.Subs...) {
			for i := range s.Fields {
				if !yield(&s.Fields[i], s.Purposes) {
					return
				}
			}
		}
	}
}

// Field is a permission or a prohibition (section 2.4).
type Field struct {
	Line       int
	Allow      bool
	Parts      []Part // one usage, or all usages of a locally defined usage
	Local      string
	Patterns   []string // one pattern, or all patterns of a set
	Set        string
	Unreadable bool // a permission with an invalid qualifier or a late definition; such a field permits nothing

	folded []pathpattern.Pattern // the patterns as fold returns them
}

// Meets reports whether the fields f and g have a usage and a path in common.
func (f *Field) Meets(g *Field) bool {
	return slices.ContainsFunc(f.Parts, func(p Part) bool {
		return slices.ContainsFunc(g.Parts, func(q Part) bool { return p.Usage == q.Usage })
	}) && slices.ContainsFunc(f.folded, func(p pathpattern.Pattern) bool { return slices.ContainsFunc(g.folded, p.Overlaps) })
}

// Request is an action request (section 2.6). The specification says that this feature is not ready for use.
type Request struct {
	Line         int
	Action, Path string // Action is take-down or re-crawl; Path is one resource
}

// Problem reports a line that violates section 3. Parse ignores such a line, but a prohibition that only has
// superfluous parts remains valid.
type Problem struct {
	Line    int
	Message string
}

// fold parses a pattern of a record, and returns it in normal form, in lower case (section 2.8), and with a "/" at the
// start. Patterns in this form can be compared with each other and with the results of FoldPath. fold returns false if
// the pattern is not valid.
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

// Fold returns a pattern in lower case, because ACAP ignores letter case (section 2.8).
func Fold(p pathpattern.Pattern) pathpattern.Pattern {
	lower := strings.ToLower(p.String())
	if lower == p.String() {
		return p
	}
	// The hexadecimal digits of escapes stay in upper case, so that the result is in normal form.
	return pathpattern.MustParse(lower)
}

// FoldPath returns a path in the form that folded patterns match.
func FoldPath(path string) string {
	return pathpattern.NormalizePath(strings.ToLower(pathpattern.NormalizePath(path)))
}

// Narrower reports whether the folded pattern a has a narrower scope than b (section 2.4.5). It compares the first
// bytes that differ. The end of a pattern is wider than "$", "$" is wider than "*", and "*" is wider than any other
// byte. If both bytes are ordinary characters, neither pattern is narrower. For example, "/a/b" is narrower than
// "/a/*", and "/a/*" is narrower than "/a/".
func Narrower(a, b pathpattern.Pattern) bool {
	s, t := a.String(), b.String()
	for i := range len(s) {
		switch {
		case i == len(t):
			return true
		case s[i] != t[i]:
			return s[i] != '$' && (t[i] == '$' || s[i] != '*' && t[i] == '*')
		}
	}
	return false
}

// Query asks whether a File permits a usage.
type Query struct {
	Crawler string // the name of the crawler
	Purpose string // the purpose for which the crawler wants to use the resource, or ""
	Path    string
	Usage   policy.Usage
	Now     time.Time // the time that time limits are compared with
}

// Decision is the answer to a Query.
type Decision struct {
	Verdict    policy.Verdict
	Field      *Field             // the deciding field, or nil if there is none
	Qualifiers *policy.Qualifiers // qualifiers of the permission
	Expired    bool               // the time limit of the permission has passed
}

// candidate is a field that matches a query by one of its patterns.
type candidate struct {
	field   *Field
	part    *Part
	pattern pathpattern.Pattern
}

// Decide returns the decision of a crawler that conforms to ACAP and ignores the Allow and Disallow lines. It looks for
// matching fields about the usage, first in the records that name the crawler, and then in the records for any crawler
// (section 2.2). For a usage such as present-oldcopy, it also looks for fields about "present" in the records that name
// the crawler, before it looks in the records for any crawler (section 2.5.5). If no field matches, Decide looks for
// fields about "other" in the same order (section 2.5.6), even for "crawl".
//
// The specification does not define some cases. Decide handles them as follows. A field without a purpose applies to
// every purpose, in addition to the fields of the purpose's sub-records. A permission wins if it is narrower than every
// prohibition. If several permissions are narrower than every prohibition, the narrowest of them decides, with its
// qualifiers. If none of these permissions is the narrowest, Decide prefers one with qualifiers.
func (f *File) Decide(q Query) Decision {
	usages := []policy.Usage{q.Usage}
	if q.Usage.IsPresentation() {
		usages = append(usages, policy.Present)
	}
	if d, ok := f.ask(&q, usages); ok {
		return d
	}
	if q.Usage != policy.Other {
		d, _ := f.ask(&q, []policy.Usage{policy.Other})
		return d
	}
	return Decision{}
}

func (f *File) ask(q *Query, usages []policy.Usage) (Decision, bool) {
	for _, named := range []bool{true, false} {
		for _, u := range usages {
			if cs := f.candidates(q, u, named); len(cs) > 0 {
				return resolve(cs, q.Now), true
			}
		}
	}
	return Decision{}, false
}

func (f *File) candidates(q *Query, u policy.Usage, named bool) []candidate {
	path := FoldPath(q.Path)
	var cs []candidate
	add := func(fields []Field) {
		for i := range fields {
			for j := range fields[i].Parts {
				if fields[i].Parts[j].Usage != u {
					continue
				}
				for _, p := range fields[i].folded {
					if p.Match(path) {
						cs = append(cs, candidate{&fields[i], &fields[i].Parts[j], p})
					}
				}
			}
		}
	}
	for i := range f.Records {
		r := &f.Records[i]
		if !r.speaksTo(q.Crawler, named) {
			continue
		}
		add(r.Fields)
		for j := range r.Subs {
			if r.Subs[j].isFor(q.Purpose) {
				add(r.Subs[j].Fields)
			}
		}
	}
	return cs
}

func (r *Record) speaksTo(crawler string, named bool) bool {
	return slices.ContainsFunc(r.Crawlers, func(c string) bool {
		return named && c != "*" && strings.EqualFold(c, crawler) || !named && c == "*"
	})
}

func (s *SubRecord) isFor(purpose string) bool {
	return purpose != "" && slices.ContainsFunc(s.Purposes, func(p string) bool {
		return policy.MatchPurpose(strings.ToLower(p), strings.ToLower(purpose))
	})
}

func (c *candidate) permits() bool { return c.field.Allow && !c.field.Unreadable }

// resolve decides between the candidates cs according to section 2.4.5. The usage is allowed by a permission that is
// narrower than every prohibition, if no permission is narrower than this one. If there are several such permissions,
// resolve prefers one with qualifiers. If there is none, or if its time limit has passed, the usage is disallowed.
func resolve(cs []candidate, now time.Time) Decision {
	var permission, prohibition *candidate
	for i := range cs {
		c := &cs[i]
		switch {
		case !c.permits():
			if prohibition == nil || Narrower(c.pattern, prohibition.pattern) {
				prohibition = c
			}
		case permission != nil && permission.part.Qualifiers != nil:
		case !slices.ContainsFunc(cs, func(d candidate) bool {
			return d.permits() && Narrower(d.pattern, c.pattern) || !d.permits() && !Narrower(c.pattern, d.pattern)
		}):
			permission = c
		}
	}
	if permission == nil {
		return Decision{Verdict: policy.Disallowed, Field: prohibition.field}
	}
	q := permission.part.Qualifiers
	if q != nil && q.TimeLimit.Passed(now) {
		return Decision{Verdict: policy.Disallowed, Field: permission.field, Expired: true}
	}
	return Decision{Verdict: policy.Allowed, Field: permission.field, Qualifiers: q}
}
