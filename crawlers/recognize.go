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
	// Token is the text to look for. Token may contain spaces, slashes and dots. [CheckPattern] checks its syntax.
	Token string
	Index int // the result if the token is found
}

// Recognizer finds tokens in User-Agent headers. A Recognizer is immutable and safe for concurrent use. The zero value
// does not find any tokens.
//
// A token is found in any letter case if all of these conditions are true:
//   - The token follows the start of the header, white space, or one of ( ) ; , + : = " ' [ { < *. A token that begins
//     with a letter may also follow a product name and a slash, as in Mozilla/GPTBot.
//   - The token is followed by the end of the header, white space, one of ( ) ; , + / : = " ' ] > } < *, or a hyphen or
//     underscore and a version, as in GPTBot-1.2. If the first word of the token has four letters or more, a version
//     may also follow without a hyphen, as in GPTBot1.2. If the token is between "[" and a slash, a version must follow
//     the slash, because [Pinterest/iOS] is a browser.
//   - The token does not begin inside a URL. A URL extends from :// to white space or to one of ) ; , ' " < >.
//   - The token does not follow one of the words "like", "with" and "following", as in "(like Googlebot)". In such a
//     header, the token is not the name of the sender.
//   - The token is not the name of an app at the start of the header. Apple's systems write such headers: "IFTTT/1.0
//     CFNetwork/1496.0.7 Darwin/23.5.0".
//
// If a header has characters outside ASCII, the Recognizer also replaces look-alike characters by ASCII letters and
// searches the result.
//
// A pattern may end in a hyphen, underscore or dot and a star. Such a pattern finds all names that an operator derives
// from one name: SemrushBot-* finds SemrushBot-XY, but neither SemrushBot nor SemrushBotXY. If another pattern equals
// the complete name, that pattern takes precedence.
//
// RFC 9309 section 2.2.1 only requires that the token is a substring of the User-Agent. But a search for substrings
// would find the token "Code" in the User-Agents of all browsers on some devices. It would also find every crawler that
// is mentioned in a URL.
//
// The search time depends on the length of the header, but not on the number of tokens. The methods do not allocate
// memory for an ASCII header.
type Recognizer struct {
	groups     map[string]group // key: the token's first word in lower case
	filter     []uint64         // the set of the keys of the first words
	shift      uint32           // the number of bits by which a key is shifted for filter
	lengths    [256]uint64      // for the upper 8 bits of each key, the set of the lengths of first words, modulo 64
	short      [256]bool        // first letters of first words with fewer than four letters
	shortWords [16]uint64       // the set of the shortKeys of first words with fewer than four letters
	derived    bool             // true if a pattern ends in a star
}

// group holds the tokens that begin with the same word.
type group []tail

// tail is the part of a token after its first word, in lower case. The tails of a group are sorted.
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

// sorted sorts the tails of g by their text, and returns them. It keeps only the first of several equal tails.
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

// longest returns the Index and the length of the longest token in ua. The length is 0 if ua has no token. foreign
// reports whether ua has characters outside ASCII.
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
// begin, and returns the extended slice. RecognizeEach skips tokens inside longer tokens, and each Index that is
// already in dst. For ASCII lines, it allocates memory only if dst is too small.
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

// at returns the Index and the length of the longest token that begins at ua[i]. The length is 0 if no token begins at
// this position.
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

// admit adds the first word of a token to the filters that the methods next and find use. word is in lower case.
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

// isOther is a fast check. If it returns true, no token can begin at ua[i]. If it returns false, a token may begin
// there.
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

// shorter returns a position inside the word ua[i:end] where the first word of a token may end. The rest of the word
// must then be a version, as in GPTBot-1.2, or the rest of a derived name, as in SemrushBot-XY. shorter returns the
// last such position, or i if there is none.
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

// isDerived reports whether a pattern ends in a star and therefore matches derived names.
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

// longest looks at ua[i:] for the tails of the group, which are the rests of tokens with the same first word. It
// returns the index of the longest tail that it finds, and the length of this tail. The first word starts at ua[begin].
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

// narrow returns the tails whose byte at position d is c. All tails of g must be longer than d bytes and must have the
// same first d bytes.
func (g group) narrow(d int, c byte) group {
	lo := sort.Search(len(g), func(k int) bool { return g[k].text[d] >= c })
	n := sort.Search(len(g)-lo, func(k int) bool { return g[lo+k].text[d] > c })
	return g[lo : lo+n]
}

// ends reports whether the token ua[begin:i] ends at a word boundary.
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

// comparisons are words that precede the name of a program other than the sender.
var comparisons = [...]string{"like", "with", "following"}

// compared reports whether one of the comparisons precedes ua[i].
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
