// SPDX-License-Identifier: Apache-2.0

package metainject

import "sort"

// token takes a token of the text as it came. If something else has to go out in
// its place, that is in toks.
func (z *splicer) token(t token, pos int) (changes bool) {
	n := t.size()
	z.learn(t, pos+n)
	switch {
	case z.next < len(z.edits) && z.edits[z.next].start < pos+n:
		for i := pos; i < pos+n; i++ {
			z.changed(i)
		}
	case t&isMatch != 0 && z.next > 0 && pos-t.dist() < z.edits[z.next-1].end:
		z.moved(t, pos)
	default:
		return false
	}
	return true
}

// learn adds a token that reaches to end to the text, as far as that is wanted.
func (z *splicer) learn(t token, end int) {
	for end = min(end, z.textWanted()); len(z.text) < end; {
		c := byte(t)
		if t&isMatch != 0 {
			c = z.text[len(z.text)-t.dist()]
		}
		z.text = append(z.text, c)
	}
}

// changed puts in what belongs before the text's byte i, and the byte itself,
// unless it is to be taken out.
func (z *splicer) changed(i int) {
	for z.next < len(z.edits) && z.edits[z.next].start <= i {
		e := &z.edits[z.next]
		if !z.begun {
			z.insert(e.text)
			z.begun = true
		}
		if i < e.end {
			return
		}
		z.made(e)
	}
	z.toks = append(z.toks, token(z.text[i]))
}

func (z *splicer) insert(text []byte) {
	for _, c := range text {
		z.toks = append(z.toks, token(c))
	}
}

func (z *splicer) made(e *edit) {
	z.shifts = append(z.shifts, z.shift(z.next)+len(e.text)-(e.end-e.start))
	z.next++
	z.begun = false
}

// shift is how much longer the new text is behind the first n edits.
func (z *splicer) shift(n int) int {
	if n == 0 {
		return 0
	}
	return z.shifts[n-1]
}

// remaining makes the edits at the very end of the text.
func (z *splicer) remaining() {
	for z.next < len(z.edits) {
		e := &z.edits[z.next]
		if !z.begun {
			z.insert(e.text)
		}
		z.made(e)
	}
}

// moved takes a match that reaches back across a change, or into one. A match
// that repeats its own beginning is whole only if nothing changed in between.
func (z *splicer) moved(t token, pos int) {
	n, dist := t.length(), t.dist()
	from := pos - dist
	to := from + min(n, dist)
	before := sort.Search(z.next, func(i int) bool { return z.edits[i].end > from })
	whole := before == z.next || z.edits[before].start >= to
	if d := dist + z.shift(z.next) - z.shift(before); whole && d <= z.window {
		z.toks = append(z.toks, match(n, d))
		return
	}
	for i := range n {
		z.toks = append(z.toks, token(z.text[from+i%dist]))
	}
}
