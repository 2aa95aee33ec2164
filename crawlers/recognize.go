// SPDX-License-Identifier: Apache-2.0

package crawlers

import (
	"slices"
	"sort"
	"strings"
)

// Pattern is a string to look for in a User-Agent header.
type Pattern struct {
	// Token is what to look for. It may hold spaces, slashes and dots; see
	// [CheckPattern].
	Token string
	// Index is what to answer when it is found.
	Index int
}

// Recognizer finds tokens in User-Agent headers. It is immutable and safe for
// concurrent use; the zero value finds nothing.
//
// A token is found, whatever its letter case, where
//   - the start of the header, white space or one of ( ) ; , + stands before it,
//   - the end of the header, white space or one of ( ) ; , + / stands after it,
//   - it does not begin inside a URL: from :// to white space or one of
//     ) ; , ' " < >
//   - none of the words like, with and following and a space stands before it,
//     as in "(like Googlebot)": such a header says that its sender is another.
//
// RFC 9309 §2.2.1 only asks for a substring of the User-Agent. That finds Code
// in every browser on some devices, and every crawler that a URL mentions.
//
// The time depends on the header's length, not on the number of tokens, and no
// method allocates.
type Recognizer struct {
	groups  map[string]group // by the token's first word, in lower case
	filter  []uint64         // set of the keys of the first words
	shift   uint32           // of the filter's keys
	lengths [256]uint64      // sets of lengths of first words, modulo 64, by key
	short   [256]bool        // first letters of first words of under four letters
}

// group holds the tokens that share their first word.
type group []tail

// tail is what follows the first word, in lower case. A group is sorted by it.
type tail struct {
	text    string
	indices []int // of the patterns, in the order given
}

// NewRecognizer returns a recogniser of patterns. Where two patterns have the
// same token, the first one's Index is the answer of [Recognizer.Recognize]. A
// pattern that [CheckPattern] refuses is never found.
func NewRecognizer(patterns []Pattern) *Recognizer {
	r := &Recognizer{groups: make(map[string]group, len(patterns))}
	for _, p := range patterns {
		if CheckPattern(p.Token) != nil {
			continue
		}
		token := foldString(p.Token)
		end := wordEnd(token, 0)
		r.groups[token[:end]] = append(r.groups[token[:end]], tail{token[end:], []int{p.Index}})
	}
	words, bits := 64, 12
	for words < len(r.groups) {
		words *= 2
		bits++
	}
	r.filter, r.shift = make([]uint64, words), uint32(32-bits)
	for first, g := range r.groups {
		r.groups[first] = g.sorted()
		r.admit(first)
	}
	return r
}

// sorted returns the group in order, with the indices of equal tails together.
func (g group) sorted() group {
	slices.SortStableFunc(g, func(a, b tail) int { return strings.Compare(a.text, b.text) })
	merged := g[:1]
	for _, t := range g[1:] {
		if last := &merged[len(merged)-1]; last.text == t.text {
			last.indices = append(last.indices, t.indices...)
		} else {
			merged = append(merged, t)
		}
	}
	return slices.Clip(merged)
}

// Recognize returns the Index of the longest token in ua, of equally long ones
// the one that begins first, and whether there is any.
func (r *Recognizer) Recognize(ua string) (index int, ok bool) {
	index, n := r.longest(ua)
	return index, n > 0
}

// RecognizeAll is [Recognizer.Recognize] over several User-Agent header lines.
// No token reaches from one line into the next.
func (r *Recognizer) RecognizeAll(uas []string) (index int, ok bool) {
	best := 0
	for _, ua := range uas {
		if i, n := r.longest(ua); n > best {
			index, best = i, n
		}
	}
	return index, best > 0
}

