// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"slices"
	"strings"
	"time"

	"github.com/robotspolicy/caddy-robots-policy/pathpattern"
)

const none = -1

// entry holds a block's statements about one usage and one pattern. Statements are indexes into Policy.statements.
type entry struct {
	pattern pathpattern.Pattern
	length  int32 // the length of the pattern
	prefix  int32 // the length of the pattern's prefix, see pathpattern.Pattern.Prefix
	plain   bool  // the pattern has neither "*" nor "$"

	allow   int32   // the first permission without a last date, or none
	deny    int32   // the first prohibition, or none
	mode    Mode    // the strictest mode of the prohibitions
	limited []int32 // the permissions with qualifiers

	// samples holds paths for testing other patterns: a pattern that matches all samples covers the entry's pattern.
	// Only permissions have samples, and only if the policy has a restriction whose pattern has "*" or "$".
	samples []string
	pairs   uint64 // the byte pairs that all samples contain, see pathpattern.Pairs
	needs   uint64 // the byte pairs of every path that the pattern matches
	wider   *entry // the restricting plain entry whose pattern is the longest prefix of this entry's pattern
}

// restricts reports whether the entry has a prohibition or a permission with qualifiers.
func (e *entry) restricts() bool { return e.deny != none || e.limited != nil }

// covers reports whether the entry's pattern covers the pattern of an entry with samples.
func (e *entry) covers(a *entry) bool {
	for _, sample := range a.samples {
		if !e.pattern.Match(sample) {
			return false
		}
	}
	return true
}

type statementIndex struct {
	*pathpattern.Index[*entry]
	anyPath entry // all statements that restrict at least one path, see Query.AnyPath
}

func (p *Policy) index(ids []int32) *statementIndex {
	byPattern := make(map[pathpattern.Pattern]*entry, len(ids))
	var all []pathpattern.Entry[*entry]
	x := &statementIndex{anyPath: entry{plain: true, allow: none, deny: none}}
	for _, id := range ids {
		pattern := p.statements[id].Pattern
		e := byPattern[pattern]
		if e == nil {
			e = &entry{
				pattern: pattern, length: int32(pattern.Len()), prefix: int32(len(pattern.Prefix())),
				plain: pattern.IsPlain(), allow: none, deny: none,
			}
			byPattern[pattern] = e
			all = append(all, pathpattern.Entry[*entry]{Pattern: pattern, Value: e})
		}
		p.add(e, id)
		if s := p.statements[id]; !s.Allow || s.Qualifiers != nil {
			p.add(&x.anyPath, id)
		}
	}
	for _, x := range all {
		e := x.Value
		if !e.plain {
			e.needs = x.Pattern.Needs()
		}
		if p.wild && (e.allow != none || e.limited != nil) {
			e.pairs = ^uint64(0)
			for _, rooted := range x.Pattern.Rooted() {
				e.samples = append(e.samples, rooted.Sample())
				e.pairs &= pathpattern.Pairs(rooted.Sample())
			}
		}
	}
	slices.SortFunc(all, func(a, b pathpattern.Entry[*entry]) int {
		return strings.Compare(a.Pattern.String(), b.Pattern.String())
	})
	chain(all)
	x.Index = pathpattern.NewIndex(all, nil) // no merge function is needed, because the patterns are distinct
	return x
}

func (p *Policy) add(e *entry, id int32) {
	s := p.statements[id]
	if !s.Allow {
		e.deny = first(e.deny, id)
		e.mode = max(e.mode, p.modeOf(p.ruleOf[id]))
		return
	}
	if s.Qualifiers != nil {
		e.limited = append(e.limited, id)
	}
	if s.Qualifiers == nil || s.Qualifiers.TimeLimit.Kind != UntilDate {
		e.allow = first(e.allow, id)
	}
}

// chain sets the field "wider" of entries. It ignores entries that do not restrict the usage, and entries with "*" or
// "$". sorted must be sorted by pattern.
func chain(sorted []pathpattern.Entry[*entry]) {
	var open []pathpattern.Entry[*entry]
	for _, x := range sorted {
		if !x.Value.plain || !x.Value.restricts() {
			continue
		}
		for len(open) > 0 && !strings.HasPrefix(x.Pattern.String(), open[len(open)-1].Pattern.String()) {
			open = open[:len(open)-1]
		}
		if len(open) > 0 {
			x.Value.wider = open[len(open)-1].Value
		}
		open = append(open, x)
	}
}

// first returns the statement of the two that comes first in the file. If one of the two is none, it returns the other.
func first(a, b int32) int32 {
	if a == none || b != none && b < a {
		return b
	}
	return a
}

// permission returns the entry's first permission that has not ended, or none. until is the Unix time when the next
// permission ends, or 0 if no permission has a last date.
func (p *Policy) permission(e *entry, now time.Time) (id int32, until int64) {
	id = e.allow
	for _, l := range e.limited {
		limit := &p.statements[l].Qualifiers.TimeLimit
		if limit.Kind != UntilDate || limit.Passed(now) {
			continue
		}
		id = first(id, l)
		until = earlier(until, limit.Last.Unix()+1)
	}
	return id, until
}

// earlier returns the earlier of two Unix times. The time 0 means never.
func earlier(a, b int64) int64 {
	if a == 0 || b != 0 && b < a {
		return b
	}
	return a
}
