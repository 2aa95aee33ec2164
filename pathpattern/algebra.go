// SPDX-License-Identifier: Apache-2.0

package pathpattern

import (
	"math"
	"slices"
	"strings"
)

// filler stands for what a "*" matches. No path in normal form has it.
const filler = "\x00"

// core returns a pattern's text without "$" and needless "*", with the "*" that it implies at the end, and whether it is
// anchored.
func (p Pattern) core() (text string, anchored bool) {
	text = collapsed(p.text, "*")
	if p.Anchored() {
		text = text[:len(text)-1]
		return text, !strings.HasSuffix(text, "*")
	}
	if strings.HasSuffix(text, "*") {
		return text, false
	}
	return text + "*", false
}

// sample returns a path, with fillers, that a pattern matches exactly if it covers p.
func (p Pattern) sample() string {
	text, _ := p.core()
	if text[0] == '*' {
		text = "/" + text
	}
	return strings.ReplaceAll(text, "*", filler)
}

// Sample returns a path that represents all paths of p: a pattern matches it exactly if the pattern covers p. No
// request has this path.
func (p Pattern) Sample() string { return p.sample() }

// Example returns a request path that p matches. Few patterns match it except those that cover p, because %01 and
// %02, which real addresses do not contain, replace the free parts. Patterns such as "/*0*" also match them.
func (p Pattern) Example() string { return p.example("%02") }

// NarrowExample returns Example with each "*" replaced by nothing. A pattern that crosses p may match it.
func (p Pattern) NarrowExample() string { return p.example("") }

func (p Pattern) example(free string) string {
	text := p.text
	if p.Anchored() {
		text = text[:len(text)-1]
	} else {
		text += "%01"
	}
	text = strings.ReplaceAll(text, "*", free)
	if text[0] != '/' {
		text = "/" + text
	}
	return text
}

// Covers reports whether p matches every path that q matches.
func (p Pattern) Covers(q Pattern) bool { return p.covers(q, q.sample()) }

func (p Pattern) covers(q Pattern, sample string) bool {
	if !p.Match(sample) {
		return false
	}
	// "*/x" also matches what "/x" matches.
	return q.text[0] != '*' || p.Match(q.Rooted()[0].sample())
}

// Overlaps reports whether p and q both match some path. Paths start with "/".
func (p Pattern) Overlaps(q Pattern) bool {
	o, literal := newOverlap(p), q.literal()
	return compatible(o.literal, literal, strings.HasPrefix) && o.with(literal, q.text[len(literal):])
}

// overlap is a pattern, in parts, that is compared with others.
type overlap struct {
	literal, rest string
	exact         bool // it matches one path
	end           string
	ends          bool // its paths end with end
}

func newOverlap(p Pattern) overlap {
	o := overlap{literal: p.literal()}
	o.rest = p.text[len(o.literal):]
	o.exact = o.rest == "$"
	o.end, o.ends = ending(o.rest)
	return o
}

func (o *overlap) with(literal, rest string) bool {
	switch {
	case o.exact:
		return len(literal) <= len(o.literal) && matchRest(rest, o.literal[len(literal):])
	case rest == "$":
		return len(o.literal) <= len(literal) && matchRest(o.rest, literal[len(o.literal):])
	case !o.ends:
		return true
	}
	// Either can contain all of the other, unless both say how the path ends.
	end, ends := ending(rest)
	return !ends || compatible(o.end, end, strings.HasSuffix)
}

// ending returns the end of matching paths, given the text after a pattern's literal prefix; ok is false for
// any end.
func ending(rest string) (text string, ok bool) {
	open, anchored := strings.CutSuffix(rest, "$")
	if !anchored {
		return "", false
	}
	text = open[strings.LastIndexByte(open, '*')+1:]
	return text, text != ""
}

func compatible(a, b string, within func(s, part string) bool) bool {
	return within(a, b) || within(b, a)
}

// Plain returns the pattern without needless "*". It matches the same paths: "/a*" and "/a*$" become "/a".
func (p Pattern) Plain() Pattern {
	text, anchored := p.core()
	if anchored {
		return Pattern{text + "$"}
	}
	text = strings.TrimRight(text, "*")
	if text == "" {
		text = "/"
	}
	return Pattern{text}
}

// Rooted returns patterns that start with "/", as RFC 9309 requires, and together match the same paths: for "*/x",
// these are "/x" and "/*/x".
func (p Pattern) Rooted() []Pattern {
	if p.text[0] != '*' {
		return []Pattern{p}
	}
	return []Pattern{{strings.TrimLeft(p.text, "*")}, {"/" + p.text}}
}

// maxStates limits the product of the patterns' lengths in Intersect.
const maxStates = 1 << 22