// RecognizeMany appends to dst the Index of every token in ua, those within
// longer ones too, in the order in which they begin, and returns the extended
// slice. An Index that dst holds already is not appended again. It allocates
// only when dst is too small.
func (r *Recognizer) RecognizeMany(dst []int, ua string) []int {
	var s scanner
	for i := 0; i < len(ua); i = r.next(ua, &s) {
		if g, end := r.find(ua, i); g != nil {
			dst = g.all(dst, ua, end)
		}
	}
	return dst
}

func (r *Recognizer) longest(ua string) (index, length int) {
	var s scanner
	for i := 0; i < len(ua); i = r.next(ua, &s) {
		g, end := r.find(ua, i)
		if g == nil {
			continue
		}
		if k, n, ok := g.longest(ua, end); ok && end-i+n > length {
			index, length = k, end-i+n
		}
	}
	return index, length
}

// admit makes next and find let a first word, in lower case, pass.
func (r *Recognizer) admit(word string) {
	if c := word[0]; len(word) < 4 {
		r.short[c] = true
		if 'a' <= c && c <= 'z' {
			r.short[c-'a'+'A'] = true
		}
		return
	}
	k := key(word)
	r.filter[k>>r.shift/64] |= 1 << (k >> r.shift % 64)
	r.lengths[k>>24] |= 1 << (len(word) % 64)
}

// find returns the tokens whose first word stands at i, and that word's end.
func (r *Recognizer) find(ua string, i int) (g group, end int) {
	end = wordEnd(ua, i)
	word := ua[i:end]
	if len(word) > MaxPattern || len(word) >= 4 && r.lengths[key(word)>>24]>>(len(word)%64)&1 == 0 {
		return nil, end
	}
	var lower [MaxPattern]byte
	for i := range len(word) {
		lower[i] = fold[word[i]]
	}
	if g = r.groups[string(lower[:len(word)])]; g == nil || compared(ua, i) {
		return nil, end
	}
	return g, end
}

// longest returns the first index and the length of the longest tail that ua
// has at i.
func (g group) longest(ua string, i int) (index, length int, ok bool) {
	for d := 0; len(g) > 0; d++ {
		if len(g[0].text) == d {
			if endsToken(ua, i+d) {
				index, length, ok = g[0].indices[0], d, true
			}
			g = g[1:]
		}
		if i+d >= len(ua) {
			break
		}
		g = g.narrow(d, fold[ua[i+d]])
	}
	return index, length, ok
}

// all appends the indices of all tails that ua has at i.
func (g group) all(dst []int, ua string, i int) []int {
	for d := 0; len(g) > 0; d++ {
		if len(g[0].text) == d {
			if endsToken(ua, i+d) {
				for _, index := range g[0].indices {
					if !slices.Contains(dst, index) {
						dst = append(dst, index)
					}
				}
			}
			g = g[1:]
		}
		if i+d >= len(ua) {
			break
		}
		g = g.narrow(d, fold[ua[i+d]])
	}
	return dst
}

// narrow returns the tails that have c at d. All are longer than d and alike up
// to d.
func (g group) narrow(d int, c byte) group {
	lo := sort.Search(len(g), func(k int) bool { return g[k].text[d] >= c })
	n := sort.Search(len(g)-lo, func(k int) bool { return g[lo+k].text[d] > c })
	return g[lo : lo+n]
}

func endsToken(ua string, i int) bool { return i == len(ua) || class[ua[i]]&isAfter != 0 }

// comparisons are the words after which a header names somebody else.
var comparisons = [...]string{"like ", "with ", "following "}

// compared reports whether a word of comparison stands before i.
func compared(ua string, i int) bool {
	for _, word := range comparisons {
		if j := i - len(word); j >= 0 && equalFold(ua[j:i], word) {
			return j == 0 || class[ua[j-1]]&isWord == 0
		}
	}
	return false
}

func equalFold(s, lower string) bool {
	for i := range len(lower) {
		if fold[s[i]] != lower[i] {
			return false
		}
	}
	return true
}

func foldString(s string) string {
	b := []byte(s)
	for i, c := range b {
		b[i] = fold[c]
	}
	return string(b)
}
