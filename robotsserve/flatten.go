// SPDX-License-Identifier: Apache-2.0

package robotsserve

import (
	"cmp"
	"slices"

	"github.com/robotspolicy/caddy-robots-policy/pathpattern"
	"github.com/robotspolicy/caddy-robots-policy/policy"
)

// Limits on the work that one group costs. A meeting is an Allow and a Disallow that
// match a common path.
const (
	maxMeetings = 4 << 20
	maxDerived  = 100 // lines that are printed only because two others cross
	maxCrossing = 16  // patterns that the crossing of two may take
)

// stated is a statement about crawling as it reaches the crawlers of a group: one
// of the policy's or, where applied is nil, one of a file that is merged below it.
type stated struct {
	pattern pathpattern.Pattern
	allow   bool
	applied *policy.Applied
	size    int    // of a merged file's pattern, as it is written there
	scope   string // the purpose that a client has to name, or ""
	voice   int    // of a token's group: see tokenLines
}

// line is an Allow or a Disallow of a group.
type line struct {
	pattern pathpattern.Pattern // starts with "/", has no "*" at its end
	second  string              // of a Disallow: its other spelling, or ""
	of      *stated
	order   int // in which lines are printed as far as nothing else asks for another one
	gone    bool
	guard   bool // it is for Google's parser: see guardIndexPages
}

func (l *line) len() int { return l.pattern.Len() }

// low and high are the lengths of the shorter and the longer spelling.
func (l *line) low() int {
	if l.second != "" {
		return min(l.len(), len(l.second))
	}
	return l.len()
}

func (l *line) high() int { return max(l.len(), len(l.second)) }

// sharesScope reports whether l may stand for m: everyone who obeys m obeys l too, and
// the policy's lines do not rest on those of a merged file.
func (l *line) sharesScope(m *line) bool {
	return (l.of.scope == "" || l.of.scope == m.of.scope) && (l.of.applied != nil || m.of.applied == nil)
}

// flattening turns statements into the lines of one group of RFC 9309, in which the
// longest match decides and a tie allows (section 2.2.2).
//
// A path is disallowed if some prohibition that matches it is not overridden by any
// permission that matches it. To say the same, of each pair of an Allow and a
// Disallow that match a common path the one that should win must be longer, or some
// other line of its kind that matches what both match:
//
//	everyone:  disallow /*?            User-agent: Googlebot
//	Googlebot: allow /shop/     →      Disallow: /*?
//	everyone:  disallow /shop/         Disallow: /shop/*?
//	                                   Allow: /shop/        (dropped by dropNeedless: nothing is left that it wins over)
//
// Where no such line exists, the Allow is left out: the file is stricter than the
// policy there, which is reported as a Loss, and never laxer.
type flattening struct {
	lines     []line
	overrides func(permission, prohibition *stated) bool
	losses    []Loss
	pairs     int
	derived   int
	byStated  map[*stated][]int32
	built     [2]struct { // see index
		index *pathpattern.Index[[]int32]
		lines int
	}
}

// flatten returns the lines of a group, in the order in which they are printed. It
// fails when too many pairs of patterns meet.
func flatten(all []stated, overrides func(permission, prohibition *stated) bool) (lines []line, losses []Loss, ok bool) {
	f := flattening{overrides: overrides, byStated: map[*stated][]int32{}}
	for i := range all {
		for _, p := range all[i].pattern.Rooted() {
			f.add(p.Plain(), &all[i])
		}
	}
	if !f.mixed() {
		f.dropNeedless()
		f.loseWildcards()
		return f.sorted(), f.losses, true
	}
	f.dropDecided()
	if !f.settle(0) || !f.guardIndexPages() {
		return nil, nil, false
	}
	f.dropNeedless()
	f.loseWildcards()
	return f.sorted(), f.losses, true
}

func (f *flattening) add(p pathpattern.Pattern, s *stated) {
	order := len(f.lines) // derived lines stand by that of their statement
	if first := f.byStated[s]; len(first) > 0 {
		order = f.lines[first[0]].order
	}
	f.byStated[s] = append(f.byStated[s], int32(len(f.lines)))
	l := line{pattern: p, of: s, order: order}
	if !s.allow {
		l.second, _ = respell(p)
	}
	f.lines = append(f.lines, l)
}

// mixed reports whether anything is allowed.
func (f *flattening) mixed() bool {
	return slices.ContainsFunc(f.lines, func(l line) bool { return l.of.allow })
}

// index is over the lines of one kind that are not gone. It is built again only when
// there are more lines, so that some of those that it finds may be gone since.
func (f *flattening) index(allow bool) *pathpattern.Index[[]int32] {
	built := &f.built[kind(allow)]
	if built.index == nil || built.lines != len(f.lines) {
		built.index, built.lines = f.newIndex(allow), len(f.lines)
	}
	return built.index
}