// Intersect returns patterns that together match the paths that p and q both match, none of which covers another.
// It fails if there are more than limit, or if the patterns are too long.
func Intersect(p, q Pattern, limit int) ([]Pattern, bool) {
	a, _ := p.core()
	b, _ := q.core()
	if (len(a)+1)*(len(b)+1) > maxStates {
		return nil, false
	}
	x := crossing{a: a, b: b, limit: limit * 16, alive: make([]bool, (len(a)+1)*(len(b)+1)), found: map[string]bool{}}
	x.survey()
	if !x.alive[0] {
		return nil, true
	}
	if !x.extend(0, 0, make([]byte, 0, len(a)+len(b))) {
		return nil, false
	}
	all := make([]Pattern, 0, len(x.found))
	for text := range x.found {
		all = append(all, Pattern{text})
	}
	slices.SortFunc(all, func(a, b Pattern) int { return strings.Compare(a.text, b.text) })
	samples := make([]string, len(all))
	for i, c := range all {
		samples[i] = c.sample()
	}
	var most []Pattern
	for i, c := range all {
		needless := false
		for j := 0; j < len(all) && !needless; j++ {
			needless = j != i && all[j].covers(c, samples[i]) && (j < i || !c.covers(all[j], samples[j]))
		}
		if needless {
			continue
		}
		if len(most) == limit {
			return nil, false
		}
		most = append(most, c)
	}
	return most, true
}

// crossing walks through two texts at once. A state is the pair of positions reached in the texts.
type crossing struct {
	a, b  string
	limit int
	alive []bool // the states from which the end of both texts can be reached
	found map[string]bool
}

func (x *crossing) at(i, j int) int { return i*(len(x.b)+1) + j }

func (x *crossing) isLive(i, j int) bool {
	return i <= len(x.a) && j <= len(x.b) && x.alive[x.at(i, j)]
}

func star(s string, i int) bool { return i < len(s) && s[i] == '*' }

// survey finds the states that lead to the end, the last first.
func (x *crossing) survey() {
	for i := len(x.a); i >= 0; i-- {
		for j := len(x.b); j >= 0; j-- {
			ok := i == len(x.a) && j == len(x.b)
			if star(x.a, i) {
				ok = ok || x.isLive(i+1, j) || x.isLive(i, j+1)
			}
			if star(x.b, j) {
				ok = ok || x.isLive(i, j+1) || x.isLive(i+1, j)
			}
			if i < len(x.a) && j < len(x.b) && x.a[i] == x.b[j] {
				ok = ok || x.isLive(i+1, j+1)
			}
			x.alive[x.at(i, j)] = ok
		}
	}
}

// extend follows every way from a state to the end, up to limit.
func (x *crossing) extend(i, j int, out []byte) bool {
	if !x.isLive(i, j) {
		return true
	}
	if i == len(x.a) && j == len(x.b) {
		if x.limit--; x.limit < 0 {
			return false
		}
		x.found[finish(out)] = true
		return true
	}
	sa, sb := star(x.a, i), star(x.b, j)
	switch {
	case sa && sb:
		if n := len(out); n == 0 || out[n-1] != '*' {
			out = append(out, '*')
		}
		// The one that ends first may be used up by the other.
		return x.extend(i+1, j, out) && x.extend(i, j+1, out)
	case sa:
		ok := x.extend(i+1, j, out)
		if ok && j < len(x.b) {
			ok = x.extend(i, j+1, append(out, x.b[j]))
		}
		return ok
	case sb:
		ok := x.extend(i, j+1, out)
		if ok && i < len(x.a) {
			ok = x.extend(i+1, j, append(out, x.a[i]))
		}
		return ok
	}
	return x.extend(i+1, j+1, append(out, x.a[i]))
}

func finish(out []byte) string {
	text := strings.TrimRight(string(out), "*")
	switch {
	case text == "":
		return "/"
	case len(text) == len(out):
		return text + "$"
	}
	return text
}

// Covering calls yield with the value of every pattern that covers p, in an order that is fixed for an index.
func (x *Index[V]) Covering(p Pattern, yield func(V)) {
	var also map[*V]bool
	work := Work(math.MaxInt)
	if p.text[0] == '*' {
		also = map[*V]bool{}
		x.matches(p.Rooted()[0].sample(), &work, func(v *V) { also[v] = true })
	}
	x.matches(p.sample(), &work, func(v *V) {
		if also == nil || also[v] {
			yield(*v)
		}
	})
}

// Overlapping calls yield with the value of every pattern that overlaps p, in an order that is fixed for an index.
func (x *Index[V]) Overlapping(p Pattern, yield func(V)) {
	o := newOverlap(p)
	at, n := 0, int32(0)
	for {
		nd := &x.nodes[n]
		at += commonPrefix(o.literal[at:], nd.text[at:])
		if at == len(o.literal) {
			x.below(nd, &o, yield)
			return
		}
		if at < len(nd.text) {
			return
		}
		x.overlappingAt(nd, &o, yield)
		i := strings.IndexByte(nd.first, o.literal[at])
		if i < 0 {
			return
		}
		n = nd.child + int32(i)
	}
}

// below visits a node and all nodes below it. Their literals start with the literal of o.
func (x *Index[V]) below(nd *node[V], o *overlap, yield func(V)) {
	x.overlappingAt(nd, o, yield)
	for i := range nd.first {
		x.below(&x.nodes[nd.child+int32(i)], o, yield)
	}
}

func (x *Index[V]) overlappingAt(nd *node[V], o *overlap, yield func(V)) {
	if nd.length > 0 && o.with(nd.text, "") {
		yield(nd.value)
	}
	if nd.wild == nil {
		return
	}
	for _, ws := range [...][]wildcard[V]{nd.wild.few, nd.wild.many} {
		for i := range ws {
			if w := &ws[i]; o.with(nd.text, w.rest) {
				yield(w.value)
			}
		}
	}
}
