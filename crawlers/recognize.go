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
	groups map[string]group // by the token's first word, in lower case
	filter []uint64         // bit set of firstWordKey
	shift  uint             // of the filter's hash
}

// group holds the tokens that share their first word.
type group []tail

// tail is what follows the first word, in lower case. A group is sorted by it.
type tail struct {
	text    string
	indices []int // of the patterns, in the order given
}

// NewRecognizer returns a recogniser of patterns. Where two patterns have the same token,
// the first one's Index is the answer of [Recognizer.Recognize]. A pattern that
// [CheckPattern] refuses is never found.
func NewRecognizer(patterns []Pattern) *Recognizer {
	r := &Recognizer{groups: make(map[string]group, len(patterns))}
	for _, p := range patterns {
		if CheckPattern(p.Token) != nil {
			continue
		}
		token := foldString(p.Token)
		first, rest := token[:wordEnd(token, 0)], token[wordEnd(token, 0):]
		r.groups[first] = r.groups[first].add(rest, p.Index)
	}
	words, bits := 64, uint(12)
	for words < len(r.groups) {
		words *= 2
		bits++
	}
	r.filter, r.shift = make([]uint64, words), 32-bits
	for first := range r.groups {
		key := firstWordKey(first[0], first[len(first)-1], len(first)) >> r.shift
		r.filter[key/64] |= 1 << (key % 64)
	}
	return r
}

func (g group) add(text string, index int) group {
	i, ok := slices.BinarySearchFunc(g, text, func(t tail, s string) int { return strings.Compare(t.text, s) })
	if !ok {
		g = slices.Insert(g, i, tail{text: text})
	}
	g[i].indices = append(g[i].indices, index)
	return g
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
// longer ones too, in the order in which they begin, and returns the extended slice. An Index that dst
// holds already is not appended again. It allocates only when dst is too small.
func (r *Recognizer) RecognizeMany(dst []int, ua string) []int {
	for start, end := r.next(ua, 0); start >= 0; start, end = r.next(ua, skip(ua, end)) {
		if g := r.find(ua[start:end]); g != nil && !afterLike(ua, start) {
			dst = g.all(dst, ua, end)
		}
	}
	return dst
}

func (r *Recognizer) longest(ua string) (index, length int) {
	for start, end := r.next(ua, 0); start >= 0; start, end = r.next(ua, skip(ua, end)) {
		g := r.find(ua[start:end])
		if g == nil || afterLike(ua, start) {
			continue
		}
		if i, n, ok := g.longest(ua, end); ok && end-start+n > length {
			index, length = i, end-start+n
		}
	}
	return index, length
}

// next returns the next word at or after i that may be the first word of a
// token, or -1. A token may begin at i.
func (r *Recognizer) next(ua string, i int) (start, end int) {
	if len(r.filter) == 0 {
		return -1, -1
	}
	for i < len(ua) {
		if class[ua[i]]&isWord == 0 {
			i = skip(ua, i)
			continue
		}
		j := wordEnd(ua, i+1)
		key := firstWordKey(fold[ua[i]], fold[ua[j-1]], j-i) >> r.shift
		if r.filter[key/64]&(1<<(key%64)) != 0 {
			return i, j
		}
		i = skip(ua, j)
	}
	return -1, -1
}

// skip returns the next position after i at which a token may begin.
func skip(ua string, i int) int {
	for i < len(ua) {
		switch c := class[ua[i]]; {
		case c&isBefore != 0:
			return i + 1
		case c == isColon && strings.HasPrefix(ua[i:], "://"):
			for i += len("://"); i < len(ua) && class[ua[i]]&isURLEnd == 0; i++ {
			}
		default:
			i++
		}
	}
	return i
}

// wordEnd returns the end of the word that reaches to i.
func wordEnd(s string, i int) int {
	for i < len(s) && class[s[i]]&isWord != 0 {
		i++
	}
	return i
}

// firstWordKey mixes what is known of a word before all of it is read. Its
// upper bits are the good ones.
func firstWordKey(first, last byte, n int) uint32 {
	return (uint32(first) | uint32(last)<<8 | uint32(n)<<16) * 0x9e3779b1
}

// find returns the tokens whose first word is word.
func (r *Recognizer) find(word string) group {
	if len(word) > MaxPattern {
		return nil
	}
	var buf [MaxPattern]byte
	for i := range len(word) {
		buf[i] = fold[word[i]]
	}
	return r.groups[string(buf[:len(word)])]
}

// longest returns the first index and the length of the longest tail that ua has at i.
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

// narrow returns the tails that have c at d. All are longer than d and alike up to d.
func (g group) narrow(d int, c byte) group {
	lo := sort.Search(len(g), func(k int) bool { return g[k].text[d] >= c })
	n := sort.Search(len(g)-lo, func(k int) bool { return g[lo+k].text[d] > c })
	return g[lo : lo+n]
}

func endsToken(ua string, i int) bool { return i == len(ua) || class[ua[i]]&isAfter != 0 }

// comparisons are the words after which a header names somebody else.
var comparisons = [...]string{"like ", "with ", "following "}

// afterLike reports whether a word of comparison stands before i.
func afterLike(ua string, i int) bool {
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
