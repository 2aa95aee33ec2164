// SPDX-License-Identifier: Apache-2.0

package robotsserve

import (
	"cmp"
	"slices"

	"github.com/robotspolicy/caddy-robots-policy/pathpattern"
	"github.com/robotspolicy/caddy-robots-policy/policy"
	"github.com/robotspolicy/caddy-robots-policy/policy/solve"
)

// The budget of one group.
const (
	maxOverlaps = 4 << 20 // of an Allow and a Disallow that match a common path
	maxDerived  = 100     // lines that are printed only because two others cross
	maxCrossing = 16
)

// stated is a statement about crawling that is for the crawlers of a group: the policy's or,
// where applied is nil, one of a merged file.
type stated struct {
	pattern pathpattern.Pattern
	allow   bool
	written string // the pattern as its author wrote it, or ""
	applied *policy.Applied
	size    int    // of a merged file's pattern, as it is written there
	scope   string // the purpose that a client has to name, or ""
	source  int    // of a token's group: see tokenLines
}

// flattening turns statements into the lines of one group of RFC 9309, in which the longest
// match decides and a tie allows (section 2.2.2).
//
// In the policy a path is disallowed if a prohibition matches it that no matching permission
// overrides. To say the same, the right one of each overlapping Allow and Disallow must be longer;
// where it is not, a line of its kind is added that matches what both match:
//
//	everyone:  disallow /*?            User-agent: Googlebot
//	Googlebot: allow /shop/     →      Disallow: /*?
//	everyone:  disallow /shop/         Disallow: /shop/*?
//	                                   Allow: /shop/        (dropped by dropNeedless: nothing is left that it wins over)
//
// Where no such line exists, the Allow is left out: the file is then stricter than the policy,
// never laxer, and a Loss says so.
type flattening struct {
	lines     []line
	allows    solve.Set // by their places in lines; some of them may be gone
	disallows solve.Set
	overrides func(permission, prohibition *stated) bool
	losses    []Loss
	budget    solve.Budget
	byStated  map[*stated][]int
	given     int       // lines that the statements make; the others are where two of them cross
	opponents [][]int32 // of each line, those of the other kind that overlap it, in order; some may be gone
}

// flatten returns the lines of a group in the order in which they are printed. It fails when too
// many pairs of patterns overlap.
func flatten(all []stated, overrides func(permission, prohibition *stated) bool) (lines []line, losses []Loss, ok bool) {
	f := flattening{
		overrides: overrides, byStated: map[*stated][]int{},
		budget: solve.Budget{Work: maxOverlaps, Ways: maxCrossing, Added: maxDerived},
	}
	for i := range all {
		for _, p := range all[i].pattern.Rooted() {
			f.add(p.Plain(), all[i].rooted(p), &all[i])
		}
	}
	f.given = len(f.lines)
	if !f.dropDecided() || !f.settle(0) || !f.guardIndexPages() {
		return nil, nil, false
	}
	f.dropNeedless()
	f.loseSpellings()
	return f.sorted(), f.losses, true
}

func (f *flattening) add(p pathpattern.Pattern, written string, s *stated) {
	i := len(f.lines)
	l := newLine(p, written, s)
	if l.order = i; len(f.byStated[s]) > 0 {
		l.order = f.lines[f.byStated[s][0]].order
	}
	f.byStated[s] = append(f.byStated[s], i)
	f.lines = append(f.lines, l)
	f.opponents = append(f.opponents, nil)
	f.ofKind(s.allow).Add(p, i)
}

func (f *flattening) ofKind(allow bool) *solve.Set {
	if allow {
		return &f.allows
	}
	return &f.disallows
}

func (f *flattening) overlapping(i int) []int {
	l := &f.lines[i]
	all := f.ofKind(!l.of.allow).Overlapping(l.pattern)
	return slices.DeleteFunc(all, func(j int) bool { return f.lines[j].gone })
}