func (f *flattening) newIndex(allow bool) *pathpattern.Index[[]int32] {
	var entries []pathpattern.Entry[[]int32]
	for i := range f.lines {
		if l := &f.lines[i]; !l.gone && l.of.allow == allow {
			entries = append(entries, pathpattern.Entry[[]int32]{Pattern: l.pattern, Value: []int32{int32(i)}})
		}
	}
	return pathpattern.NewIndex(entries, func(a, b []int32) []int32 { return slices.Concat(a, b) })
}

// dropDecided drops each Disallow that an Allow overriding it covers; then each
// Allow that a Disallow it cannot override covers, and each that overrides nothing.
func (f *flattening) dropDecided() {
	allows := f.index(true)
	for i := range f.lines {
		if d := &f.lines[i]; !d.of.allow {
			allows.Covering(d.pattern, func(js []int32) {
				for _, j := range js {
					a := &f.lines[j]
					d.gone = d.gone || a.sharesScope(d) && f.overrides(a.of, d.of)
				}
			})
		}
	}
	disallows := f.index(false)
	for i := range f.lines {
		a := &f.lines[i]
		if !a.of.allow {
			continue
		}
		useful := false
		disallows.Overlapping(a.pattern, func(js []int32) {
			useful = useful || slices.ContainsFunc(js, func(j int32) bool { return f.overrides(a.of, f.lines[j].of) })
		})
		a.gone = !useful
		disallows.Covering(a.pattern, func(js []int32) {
			for _, j := range js {
				d := &f.lines[j]
				if a.gone || !d.sharesScope(a) || f.overrides(a.of, d.of) {
					continue
				}
				a.gone = true
				if f.opened(allows, a, d) {
					f.lose(a, a.pattern)
				}
			}
		})
	}
}

// opened reports whether another Allow opens some of what a Disallow closes of an Allow.
func (f *flattening) opened(allows *pathpattern.Index[[]int32], a, d *line) (found bool) {
	allows.Overlapping(a.pattern, func(js []int32) {
		found = found || slices.ContainsFunc(js, func(j int32) bool { return f.overrides(f.lines[j].of, d.of) })
	})
	return found
}

// settle looks at all pairs with a line that is not before from, and at those that the
// lines make which it adds.
func (f *flattening) settle(from int) bool {
	for from < len(f.lines) {
		next := len(f.lines)
		disallows := f.index(false)
		for i := range next {
			if a := &f.lines[i]; a.gone || !a.of.allow {
				continue
			}
			var meets []int32
			disallows.Overlapping(f.lines[i].pattern, func(js []int32) {
				for _, j := range js {
					if (i >= from || int(j) >= from) && !f.lines[j].gone {
						meets = append(meets, j)
					}
				}
			})
			if f.pairs += len(meets); f.pairs > maxMeetings {
				return false
			}
			slices.Sort(meets)
			for _, j := range meets {
				if f.lines[i].gone {
					break
				}
				f.settlePair(int32(i), j)
			}
		}
		from = next
	}
	return true
}

// settlePair sees to it that the right one of an Allow and a Disallow wins.
func (f *flattening) settlePair(i, j int32) {
	a, d := &f.lines[i], &f.lines[j]
	overrides := f.overrides(a.of, d.of)
	enough := d.high() // for a line that wins
	winner := a
	if !overrides {
		enough, winner = a.len()+1, d
	}
	if winner.low() >= enough {
		return
	}
	meet, ok := pathpattern.Intersect(a.pattern, d.pattern, maxCrossing)
	for k := range meet {
		meet[k] = meet[k].Plain()
		ok = ok && meet[k].Len() >= enough
	}
	if ok {
		meet = slices.DeleteFunc(meet, func(m pathpattern.Pattern) bool { return f.says(winner.of, m, enough) })
		f.derived += len(meet)
	}
	switch {
	case ok && f.derived <= maxDerived:
		of := winner.of
		for _, m := range meet {
			f.add(m, of)
		}
	case overrides:
		f.lose(a, d.pattern)
	default:
		a.gone = true
		f.lose(a, a.pattern)
	}
}

// says reports whether a line of a statement matches all that m does and is long
// enough.
func (f *flattening) says(s *stated, m pathpattern.Pattern, enough int) bool {
	return slices.ContainsFunc(f.byStated[s], func(i int32) bool {
		l := &f.lines[i]
		return !l.gone && l.low() >= enough && l.pattern.Covers(m)
	})
}

