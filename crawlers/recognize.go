// SPDX-License-Identifier: Apache-2.0

package crawlers

import (
	"slices"
	"sort"
	"strings"

	"github.com/robotspolicy/caddy-robots-policy/internal/leaf/ascii"
)

// Pattern is a string to look for in a User-Agent header.
type Pattern struct {
	// Token is the text to look for. It may have spaces, slashes and dots; see [CheckPattern].
	Token string
	Index int // the result if the token is found
}

// Recognizer finds tokens in User-Agent headers. It is immutable and safe for concurrent use; the zero value finds
// nothing.
//
// A token is found in any letter case, if all of this is true:
//   - Before it is the start of the header, white space, one of ( ) ; , + : = " ' [ { < *, or a slash after a product
//     name if the token begins with a letter, as in Mozilla/GPTBot.
//   - After it is the end of the header, white space, one of ( ) ; , + / : = " ' ] > } < *, or a hyphen or underscore
//     with a version, as in GPTBot-1.2. After a first word of four letters or more, a version may also follow
//     directly, as in GPTBot1.2. If the token comes after a "[", a slash after it must be followed by a version,
//     because [Pinterest/iOS] is a browser.
//   - It does not begin inside a URL, which extends from :// to white space or one of ) ; , ' " < >.
//   - None of the words like, with and following comes before it, as in "(like Googlebot)". Such a header names
//     another program than its sender.
//   - It is not the name of an app at the start of the header, as Apple's systems write it:
//     "IFTTT/1.0 CFNetwork/1496.0.7 Darwin/23.5.0".
//
// A header with characters outside ASCII is also searched in the form in which a person would read it.
//
// A pattern may end in a hyphen, underscore or dot and a star. It finds names that an operator derives from one
// name: SemrushBot-* finds SemrushBot-XY, but neither SemrushBot nor SemrushBotXY. A pattern with the complete name
// takes precedence.
//
// RFC 9309 section 2.2.1 only requires that the token is a substring of the User-Agent. A search for substrings
// would find Code in every browser on some devices, and every crawler that a URL mentions.
//
// The time depends on the length of the header, and not on the number of tokens. No method allocates memory for a
// header in ASCII.
type Recognizer struct {
	groups     map[string]group // key: the token's first word in lower case
	filter     []uint64         // set of the keys of the first words
	shift      uint32           // of the filter's keys
	lengths    [256]uint64      // sets of lengths of first words, modulo 64, by key
	short      [256]bool        // first letters of first words with fewer than four letters
	shortWords [16]uint64       // the set of the shortKeys of these words
	derived    bool             // some pattern ends in a star
}

// group holds the tokens that share their first word.
type group []tail

// tail is the text after the first word, in lower case. A group is sorted by it.
type tail struct {
	text    string
	derived bool // the pattern ends in a star
	index   int  // index of the pattern
}

