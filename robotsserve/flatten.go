// SPDX-License-Identifier: Apache-2.0

package robotsserve

import (
	"cmp"
	"slices"

	"github.com/robotspolicy/caddy-robots-policy/pathpattern"
	"github.com/robotspolicy/caddy-robots-policy/policy"
)

// maxMeetings bounds the pairs of an Allow and a Disallow that match a common
// path, of one group.
const maxMeetings = 8 << 20

// verdict is what one pattern says in one layer of a policy.
type verdict struct {
	pattern   pathpattern.Pattern // without "*" at its end, which changes only its length
	size      int                 // the length by which the policy compares
	allow     bool
	order     int // by which verdicts of equal depth are printed: as in the file
	ref       policy.Ref
	mixed     bool   // several rules say it
	theirs    bool   // it is of a file that is merged
	across    bool   // it may tie with another rule, and such a tie disallows
	condition string // under which it holds, "" for none

	gone   bool
	weaker []int32 // verdicts of the other kind that lose where both match
	depth  int     // the longest chain of weaker verdicts
	length int     // in the file
	beside bool    // readers without wildcards need it without "*" too
	text   string  // in the file
}

// flattening makes one group, in which the longest match decides and a tie
// allows (RFC 9309 section 2.2.2), of layers of which the first that speaks of
// a path decides.
type flattening struct {
	verdicts []verdict // the strongest first
	widened  []int32
	losses   []Loss
	meetings int
}

// flatten returns the Allow and Disallow lines of a group: those of the policy's
// layers, and those that a file below them adds, which is the last layer if
// there are more than own, with the lengths that its patterns have there. It
// fails when too many patterns meet.
func flatten(layers []policy.Layer, own int, size func(pathpattern.Pattern) int) (lines, theirs []string, losses []Loss, ok bool) {
	f := flattening{}
	for i := range layers {
		from := len(f.verdicts)
		all := f.add(&layers[i])
		if i >= own {
			f.disown(from, size)
		}
		if all {
			break // it speaks of every path
		}
	}
	f.dropCovered()
	if !f.meet() {
		return nil, nil, nil, false
	}
	f.dropNeedless()
	f.lengthen()
	lines, theirs = f.lines()
	return lines, theirs, f.losses, true
}

// add appends the verdicts of a layer, the strongest first, and reports whether
// one of them is for every path.
func (f *flattening) add(l *policy.Layer) bool {
	vs := verdictsOf(l, func(*policy.Rule) string { return "" }, f.lose)
	for i := range vs {
		vs[i].order += len(f.verdicts)
	}
	f.verdicts = append(f.verdicts, vs...)
	return slices.ContainsFunc(vs, func(v verdict) bool { return v.pattern.IsAll() })
}

// disown marks the verdicts from one on as those of a file below.
func (f *flattening) disown(from int, size func(pathpattern.Pattern) int) {
	theirs := f.verdicts[from:]
	for i := range theirs {
		theirs[i].theirs = true
		theirs[i].size = size(theirs[i].ref.Statement.Pattern)
	}
	slices.SortStableFunc(theirs, func(a, b verdict) int { return cmp.Or(cmp.Compare(b.size, a.size), a.tie()-b.tie()) })
}

// verdictsOf returns what a layer says of each pattern, and under each
// condition, the strongest first.
func verdictsOf(l *policy.Layer, condition func(*policy.Rule) string, lose func(*verdict, pathpattern.Pattern)) []verdict {
	type key struct {
		pattern   pathpattern.Pattern
		condition string
	}
	at := map[key]int{}
	var refs [][]policy.Ref
	var keys []key
	for _, r := range l.Statements {
		k := key{r.Statement.Pattern, condition(r.Rule)}
		i, ok := at[k]
		if !ok {
			i = len(refs)
			at[k] = i
			refs, keys = append(refs, nil), append(keys, k)
		}
		refs[i] = append(refs[i], r)
	}
	var vs []verdict
	for i, k := range keys {
		ref := l.Decides(refs[i])
		mixed := slices.ContainsFunc(refs[i], func(r policy.Ref) bool { return r.Rule != ref.Rule })
		for _, p := range k.pattern.Rooted() {
			vs = append(vs, verdict{
				pattern: p.Plain(), size: k.pattern.Len(), allow: ref.Statement.Allow, order: len(vs), ref: ref, condition: k.condition, mixed: mixed,
			})
		}
	}
	if l.Tier == policy.TierGroup {
		settleTies(vs, lose)
	}
	slices.SortStableFunc(vs, func(a, b verdict) int {
		return cmp.Or(cmp.Compare(b.size, a.size), a.place()-b.place())
	})
	return vs
}