// oppose notes that line i and others are opponents. It reports whether the budget lasted.
func (f *flattening) oppose(i int, others []int) bool {
	f.opponents[i] = slices.Grow(f.opponents[i], len(others))
	for _, j := range others {
		f.opponents[i] = append(f.opponents[i], int32(j))
		f.opponents[j] = append(f.opponents[j], int32(i))
	}
	return f.budget.Spend(len(others))
}

// covering lists the lines of a kind that match all that line i matches.
func (f *flattening) covering(i int, allow bool) []int {
	return f.ofKind(allow).Covering(f.lines[i].pattern)
}

// dropDecided drops each Disallow that an overriding Allow covers, then each Allow that overrides
// nothing or is covered by a Disallow that it cannot override. It notes the opponents of the others.
func (f *flattening) dropDecided() bool {
	for i := range f.lines {
		d := &f.lines[i]
		if d.of.allow {
			continue
		}
		d.gone = slices.ContainsFunc(f.covering(i, true), func(j int) bool {
			a := &f.lines[j]
			return a.sharesScope(d) && f.overrides(a.of, d.of)
		})
	}
	for i := range f.lines {
		a := &f.lines[i]
		if !a.of.allow {
			continue
		}
		opponents := f.overlapping(i)
		if !slices.ContainsFunc(opponents, func(j int) bool { return f.overrides(a.of, f.lines[j].of) }) {
			a.gone = true
			continue
		}
		closing := slices.DeleteFunc(f.covering(i, false), func(j int) bool {
			d := &f.lines[j]
			return d.gone || !d.sharesScope(a) || f.overrides(a.of, d.of)
		})
		if len(closing) == 0 {
			if !f.oppose(i, opponents) {
				return false
			}
			continue
		}
		a.gone = true
		if f.opened(a, closing) {
			f.lose(a, a.pattern)
		}
	}
	return true
}

// opened reports whether, for each of some Disallows that cover an Allow, another Allow opens a part.
func (f *flattening) opened(a *line, closing []int) bool {
	allows := f.allows.Overlapping(a.pattern)
	return !slices.ContainsFunc(closing, func(i int) bool {
		return !slices.ContainsFunc(allows, func(j int) bool { return f.overrides(f.lines[j].of, f.lines[i].of) })
	})
}

// settle looks at each pair of opponents when it reaches the later of the two, from a line on. It
// also reaches the lines that it adds.
func (f *flattening) settle(from int) bool {
	for i := from; i < len(f.lines); i++ {
		if f.lines[i].gone {
			continue
		}
		if i >= f.given {
			before := slices.DeleteFunc(f.overlapping(i), func(j int) bool { return j > i })
			if !f.oppose(i, before) {
				return false
			}
		}
		for _, j := range f.opponents[i] {
			if int(j) > i {
				break
			}
			f.settlePair(i, int(j))
		}
	}
	return true
}

// settlePair makes the right one of an Allow and a Disallow win.
func (f *flattening) settlePair(i, j int) {
	a, d := &f.lines[i], &f.lines[j]
	if d.of.allow {
		a, d = d, a
	}
	if a.gone {
		return
	}
	overrides := f.overrides(a.of, d.of)
	winner, loser := d, a
	if overrides {
		winner, loser = a, d
	}
	if winner.beats(loser) {
		return
	}
	meet, ok := f.budget.Cross(a.pattern, d.pattern)
	ok = ok && !slices.ContainsFunc(meet, func(m pathpattern.Pattern) bool {
		text, ok := winner.written(m)
		l := newLine(m, text, winner.of)
		return !ok || !l.beats(loser)
	})
	if ok {
		meet = slices.DeleteFunc(meet, func(m pathpattern.Pattern) bool { return f.says(winner.of, m, loser) })
		ok = f.budget.Add(len(meet))
	}
	switch {
	case ok:
		of := *winner // which may move
		for _, m := range meet {
			text, _ := of.written(m)
			f.add(m, text, of.of)
		}
	case overrides:
		f.lose(a, d.pattern)
	default:
		a.gone = true
		f.lose(a, a.pattern)
	}
}