// NewRecognizer returns a recognizer of patterns. If two patterns have the same token, the first one is used. A
// pattern that [CheckPattern] rejects is never found.
func NewRecognizer(patterns []Pattern) *Recognizer {
	r := &Recognizer{groups: make(map[string]group, len(patterns))}
	for _, p := range patterns {
		if CheckPattern(p.Token) != nil {
			continue
		}
		token, derived := ascii.Lower(p.Token), isDerived(p.Token)
		end := wordEnd(token, 0)
		if derived {
			r.derived = true
			token = strings.TrimSuffix(token, "*")
			end = min(end, len(token)-1)
		}
		r.groups[token[:end]] = append(r.groups[token[:end]], tail{token[end:], derived, p.Index})
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

// sorted returns the group in order. If tails are equal, it keeps only the first.
func (g group) sorted() group {
	slices.SortStableFunc(g, func(a, b tail) int {
		if c := strings.Compare(a.text, b.text); c != 0 || a.derived == b.derived {
			return c
		}
		if a.derived {
			return 1
		}
		return -1
	})
	return slices.Clip(slices.CompactFunc(g, func(a, b tail) bool { return a.text == b.text && a.derived == b.derived }))
}

// Recognize returns the Index of the longest token in ua. If several tokens are equally long, it returns the one
// that begins first. ok is false if there is no token.
func (r *Recognizer) Recognize(ua string) (index int, ok bool) {
	index, length, foreign := r.longest(ua)
	if foreign {
		if k, n, _ := r.longest(plain(ua)); n > length {
			index, length = k, n
		}
	}
	return index, length > 0
}

// longest returns the Index and the length of the longest token. The length is 0 if there is none. foreign reports
// whether ua has characters outside ASCII.
func (r *Recognizer) longest(ua string) (index, length int, foreign bool) {
	var s scanner
	for i := 0; i < len(ua); i = r.next(ua, &s) {
		if k, n := r.at(ua, i); n > length {
			index, length = k, n
		}
	}
	return index, length, s.foreign()
}

// RecognizeEach appends to dst the Index of every token in the User-Agent lines, in the order in which the tokens
// begin, and returns the extended slice. It leaves out tokens within longer tokens, and an Index that dst already
// has. It allocates only if dst is too small.
func (r *Recognizer) RecognizeEach(dst []int, uas []string) []int {
	for _, ua := range uas {
		var foreign bool
		if dst, foreign = r.each(dst, ua); foreign {
			dst, _ = r.each(dst, plain(ua))
		}
	}
	return dst
}

func (r *Recognizer) each(dst []int, ua string) (_ []int, foreign bool) {
	var s scanner
	covered := 0
	for i := 0; i < len(ua); i = r.next(ua, &s) {
		if index, n := r.at(ua, i); n > 0 && i+n > covered {
			covered = i + n
			if !slices.Contains(dst, index) {
				dst = append(dst, index)
			}
		}
	}
	return dst, s.foreign()
}

// at returns the Index and the length of the longest token that begins at i. The length is 0 if there is none.
func (r *Recognizer) at(ua string, i int) (index, length int) {
	if r.isOther(ua, i) {
		return 0, 0
	}
	for k := wordEnd(ua, i); k > i; k = r.shorter(ua, i, k) {
		if g := r.find(ua, i, k); g != nil {
			if index, n, ok := g.longest(ua, i, k); ok {
				return index, k - i + n
			}
		}
	}
	return 0, 0
}

// admit adds a first word, in lower case, to the filters of next and find.
func (r *Recognizer) admit(word string) {
	if c := word[0]; len(word) < 4 {
		k := shortKey(word)
		r.shortWords[k/64] |= 1 << (k % 64)
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

// isOther reports whether it is certain that no token begins at i.
func (r *Recognizer) isOther(ua string, i int) bool {
	return i+4 <= len(ua) && !r.mayBeShort(ua, i) && r.lengths[key(ua[i:])>>24] == 0
}

// find returns the tokens whose first word is ua[i:end].
func (r *Recognizer) find(ua string, i, end int) group {
	word := ua[i:end]
	if len(word) > maxPattern || len(word) >= 4 && r.lengths[key(word)>>24]>>(len(word)%64)&1 == 0 {
		return nil
	}
	var lower [maxPattern]byte
	for i := range len(word) {
		lower[i] = fold[word[i]]
	}
	g := r.groups[string(lower[:len(word)])]
	if g == nil || compared(ua, i) || i == 0 && isAppName(ua) {
		return nil
	}
	return g
}

// shorter returns the last place before end at which the word at i may end, because a version or the rest of a
// derived name begins there. It returns i if there is none.
func (r *Recognizer) shorter(ua string, i, end int) int {
	if k := bareVersion(ua, end); k < end && k >= i+4 {
		return k
	}
	for end--; end > i; end-- {
		if c := ua[end]; (c == '-' || c == '_') && (r.derived || isVersion(ua, end)) {
			return end
		}
	}
	return i
}

// isDerived reports whether a pattern ends in a star, and so stands for derived names.
func isDerived(pattern string) bool {
	n := len(pattern)
	return n > 2 && pattern[n-1] == '*' && strings.IndexByte("-_.", pattern[n-2]) >= 0 && class[pattern[n-3]]&isWord != 0
}

func (t *tail) foundAt(ua string, begin, i int) bool {
	if t.derived {
		return i < len(ua) && class[ua[i]]&isWord != 0
	}
	return ends(ua, begin, i)
}

// isVersion reports whether a hyphen or underscore at i begins a version, such as -1.2 or _v3.
func isVersion(ua string, i int) bool {
	if ua[i] != '-' && ua[i] != '_' || i+1 == len(ua) {
		return false
	}
	if i++; fold[ua[i]] == 'v' && i+1 < len(ua) {
		i++
	}
	return '0' <= ua[i] && ua[i] <= '9'
}

// longest returns the index and the length of the longest tail at i in ua. The token begins at begin.
func (g group) longest(ua string, begin, i int) (index, length int, ok bool) {
	for d := 0; len(g) > 0; d++ {
		for len(g) > 0 && len(g[0].text) == d {
			if g[0].foundAt(ua, begin, i+d) {
				index, length, ok = g[0].index, d, true
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

// narrow returns the tails whose byte at d is c. All tails of g must be longer than d and equal before d.
func (g group) narrow(d int, c byte) group {
	lo := sort.Search(len(g), func(k int) bool { return g[k].text[d] >= c })
	n := sort.Search(len(g)-lo, func(k int) bool { return g[lo+k].text[d] > c })
	return g[lo : lo+n]
}

// ends reports whether a token from begin to i is a complete word.
func ends(ua string, begin, i int) bool {
	if i == len(ua) {
		return true
	}
	switch c := ua[i]; {
	case c == ':':
		return !strings.HasPrefix(ua[i:], "://")
	case c == '/' && begin > 0 && ua[begin-1] == '[':
		return i+1 < len(ua) && '0' <= ua[i+1] && ua[i+1] <= '9'
	case class[c]&isAfter != 0:
		return true
	}
	return isVersion(ua, i) || beginsVersion(ua, i)
}

// comparisons are the words after which a User-Agent names another program.
var comparisons = [...]string{"like", "with", "following"}

// compared reports whether one of the comparisons comes before i.
func compared(ua string, i int) bool {
	for i > 0 && class[ua[i-1]]&isOpening != 0 {
		i--
	}
	if i == 0 || ua[i-1] != ' ' && ua[i-1] != ':' && ua[i-1] != '=' && ua[i-1] != '/' {
		return false
	}
	i--
	for _, word := range comparisons {
		if j := i - len(word); j >= 0 && ascii.EqualFold(ua[j:i], word) {
			return j == 0 || class[ua[j-1]]&isWord == 0
		}
	}
	return false
}
