// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"slices"
	"time"
	"unsafe"

	"github.com/robotspolicy/caddy-robots-policy/pathpattern"
)

// robotsTxt is the path of robots.txt. Crawlers may always fetch it (RFC 9309 section 2.2.2).
const robotsTxt = "/robots.txt"

// Decide answers a query. It returns Disallowed if a prohibition matches and no matching permission overrides the
// prohibition (see Policy.Overrides). Otherwise it returns Allowed if a permission matches, or else Unstated. Decide
// treats a permission whose date has passed as a prohibition. A permission overrides this prohibition if it would set
// aside the qualifiers of the expired permission (see Policy.SetsAside). If no statement matches, the statements about
// Other decide, except for Crawl.
//
// The time of a decision is proportional to the length of the path and to the number of matching patterns with "*" or
// "$". If a decision would take more work than maxWork, Decide returns the decision for a query with AnyPath. Decide
// allocates memory only for combined qualifiers and for paths that are longer than 2 KiB and not in normal form.
func (p *Policy) Decide(q Query) Decision {
	if !q.AnyPath && !pathpattern.IsNormal(q.Path) {
		return p.decideOdd(q)
	}
	return p.decide(&q, q.Path)
}

// DecideAt decides about the paths that match a pattern but no narrower pattern of the policy. The pattern must start
// with "/". The path of the query is ignored.
func (p *Policy) DecideAt(q Query, at pathpattern.Pattern) Decision {
	q.AnyPath = false
	return p.decide(&q, at.Sample())
}

// decideOdd decides about a path that is not in normal form. It normalizes the path in a buffer on the stack.
func (p *Policy) decideOdd(q Query) Decision {
	var buf [2048]byte
	path := pathpattern.AppendNormalPath(buf[:0], q.Path)
	return p.decide(&q, unsafe.String(&path[0], len(path))) // path is never empty, and decide does not keep it
}

// decide returns the decision about q for a path in normal form, and ignores the path of q. The path is a separate
// argument, because it may be in a buffer on the stack, but q may escape to the heap.
func (p *Policy) decide(q *Query, path string) Decision {
	if q.Usage == Crawl && path == robotsTxt && !q.AnyPath {
		return Decision{Verdict: Allowed}
	}
	s := search{p: p, now: q.Now, work: maxWork, anyPath: q.AnyPath}
	s.askAll(q, path)
	if s.work >= 0 || q.AnyPath {
		if d := s.decision(); s.work >= 0 || q.AnyPath {
			return d
		}
	}
	whatever := *q
	whatever.AnyPath = true
	return p.decide(&whatever, "")
}

// maxWork limits the work for one decision. A unit of work takes about one nanosecond. Typical decisions need a
// hundredth of this limit.
const maxWork = 1 << 20

// search is one decision in progress. It collects the matching statements by scope.
type search struct {
	p     *Policy
	now   time.Time
	work  pathpattern.Work
	until int64         // Decision.Until as a Unix time; 0 means never
	found list[found]   // one element for each block with a match
	wilds list[matched] // matching entries that restrict the usage and have "*" or "$"
	inner list[matched] // permitting entries whose patterns may lie within a pattern of wilds
	any   bool          // at least one matching entry has qualifiers

	anyPath bool // see Query.AnyPath
}

// list is a slice whose first elements need no heap allocation.
type list[T any] struct {
	n     int
	first [4]T
	rest  []T
}

func (l *list[T]) add(x T) {
	if l.n < len(l.first) {
		l.first[l.n] = x
	} else {
		l.rest = append(l.rest, x)
	}
	l.n++
}

func (l *list[T]) drop() {
	l.n--
	l.rest = l.rest[:max(0, l.n-len(l.first))]
}

func (l *list[T]) at(i int) *T {
	if i < len(l.first) {
		return &l.first[i]
	}
	return &l.rest[i-len(l.first)]
}

// matched is a matching entry. in is the index of its block in search.found.
type matched struct {
	*entry
	in int
}

// found holds the matches in one block. Several blocks may have the same scope.
type found struct {
	scope
	length     int32  // the length of the longest pattern of a permission
	prefix     int32  // the length of the longest prefix of a permission's pattern
	permission int32  // the first permission with the longest pattern, or none
	plain      *entry // the longest entry that restricts the usage and has neither "*" nor "$"
	hits       int
}

