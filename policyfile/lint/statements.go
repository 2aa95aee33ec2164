// SPDX-License-Identifier: Apache-2.0

package lint

import (
	"slices"
	"strings"

	"github.com/robotspolicy/caddy-robots-policy/pathpattern"
	"github.com/robotspolicy/caddy-robots-policy/policy"
)

// sample is a path that a pattern matches and that other patterns match only if
// they match in general: what is free in the pattern is filled with control
// bytes, which no path pattern names.
func sample(p pathpattern.Pattern) string {
	text := p.String()
	if p.Anchored() {
		text = text[:len(text)-1]
	} else {
		text += "%01"
	}
	if text[0] == '*' {
		text = "/" + text
	}
	return strings.ReplaceAll(text, "*", "%02")
}

// anyPage is a page of which no rule says anything by its path.
var anyPage = sample(pathpattern.All)

// placed is a statement with its rule's place in linter.rules.
type placed struct {
	rule int
	s    *policy.Statement
}

// indexKey selects the statements of an index.
type indexKey struct {
	usage policy.Usage
	allow bool
}

// statementIndex finds statements by their patterns.
type statementIndex = pathpattern.Index[[]placed]

// index returns the statements of a usage and verdict, or nil if there are none.
func (l *linter) index(usage policy.Usage, allow bool) *statementIndex {
	k := indexKey{usage, allow}
	x, ok := l.indexes[k]
	if ok {
		return x
	}
	byPattern := map[string]int{}
	var entries []pathpattern.Entry[[]placed]
	l.each(func(rule int, s *policy.Statement) {
		if s.Usage != usage || s.Allow != allow {
			return
		}
		text := s.Pattern.String()
		i, ok := byPattern[text]
		if !ok {
			i = len(entries)
			byPattern[text] = i
			entries = append(entries, pathpattern.Entry[[]placed]{Pattern: s.Pattern})
		}
		entries[i].Value = append(entries[i].Value, placed{rule, s})
	})
	if len(entries) > 0 {
		x = pathpattern.NewIndex(entries, func(a, b []placed) []placed { return slices.Concat(a, b) })
	}
	l.indexes[k] = x
	return x
}

// overlapping lists the statements of a usage and verdict whose patterns match a
// path that p matches too. It fails when the budget is spent.
func (l *linter) overlapping(p pathpattern.Pattern, usage policy.Usage, allow bool) ([]placed, bool) {
	return l.find(l.index(usage, allow), func(x *statementIndex, yield func([]placed)) { x.Overlapping(p, yield) })
}

// covering lists the statements of a usage and verdict whose patterns match every
// path that p matches. It fails when the budget is spent.
func (l *linter) covering(p pathpattern.Pattern, usage policy.Usage, allow bool) ([]placed, bool) {
	return l.find(l.index(usage, allow), func(x *statementIndex, yield func([]placed)) { x.Covering(p, yield) })
}

func (l *linter) find(x *statementIndex, look func(x *statementIndex, yield func([]placed))) (found []placed, ok bool) {
	if x == nil {
		return nil, true
	}
	if !l.spend(l.cost) {
		return nil, false
	}
	look(x, func(some []placed) {
		if l.budget -= len(some); l.budget > 0 {
			found = append(found, some...)
		}
	})
	return found, l.budget > 0
}

// pos is where a statement's qualifiers are written: in the rule, or where the
// usage is defined.
func (l *linter) pos(s *policy.Statement) policy.Pos {
	if s.Local != "" {
		if at := l.UsagePos(s.Local); at.Line > 0 {
			return at
		}
	}
	return s.Pos
}

func isEmpty(r *policy.Rule) bool {
	return len(r.Statements)+len(r.AppDirectives)+len(r.EngineRules)+len(r.Requests) == 0 &&
		r.CrawlDelay == 0 && !r.NoCrawlDelay && r.Limit.IsZero() && !r.NoLimit && r.PermissionsReference == ""
}

func disallowsCrawl(r *policy.Rule) bool {
	return slices.ContainsFunc(r.Statements, func(s policy.Statement) bool { return s.Usage == policy.Crawl && !s.Allow })
}

func sameFilters(a, b *policy.Rule) bool {
	return a.Identity == b.Identity && slices.Equal(a.UsagePurposes, b.UsagePurposes)
}