// settleTies finds which verdicts of one length contradict each other, and
// whether they are from one rule, where a tie allows, or from several, where it disallows. Should a
// rule tie with itself and with another, it disallows too.
func settleTies(vs []verdict, lose func(v *verdict, paths pathpattern.Pattern)) {
	bySize := map[int][]pathpattern.Entry[[]int]{}
	for i := range vs {
		bySize[vs[i].size] = append(bySize[vs[i].size], pathpattern.Entry[[]int]{Pattern: vs[i].pattern, Value: []int{i}})
	}
	group := make([]int, len(vs)) // the first that each is tied to
	for i := range group {
		group[i] = i
	}
	root := func(i int) int {
		for group[i] != i {
			i = group[i]
		}
		return i
	}
	var ties [][2]int
	for size := range bySize {
		x := pathpattern.NewIndex(bySize[size], func(a, b []int) []int { return slices.Concat(a, b) })
		for _, e := range bySize[size] {
			i := e.Value[0]
			x.Overlapping(e.Pattern, func(js []int) {
				for _, j := range js {
					if vs[j].allow && !vs[i].allow {
						ties = append(ties, [2]int{j, i})
						a, b := root(i), root(j)
						group[max(a, b)] = min(a, b)
					}
				}
			})
		}
	}
	several := map[int]bool{}
	for i := range vs {
		r := root(i)
		several[r] = several[r] || vs[i].mixed || vs[i].ref.Rule != vs[r].ref.Rule
	}
	for _, t := range ties {
		for _, i := range t {
			vs[i].across = several[root(i)]
		}
	}
	for _, t := range ties {
		if a, d := &vs[t[0]], &vs[t[1]]; a.across && a.ref.Rule == d.ref.Rule {
			lose(a, d.pattern)
		}
	}
}

// place is where a verdict stands among those of its length: what disallows in a tie
// before all that allows, and that before what loses a tie. Of permissions of equal
// rank one that is qualified answers, whether or not each is in a tie.
func (v *verdict) place() int {
	switch {
	case !v.allow:
		return 3 - 3*kind(v.across)
	case v.ref.Statement.Qualifiers != nil:
		return 1
	}
	return 2
}

func (v *verdict) tie() int {
	if v.allow == v.across {
		return 1
	}
	return 0
}

// dropCovered drops what never decides, because a stronger verdict matches all
// that it matches.
func (f *flattening) dropCovered() {
	all := make([]pathpattern.Entry[int32], len(f.verdicts))
	for i := range f.verdicts {
		all[i] = pathpattern.Entry[int32]{Pattern: f.verdicts[i].pattern, Value: int32(i)}
	}
	x := pathpattern.NewIndex(all, func(a, b int32) int32 { return min(a, b) })
	for i := range f.verdicts {
		v := &f.verdicts[i]
		x.Covering(v.pattern, func(j int32) { v.gone = v.gone || j < int32(i) })
	}
	f.verdicts = slices.DeleteFunc(f.verdicts, func(v verdict) bool { return v.gone })
}

// meet finds the verdicts of the other kind that each has to win against.
func (f *flattening) meet() bool {
	var kinds [2][]pathpattern.Entry[int32]
	for i := range f.verdicts {
		k := kind(f.verdicts[i].allow)
		kinds[k] = append(kinds[k], pathpattern.Entry[int32]{Pattern: f.verdicts[i].pattern, Value: int32(i)})
	}
	var index [2]*pathpattern.Index[int32]
	for k := range kinds {
		index[k] = pathpattern.NewIndex(kinds[k], func(a, _ int32) int32 { return a })
	}
	for i := range f.verdicts {
		v := &f.verdicts[i]
		if len(kinds[1-kind(v.allow)]) == 0 {
			continue
		}
		index[1-kind(v.allow)].Overlapping(v.pattern, func(j int32) {
			if j > int32(i) && f.meetings <= maxMeetings {
				v.weaker = append(v.weaker, j)
				f.meetings++
			}
		})
		slices.Sort(v.weaker)
	}
	return f.meetings <= maxMeetings
}