// askAll collects the matching statements about the query's usage or, if there are none, about Other.
func (s *search) askAll(q *Query, path string) {
	hosts := s.p.hosts.class(q.Host).hosts
	s.ask(q, path, hosts, q.Usage)
	if (s.found.n == 0 || s.anyPath) && q.Usage != Crawl && q.Usage != Other {
		s.ask(q, path, hosts, Other)
	}
}

func (s *search) ask(q *Query, path string, hosts []int32, u Usage) {
	fallback, hasFallback := u.fallback()
	askBoth := func(r *reach) {
		s.askAtom(q, path, r, hosts, u, true)
		if hasFallback {
			s.askAtom(q, path, r, hosts, fallback, false)
		}
	}
	atoms := s.p.reachesOf(q.Crawler)
	for i := range atoms {
		askBoth(&atoms[i])
	}
	for _, name := range q.Purposes {
		if a := s.p.purposes[name]; a != nil {
			askBoth(&reach{TierGroup, a})
		}
	}
}

// askAtom collects the matching statements of the rules for one audience.
func (s *search) askAtom(q *Query, path string, r *reach, hosts []int32, u Usage, direct bool) {
	for _, h := range hosts {
		c := r.cell(h)
		if c == nil {
			continue
		}
		for _, b := range c.blocks {
			x := b.usages[u]
			if x == nil || !b.condition.holds(q) {
				continue
			}
			in := s.found.n
			s.found.add(found{length: none, prefix: none, permission: none})
			f := s.found.at(in)
			switch {
			case !s.anyPath:
				x.MatchesWithin(path, &s.work, func(e *entry) { s.take(f, e, in) })
			case x.anyPath.restricts():
				s.take(f, &x.anyPath, in)
			}
			if f.hits == 0 {
				s.found.drop()
				continue
			}
			f.scope = scope{r.tier, &r.audience, s.p.hosts.rank(h), direct, b.condition.fallback}
		}
	}
}

func (s *search) take(f *found, e *entry, in int) {
	f.hits++
	id := e.allow
	if e.limited != nil {
		var until int64
		s.any = true
		id, until = s.p.permission(e, s.now)
		s.until = earlier(s.until, until)
	}
	if id != none {
		f.prefix = max(f.prefix, e.prefix)
		if e.length > f.length || e.length == f.length && id < f.permission {
			f.length, f.permission = e.length, id
		}
		if e.samples != nil {
			s.inner.add(matched{e, in})
		}
	}
	switch {
	case !e.restricts():
	case !e.plain:
		s.wilds.add(matched{e, in})
	case f.plain == nil || e.length > f.plain.length:
		f.plain = e
	}
}

// bar describes the matching permissions that can override a restriction. The restriction is either a prohibition or
// the qualifiers of another permission. It applies only if its statement is narrower than these permissions.
type bar struct {
	lifted bool  // a permission overrides the restriction, whatever the patterns
	length int32 // the length of the longest permission pattern in the restriction's own scope
	prefix int32 // the length of the longest prefix of a permission pattern in another scope
}

func (s *search) bar(d *scope, prohibition bool) bar {
	b := bar{length: none, prefix: none}
	for i := range s.found.n {
		a := s.found.at(i)
		if a.permission == none || s.anyPath {
			continue
		}
		switch r, _ := a.against(d, prohibition); r {
		case always:
			b.lifted = true
		case byLength:
			b.length = max(b.length, a.length)
		case byPattern:
			b.prefix = max(b.prefix, a.prefix)
		case never:
		}
	}
	return b
}

// contained reports whether a matching permission overrides the wildcard restriction w because the permission's pattern
// lies within the pattern of w. Between some scopes, this is not a reason to override (see relation).
func (s *search) contained(w *matched, prohibition bool) bool {
	s.work -= pathpattern.Work(s.inner.n)
	for i := 0; i < s.inner.n && s.work >= 0; i++ {
		a := s.inner.at(i)
		if w.needs&^a.pairs != 0 {
			continue
		}
		if r, _ := s.found.at(a.in).against(&s.found.at(w.in).scope, prohibition); r != byPattern {
			continue
		}
		s.work -= pathpattern.Work(a.length + w.length)
		if w.covers(a.entry) {
			return true
		}
	}
	return false
}

