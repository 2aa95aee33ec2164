// SPDX-License-Identifier: Apache-2.0

package acap

import (
	"slices"
	"strings"
	"time"

	"github.com/robotspolicy/caddy-robots-policy/pathpattern"
	"github.com/robotspolicy/caddy-robots-policy/policy"
)

// Query is a question to a File.
type Query struct {
	Crawler string // its name
	Purpose string // what it is about to use the resource for, or ""
	Path    string
	Usage   policy.Usage
	Now     time.Time // for time limits
}

// Decision is the answer to a Query.
type Decision struct {
	Verdict    policy.Verdict
	Field      *Field             // that decided, nil for none
	Qualifiers *policy.Qualifiers // of what is allowed
	Expired    bool               // a permission whose time limit has passed
	// Undetermined is a prohibition because no permission is narrower than all
	// prohibitions (section 2.4.5).
	Undetermined bool
}

// candidate is a field that matches a query by one of its patterns.
type candidate struct {
	field   *Field
	part    *Part
	pattern pathpattern.Pattern
}

// Decide answers as a conforming crawler that ignores conventional records. Fields of records that
// name the crawler override those for any (section 2.2), per usage, purpose and resource. Without a
// field about a present-* usage, those of present apply (section 2.5.5), in the same records; without
// any, those of other (section 2.5.6), also for crawl.
//
// Where the document leaves questions open: a field without a purpose holds for every purpose, beside
// those of the purpose's sub-records; a permission wins when it is narrower than every prohibition;
// the narrowest of several permissions has the qualifiers, and where none is, one that has some.
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

// speaksTo reports whether the record names the crawler, or any.
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

// resolve applies section 2.4.5.
func resolve(cs []candidate, now time.Time) Decision {
	var against *candidate
	for i := range cs {
		if cs[i].permits() {
			continue
		}
		if against == nil || Compare(cs[i].pattern, against.pattern) == First {
			against = &cs[i]
		}
	}
	var permissions []*candidate
	for i := range cs {
		if c := &cs[i]; c.permits() && c.beats(cs) {
			permissions = append(permissions, c)
		}
	}
	best := narrowest(permissions)
	if best == nil {
		d := Decision{Verdict: policy.Disallowed, Field: against.field}
		for i := range cs {
			d.Undetermined = d.Undetermined || cs[i].permits()
		}
		return d
	}
	q := best.part.Qualifiers
	if q != nil && q.TimeLimit.Passed(now) {
		return Decision{Verdict: policy.Disallowed, Field: best.field, Expired: true}
	}
	return Decision{Verdict: policy.Allowed, Field: best.field, Qualifiers: q}
}

// narrowest returns a permission than which none is narrower, with qualifiers if there is a choice.
func narrowest(permissions []*candidate) (best *candidate) {
	for _, c := range permissions {
		narrower := slices.ContainsFunc(permissions, func(d *candidate) bool { return Compare(d.pattern, c.pattern) == First })
		if !narrower && (best == nil || best.part.Qualifiers == nil) {
			best = c
		}
	}
	return best
}

func (c *candidate) permits() bool { return c.field.Allow && !c.field.Unreadable }

// beats reports whether a permission is narrower than every prohibition.
func (c *candidate) beats(cs []candidate) bool {
	return !slices.ContainsFunc(cs, func(d candidate) bool { return !d.permits() && Compare(c.pattern, d.pattern) != First })
}