func kind(allow bool) int {
	if allow {
		return 1
	}
	return 0
}

// dropNeedless drops what changes nothing for any reader: an Allow where
// nothing weaker disallows, and what a weaker verdict of the same kind says
// already. A pattern without wildcards is only needless by another such, as
// some readers know none.
func (f *flattening) dropNeedless() {
	all := make([]pathpattern.Entry[int32], len(f.verdicts))
	for i := range f.verdicts {
		all[i] = pathpattern.Entry[int32]{Pattern: f.verdicts[i].pattern, Value: int32(i)}
	}
	x := pathpattern.NewIndex(all, func(a, _ int32) int32 { return a })
	for i := len(f.verdicts) - 1; i >= 0; i-- {
		v := &f.verdicts[i]
		v.weaker = slices.DeleteFunc(v.weaker, func(j int32) bool { return f.verdicts[j].gone })
		if v.allow && len(v.weaker) == 0 {
			v.gone = true
			continue
		}
		next := int32(len(f.verdicts)) // what readers without wildcards find instead
		x.Covering(v.pattern, func(j int32) {
			w := &f.verdicts[j]
			if j <= int32(i) || w.gone {
				return
			}
			if literal(w.pattern) {
				next = min(next, j)
			}
			if w.allow == v.allow && (literal(w.pattern) || !literal(v.pattern)) {
				v.gone = v.gone || len(v.weaker) == 0 || v.weaker[0] > j
			}
		})
		instead := int(next) == len(f.verdicts) || f.verdicts[next].allow
		v.beside = literal(v.pattern) && instead != v.allow
	}
}

// literal reports whether readers without wildcards understand a pattern.
func literal(p pathpattern.Pattern) bool { return !p.Wild() && !p.Anchored() }

// lengthen sees to it that in the file each verdict is longer than the weaker
// ones that it meets: it goes from the weakest to the strongest.
func (f *flattening) lengthen() {
	for i := len(f.verdicts) - 1; i >= 0; i-- {
		v := &f.verdicts[i]
		if v.gone {
			continue
		}
		need := v.pattern.Len()
		against := func(w *verdict) {
			v.depth = max(v.depth, w.depth+1)
			need = max(need, w.length+1-kind(v.allow))
		}
		for _, j := range v.weaker {
			against(&f.verdicts[j])
		}
		for _, j := range f.widened {
			if w := &f.verdicts[j]; w.allow != v.allow && w.pattern.Overlaps(v.pattern) {
				against(w)
			}
		}
		text, ok := v.pattern.Lengthen(need)
		switch {
		case ok:
			v.text, v.length = text, need
		case v.allow:
			f.lose(v, v.pattern)
			v.text, v.length = v.pattern.String(), v.pattern.Len()
		default:
			v.pattern = pathpattern.MustParse(v.pattern.String()[:v.pattern.Len()-1])
			v.text, _ = v.pattern.Lengthen(need)
			v.length = need
			f.widened = append(f.widened, int32(i))
			f.lose(v, v.pattern)
		}
	}
}

func (f *flattening) lose(v *verdict, paths pathpattern.Pattern) {
	f.losses = append(f.losses, Loss{Paths: paths, Rule: v.ref.Rule, Pos: v.ref.Statement.Pos, Pattern: v.ref.Statement.Pattern})
}

// lines prints the verdicts: those that others depend on losing to them first,
// for readers that take the first match, else in the order of the policy. Those
// of a file below can stand behind all of the policy's, as none of these loses to
// them.
func (f *flattening) lines() (lines, theirs []string) {
	kept := slices.DeleteFunc(f.verdicts, func(v verdict) bool { return v.gone })
	slices.SortStableFunc(kept, func(a, b verdict) int {
		return cmp.Or(cmp.Compare(b.depth, a.depth), cmp.Compare(a.order, b.order))
	})
	for i := range kept {
		v := &kept[i]
		key, to := "Disallow: ", &lines
		if v.allow {
			key = "Allow: "
		}
		if v.theirs {
			to = &theirs
		}
		*to = append(*to, key+v.text)
		if v.beside && v.pattern.String() != v.text {
			*to = append(*to, key+v.pattern.String())
		}
	}
	return lines, theirs
}
