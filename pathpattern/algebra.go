// SPDX-License-Identifier: Apache-2.0

package pathpattern

import (
	"math"
	"slices"
	"strings"
)

// filler is the byte that Sample writes in place of each "*" of a pattern. No path in normal form contains this byte.
const filler = "\x00"

// core returns a pattern's text without "$" and without redundant "*". If the pattern is not anchored, the text ends
// with the "*" that the pattern implies.
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

// sample returns the result of Sample: a path that p matches, with a filler for each "*".
func (p Pattern) sample() string {
	text, _ := p.core()
	if text[0] == '*' {
		text = "/" + text
	}
	return strings.ReplaceAll(text, "*", filler)
}

// Sample returns a path that represents all paths that p matches. Another pattern matches this path if and only if it
// covers p, which means that it matches every path that p matches. No request has this path.
func (p Pattern) Sample() string { return p.sample() }

// Example returns a request path that p matches. In this path, %01 and %02 replace the variable parts of p. Real URLs
// do not contain %01 and %02, so hardly any pattern matches the path unless it covers p. Patterns such as "/*0*" are an
// exception.
func (p Pattern) Example() string { return p.example("%02") }

// NarrowExample returns an example like Example, but replaces each "*" with the empty text. Therefore a pattern that
// overlaps p without covering it may match the result.
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
func (p Pattern) Covers(q Pattern) bool {
	if literal, start := p.literal(), q.literal(); start != "" { // in most cases, no sample is necessary
		switch {
		case !strings.HasPrefix(start, literal):
			return false
		case len(literal) == len(p.text):
			return true
		}
	}
	return p.covers(q, q.sample())
}

func (p Pattern) covers(q Pattern, sample string) bool {
	if !p.Match(sample) {
		return false
	}
	// If q is "*/x", p must also match "/x", which the sample of q does not represent.
	return q.text[0] != '*' || p.Match(q.Rooted()[0].sample())
}

// Overlaps reports whether at least one path matches both p and q. Paths start with "/".
func (p Pattern) Overlaps(q Pattern) bool {
	o, literal := newOverlap(p), q.literal()
	return compatible(o.literal, literal, strings.HasPrefix) && o.with(literal, q.text[len(literal):])
}

// overlap holds the parts of a pattern that Overlaps compares with other patterns.
type overlap struct {
	literal, rest string
	exact         bool // the pattern matches only one path
	end           string
	ends          bool // the pattern is anchored, so every path that it matches ends with the text in the field end
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
	// The beginnings of the two patterns are compatible. So the patterns overlap, unless each of them requires a
	// certain end of the path and these ends are not compatible.
	end, ends := ending(rest)
	return !ends || compatible(o.end, end, strings.HasSuffix)
}

// ending returns the text at the end of all matching paths. rest is the pattern's text after its literal prefix. ok is
// false if matching paths may have any end.
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

// Plain returns the pattern without redundant "*". The result matches the same paths. For example, "/a*" and "/a*$"
// become "/a".
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

// Rooted returns patterns that together match the same paths as p and start with "/", which RFC 9309 requires. For
// "*/x" the result is "/x" and "/*/x".
func (p Pattern) Rooted() []Pattern {
	if p.text[0] != '*' {
		return []Pattern{p}
	}
	return []Pattern{{strings.TrimLeft(p.text, "*")}, {"/" + p.text}}
}

// maxStates limits the product of the lengths of the two patterns in Intersect.
const maxStates = 1 << 22

// Intersect returns patterns that together match exactly the paths that both p and q match. No returned pattern covers
// another. The second result is false if more than limit patterns would be needed, or if p and q are too long.
func Intersect(p, q Pattern, limit int) ([]Pattern, bool) {
	a, _ := p.core()
	b, _ := q.core()
	if (len(a)+1)*(len(b)+1) > maxStates {
		return nil, false
	}
	x := crossing{a: a, b: b, limit: limit * 16, alive: make([]bool, (len(a)+1)*(len(b)+1))}
	x.survey()
	if !x.alive[0] {
		return nil, true
	}
	if !x.extend(0, 0, make([]byte, 0, len(a)+len(b))) {
		return nil, false
	}
	slices.SortFunc(x.found, func(a, b Pattern) int { return strings.Compare(a.text, b.text) })
	all := slices.Compact(x.found)
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

// crossing computes the patterns of Intersect. It reads the texts of both patterns at the same time. A state is a
// pair of positions, one in each text.
type crossing struct {
	a, b  string
	limit int
	alive []bool // for each state, whether the end of both texts can be reached from there
	found []Pattern
}

func (x *crossing) at(i, j int) int { return i*(len(x.b)+1) + j }

func (x *crossing) isLive(i, j int) bool {
	return i <= len(x.a) && j <= len(x.b) && x.alive[x.at(i, j)]
}

func star(s string, i int) bool { return i < len(s) && s[i] == '*' }

// survey sets alive for every state. It begins with the last state, because a state is alive if one step leads from it
// to another alive state.
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

// extend takes every series of steps from state (i, j) to the end of both texts, and adds the resulting patterns to
// found. out is the beginning of these patterns. extend returns false if there are more than limit patterns.
func (x *crossing) extend(i, j int, out []byte) bool {
	if !x.isLive(i, j) {
		return true
	}
	if i == len(x.a) && j == len(x.b) {
		if x.limit--; x.limit < 0 {
			return false
		}
		x.found = append(x.found, finish(out))
		return true
	}
	sa, sb := star(x.a, i), star(x.b, j)
	switch {
	case sa && sb:
		if n := len(out); n == 0 || out[n-1] != '*' {
			out = append(out, '*')
		}
		// Either of the two "*" may be the first to match no further text.
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

func finish(out []byte) Pattern {
	text := strings.TrimRight(string(out), "*")
	switch {
	case text == "":
		return All
	case len(text) == len(out):
		return Pattern{text + "$"}
	}
	return Pattern{text}
}

// Covering passes the value of every pattern that covers p to yield. For one index, the order is always the same.
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

// Overlapping passes the value of every pattern that overlaps p to yield. For one index, the order is always the same.
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

// below calls yield for those patterns of a node, and of all nodes below it, that overlap o. The literals of these
// nodes must start with the literal of o.
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