type verdict struct {
	at     scope // the scope of the statement id
	length int32
	id     int32 // the narrowest statement, or none
	mode   Mode
	limits *Limits
}

func (s *search) decision() Decision {
	v := verdict{id: none}
	for i := range s.found.n {
		s.standing(&v, i)
	}
	var d Decision
	if s.until != 0 {
		d.Until = time.Unix(s.until, 0).UTC()
	}
	if v.id != none {
		d.Verdict, d.mode = Disallowed, v.mode
		return s.p.name(d, &v)
	}
	for i := range s.found.n {
		if f := s.found.at(i); f.permission != none && v.closer(&f.scope, f.length, f.permission) {
			v.at, v.length, v.id = f.scope, f.length, f.permission
		}
	}
	if v.id == none {
		return Decision{}
	}
	d.Verdict, d.limits = Allowed, v.limits
	return s.p.name(d, &v)
}

func (p *Policy) name(d Decision, v *verdict) Decision {
	d.Statement, d.Rule, d.scope = p.statements[v.id], p.ruleOf[v.id], v.at
	d.Expired = d.Verdict == Disallowed && d.Statement.Allow
	return d
}

func (s *search) standing(v *verdict, in int) {
	f := s.found.at(in)
	var wild bool
	s.work -= pathpattern.Work(s.wilds.n + s.found.n)
	for i := range s.wilds.n {
		wild = wild || s.wilds.at(i).in == in
	}
	if f.plain == nil && !wild {
		return
	}
	closed := s.bar(&f.scope, true)
	limited := bar{}
	if s.any {
		limited = s.bar(&f.scope, false)
	}
	for e := f.plain; e != nil; e = e.wider {
		denies := !closed.lifted && e.length > closed.length && e.length > closed.prefix
		limits := s.any && e.length >= limited.length && e.length > limited.prefix
		if !denies && !limits {
			break // e.wider is shorter, so it cannot apply either
		}
		s.stand(v, &f.scope, e, denies, limits)
	}
	for i := range s.wilds.n {
		w := s.wilds.at(i)
		if w.in != in {
			continue
		}
		denies := w.deny != none && !closed.lifted && w.length > closed.length && !s.contained(w, true)
		limits := w.limited != nil && w.length >= limited.length && !s.contained(w, false)
		s.stand(v, &f.scope, w.entry, denies, limits)
	}
}

func (s *search) stand(v *verdict, at *scope, e *entry, denies, limits bool) {
	if denies && e.deny != none {
		v.mode = max(v.mode, e.mode)
		v.take(at, e.length, e.deny)
	}
	if !limits {
		return
	}
	for _, id := range e.limited {
		q := s.p.statements[id].Qualifiers
		switch {
		case q.TimeLimit.Passed(s.now):
			v.mode = max(v.mode, s.p.modeOf(s.p.ruleOf[id]))
			v.take(at, e.length, id)
		case v.limits == nil:
			v.limits = &s.p.limits[id]
		case !slices.Contains(*v.limits, q):
			all := append(slices.Clip(*v.limits), q)
			v.limits = &all
		}
	}
}

func (v *verdict) take(at *scope, length, id int32) {
	if v.closer(at, length, id) {
		v.at, v.length, v.id = *at, length, id
	}
}

// closer reports whether a statement is narrower than the statement of v, or v has no statement.
func (v *verdict) closer(at *scope, length, id int32) bool {
	if v.id == none {
		return true
	}
	switch c := at.compare(&v.at); {
	case c != 0:
		return c < 0
	case length != v.length:
		return length > v.length
	}
	return id < v.id
}

func (c *condition) holds(q *Query) bool {
	if !c.identity.MetBy(q.Identity) {
		return false
	}
	for _, pattern := range c.purposes {
		for _, purpose := range q.Purposes {
			if MatchPurpose(pattern, purpose) {
				return true
			}
		}
	}
	return len(c.purposes) == 0
}