func (f *flattening) says(s *stated, m pathpattern.Pattern, loser *line) bool {
	return slices.ContainsFunc(f.byStated[s], func(i int) bool {
		l := &f.lines[i]
		return !l.gone && l.pattern.Covers(m) && l.beats(loser)
	})
}

func (f *flattening) lose(a *line, paths pathpattern.Pattern) {
	l := Loss{Paths: paths, Pattern: a.of.pattern, scope: a.of.scope, written: a.spelled.Written}
	if by := a.of.applied; by != nil {
		l.Rule, l.Pos = by.Rule, by.Statement.Pos
	}
	f.losses = append(f.losses, l)
}

// dropNeedless drops lines until each changes something: a Disallow that an Allow beats wherever
// it matches, an Allow that beats nothing, and a line that another of its kind makes redundant with
// no line of the other kind between the two. A literal line is only dropped for another such.
func (f *flattening) dropNeedless() {
	order := make([]int, len(f.lines))
	for i := range order {
		order[i] = i
	}
	// Of equal patterns that of the narrowest audience stays: it explains the line best.
	slices.SortStableFunc(order, func(x, y int) int { return cmp.Compare(f.tier(y), f.tier(x)) })
	done := make([]bool, len(f.lines)) // nothing that matters to them has been dropped since
	for again := true; again; {
		again = false
		for _, i := range order {
			l := &f.lines[i]
			if done[i] || l.gone || l.guard {
				continue
			}
			done[i] = true
			if !f.needless(i) {
				continue
			}
			l.gone, again = true, true
			for _, j := range f.opponents[i] {
				done[j] = false
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

func (f *flattening) needless(i int) bool {
	l := &f.lines[i]
	var lengths []int // of those of the other kind, where it matches
	for _, j := range f.opponents[i] {
		o := &f.lines[j]
		if o.gone {
			continue
		}
		if !l.of.allow && o.mayReplace(l) && o.pattern.Covers(l.pattern) && o.beats(l) {
			return true
		}
		lengths = append(lengths, o.low, o.high)
	}
	if l.of.allow && !slices.ContainsFunc(lengths, func(n int) bool { return n <= l.high }) {
		return true
	}
	return slices.ContainsFunc(f.covering(i, l.of.allow), func(j int) bool {
		m := &f.lines[j]
		return j != i && !m.gone && m.mayReplace(l) && m.coversTexts(l) &&
			!slices.ContainsFunc(lengths, func(n int) bool { return between(n, m.low, l.high, l.of.allow) })
	})
}

// sorted returns the lines that are left, losers before the lines that lose to them, for
// readers that take the first match.
func (f *flattening) sorted() []line {
	var left []int
	for i := range f.lines {
		if !f.lines[i].gone {
			left = append(left, i)
		}
	}
	kind := func(i int) int {
		if f.lines[i].of.allow {
			return 1
		}
		return 0
	}
	byLength := slices.SortedStableFunc(slices.Values(left), func(x, y int) int {
		return cmp.Or(cmp.Compare(f.lines[x].len(), f.lines[y].len()), cmp.Compare(kind(x), kind(y)))
	})
	depth := map[int]int{} // the longest chain of lines that lose to each of those looked at
	for _, i := range byLength {
		deepest := 0
		for _, j := range f.opponents[i] {
			if n, ok := depth[int(j)]; ok {
				deepest = max(deepest, n+1)
			}
		}
		depth[i] = deepest
	}
	slices.SortStableFunc(left, func(x, y int) int {
		return cmp.Or(cmp.Compare(depth[y], depth[x]), cmp.Compare(f.lines[x].order, f.lines[y].order))
	})
	lines := make([]line, len(left))
	for n, i := range left {
		lines[n] = f.lines[i]
	}
	return lines
}
