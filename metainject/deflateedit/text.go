// SPDX-License-Identifier: Apache-2.0

package deflateedit

import "sort"

// token handles the next token, which is at position pos of the old text. It reports whether the token must be
// replaced, and puts the new tokens into e.toks.
func (e *Editor) token(t token, pos int) (changes bool) {
	n := t.size()
	e.record(t, pos+n)
	switch {
	case e.next < len(e.edits) && e.edits[e.next].Start < pos+n:
		for i := pos; i < pos+n; i++ {
			e.editByte(i)
		}
	case t&isMatch != 0 && e.next > 0 && pos-t.dist() < e.edits[e.next-1].End:
		e.moveMatch(t, pos)
	default:
		return false
	}
	return true
}

// record appends a token to the stored part of the old text. end is the position after the token.
func (e *Editor) record(t token, end int) {
	for end = min(end, e.textWanted()); len(e.text) < end; {
		c := byte(t)
		if t&isMatch != 0 {
			c = e.text[len(e.text)-t.dist()]
		}
		e.text = append(e.text, c)
	}
}

// editByte writes the text that edits insert before byte i of the old text. It then writes that byte, unless an
// edit removes it.
func (e *Editor) editByte(i int) {
	for e.next < len(e.edits) && e.edits[e.next].Start <= i {
		ed := &e.edits[e.next]
		if !e.inserted {
			e.insert(ed.Text)
			e.inserted = true
		}
		if i < ed.End {
			return
		}
		e.editDone(ed)
	}
	e.toks = append(e.toks, token(e.text[i]))
}

func (e *Editor) insert(text []byte) {
	for _, c := range text {
		e.toks = append(e.toks, token(c))
	}
}

func (e *Editor) editDone(ed *Edit) {
	e.shifts = append(e.shifts, e.shift(e.next)+len(ed.Text)-(ed.End-ed.Start))
	e.next++
	e.inserted = false
}

// shift returns the number of bytes that the first n edits add to the text.
func (e *Editor) shift(n int) int {
	if n == 0 {
		return 0
	}
	return e.shifts[n-1]
}

// remainingEdits applies the edits at the very end of the text.
func (e *Editor) remainingEdits() {
	for e.next < len(e.edits) {
		ed := &e.edits[e.next]
		if !e.inserted {
			e.insert(ed.Text)
		}
		e.editDone(ed)
	}
}

// moveMatch increases the distance of a match that refers to text before an edit. If an edit is inside the copied
// bytes, or the new distance exceeds the window, it writes literals instead of the match.
func (e *Editor) moveMatch(t token, pos int) {
	n, dist := t.length(), t.dist()
	from := pos - dist
	to := from + min(n, dist) // a match may copy bytes that the match itself has produced
	before := sort.Search(e.next, func(i int) bool { return e.edits[i].End > from })
	intact := before == e.next || e.edits[before].Start >= to
	if d := dist + e.shift(e.next) - e.shift(before); intact && d <= e.window {
		e.toks = append(e.toks, match(n, d))
		return
	}
	for i := range n {
		e.toks = append(e.toks, token(e.text[from+i%dist]))
	}
}