func (f *flattening) lose(a *line, paths pathpattern.Pattern) {
	l := Loss{Paths: paths, Pattern: a.of.pattern, scope: a.of.scope}
	if by := a.of.applied; by != nil {
		l.Rule, l.Pos = by.Rule, by.Statement.Pos
	}
	f.losses = append(f.losses, l)
}

// literal reports whether readers that know no wildcards understand a pattern.
func literal(p pathpattern.Pattern) bool { return !p.Wild() && !p.Anchored() }

// dropNeedless drops lines that change nothing, until none is left that does not:
// a Disallow that some Allow beats wherever it matches, an Allow that beats nothing,
// and a line that another of its kind says as well, with no line of the other kind
// between the two. A literal line is only dropped for another such.
func (f *flattening) dropNeedless() {
	index := [2]*pathpattern.Index[[]int32]{f.index(false), f.index(true)}
	order := make([]int, len(f.lines))
	for i := range order {
		order[i] = i
	}
	// Of equal patterns that of the narrowest audience stays, which explains the line best.
	slices.SortStableFunc(order, func(x, y int) int { return cmp.Compare(f.tier(y), f.tier(x)) })
	for again := true; again; {
		again = false
		for _, i := range order {
			if l := &f.lines[i]; !l.gone && f.needless(int32(i), &index) {
				l.gone, again = true, true
			}
		}
	}
}

func (f *flattening) tier(i int) int {
	if by := f.lines[i].of.applied; by != nil {
		return int(by.Tier)
	}
	return 1 << 8
}

// needless reports whether a line changes nothing.
func (f *flattening) needless(i int32, index *[2]*pathpattern.Index[[]int32]) bool {
	l := &f.lines[i]
	if l.guard {
		return false
	}
	same, others := index[kind(l.of.allow)], index[kind(!l.of.allow)]
	var lengths []int // of both spellings of the other kind, where it matches
	beaten := false
	others.Overlapping(l.pattern, func(js []int32) {
		for _, j := range js {
			o := &f.lines[j]
			if o.gone {
				continue
			}
			lengths = append(lengths, o.low(), o.high())
			beaten = beaten || !l.of.allow && o.len() >= l.high() && o.sharesScope(l) && (literal(o.pattern) || !literal(l.pattern)) && o.pattern.Covers(l.pattern)
		}
	})
	if beaten {
		return true
	}
	if l.of.allow && !slices.ContainsFunc(lengths, func(n int) bool { return n <= l.len() }) {
		return true
	}
	found := false
	same.Covering(l.pattern, func(js []int32) {
		for _, j := range js {
			m := &f.lines[j]
			if found || j == i || m.gone || !m.sharesScope(l) || literal(l.pattern) && !literal(m.pattern) {
				continue
			}
			found = !slices.ContainsFunc(lengths, func(n int) bool { return between(n, m.low(), l.high(), l.of.allow) })
		}
	})
	return found
}

// between reports whether a line of the other kind and n bytes loses to one of long
// bytes and wins over one of short.
func between(n, short, long int, allow bool) bool {
	if allow { // a tie allows
		return n > short && n <= long
	}
	return n >= short && n < long
}

func kind(allow bool) int {
	if allow {
		return 1
	}
	return 0
}

// sorted returns the lines that are left, those that others lose to before these, for
// readers that take the first match.
func (f *flattening) sorted() []line {
	lines := slices.DeleteFunc(f.lines, func(l line) bool { return l.gone })
	f.lines = lines
	if !f.mixed() {
		slices.SortStableFunc(lines, func(a, b line) int { return cmp.Compare(a.order, b.order) })
		return lines
	}
	index := [2]*pathpattern.Index[[]int32]{f.newIndex(false), f.newIndex(true)}
	byLength := make([]int, len(lines))
	for i := range byLength {
		byLength[i] = i
	}
	slices.SortStableFunc(byLength, func(x, y int) int {
		return cmp.Or(cmp.Compare(lines[x].len(), lines[y].len()), cmp.Compare(kind(lines[x].of.allow), kind(lines[y].of.allow)))
	})
	depth := make([]int, len(lines)) // the longest chain of lines that lose to it
	place := make([]int, len(lines))
	for n, i := range byLength {
		place[i] = n
	}
	for _, i := range byLength {
		index[kind(!lines[i].of.allow)].Overlapping(lines[i].pattern, func(js []int32) {
			for _, j := range js {
				if place[j] < place[i] {
					depth[i] = max(depth[i], depth[j]+1)
				}
			}
		})
	}
	order := make([]int, len(lines))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(x, y int) int {
		return cmp.Or(cmp.Compare(depth[y], depth[x]), cmp.Compare(lines[x].order, lines[y].order))
	})
	out := make([]line, len(lines))
	for n, i := range order {
		out[n] = lines[i]
	}
	return out
}
