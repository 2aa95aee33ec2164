// SPDX-License-Identifier: Apache-2.0

// Package robotsrule provides sets of robots control rules, such as noindex, nosnippet and max-snippet. It parses and
// writes these rules, and combines sets to the most restrictive set.
//
// "Robots control rules" is the term of the IANA registry in draft-illyes-repext-03. The draft defines only noindex
// and nosnippet, which are combined by "union". The package also knows the rules that search engines document for
// robots meta tags and X-Robots-Tag. Where the package combines rules more strictly than an engine, a comment points
// it out.
package robotsrule

import (
	"slices"
	"strings"
	"time"

	"github.com/robotspolicy/caddy-robots-policy/internal/leaf/ascii"
)

// Set is a set of robots control rules for one audience. The zero value is the empty set. Two sets with the
// same meaning are equal under ==, so a Set can be a map key. A Set is immutable.
type Set struct {
	flags   uint16
	index   uint8
	sizes   [numSizes]int64 // the limits of the rules in sizeNames, as returned by the function limit
	expires int64           // Unix seconds plus one; 0 means no date
	other   string          // permissive and unknown words, sorted, without duplicates, separated by newlines
}

// Restrictive rules without a value, in the order in which they are written. noindex is not among them, because
// indexifembedded weakens it.
const (
	nofollow uint16 = 1 << iota
	nosnippet
	noarchive
	nocache
	notranslate
	noimageindex
	noodp
	numFlags = iota
)

var flagNames = [numFlags]string{"nofollow", "nosnippet", "noarchive", "nocache", "notranslate", "noimageindex", "noodp"}

// The values of Set.index, from the least to the most strict. An indexifembedded without noindex has no effect, but it
// is kept, because the page may have the noindex in another meta tag or header.
const (
	indexUnsaid uint8 = iota
	embeddedOnlyWord
	noindexEmbedded
	noindexPlain
)

// The rules that limit a size, in the order in which they are written.
const (
	snippet = iota
	image
	video
	numSizes
)

var sizeNames = [numSizes]string{"max-snippet", "max-image-preview", "max-video-preview"}

// imageNames has the values of max-image-preview. The index of a value is its limit in Set.sizes: "none" is the number
// 0, "standard" is the number 1, and "large" means that there is no limit.
var imageNames = [...]string{limitUnlimited: "large", limitZero: "none", limitZero + 1: "standard"}

// Values of the elements of Set.sizes, which each belong to one rule, such as max-snippet. If the set does not have the
// rule, the value is 0. If the rule has the number -1 ("no limit"), it is 1. For other numbers, it is the number plus
// 2.
const (
	limitUnsaid    = 0
	limitUnlimited = 1
	limitZero      = 2
	// maxNumber is the largest Integer of RFC 9651 section 3.3.1. Larger numbers are replaced with this number.
	maxNumber = 999_999_999_999_999
)

// maxDate is the last second of the year 9999 as a Unix time. Headers and meta tags cannot express later years.
const maxDate = 253402300799

func limit(n int64) int64 {
	switch {
	case n < 0:
		return limitUnlimited
	case n > maxNumber:
		n = maxNumber
	}
	return n + limitZero
}

func stricterLimit(a, b int64) int64 {
	if a < limitZero || b < limitZero {
		return max(a, b)
	}
	return min(a, b)
}

// Union returns the most restrictive combination of s and t. It is commutative, associative and idempotent.
//
// For max-snippet and max-video-preview, the smaller number applies; -1 means "no limit", and a max-snippet of 0 is
// nosnippet. For max-image-preview, "none" is stricter than "standard", and "standard" is stricter than "large". For
// unavailable_after, the earlier date applies. indexifembedded is kept only if neither s nor t has a noindex without
// it. noarchive replaces nocache, because Bing reads both together as nocache, which is weaker. A permissive word is
// dropped if the set has its contrary, and "all" is dropped if the set has any restriction. Unknown rules and
// malformed values are kept.
func (s Set) Union(t Set) Set {
	if s == t || t == (Set{}) {
		return s
	}
	s.flags |= t.flags
	s.index = max(s.index, t.index)
	for i := range s.sizes {
		s.sizes[i] = stricterLimit(s.sizes[i], t.sizes[i])
	}
	if s.expires == 0 || t.expires != 0 && t.expires < s.expires {
		s.expires = t.expires
	}
	s.other = mergeWords(s.other, t.other)
	return s.canonical()
}

// UnionAll returns the Union of all sets. Each Union copies the unknown rules of both sets. So UnionAll combines the
// sets in halves, because adding one set after the other would copy the rules of the first sets many times.
func UnionAll(sets []Set) Set {
	switch n := len(sets); n {
	case 0:
		return Set{}
	case 1:
		return sets[0]
	default:
		return UnionAll(sets[:n/2]).Union(UnionAll(sets[n/2:]))
	}
}

// canonical removes rules that have no effect because s also has a stricter rule. A rule that canonical removes from s
// is also removed from every Union of s with another set. For this reason, Union is associative.
func (s Set) canonical() Set {
	if s.sizes[snippet] == limitZero {
		s.flags |= nosnippet
	}
	if s.flags&nosnippet != 0 {
		s.sizes[snippet] = limitUnsaid
	}
	if s.flags&noarchive != 0 {
		s.flags &^= nocache
	}
	if s.index == noindexEmbedded && s.mayNoindex() {
		s.index = noindexPlain
	}
	words := s.words()
	return s.drop(func(w string) bool { return s.contradicts(w, words) })
}

// mayNoindex reports whether the unknown rules contain a word that a reader might understand as a noindex without
// indexifembedded.
func (s Set) mayNoindex() bool {
	return strings.Contains(s.other, "noindex") || strings.Contains(s.other, "none")
}

// PlainNoindex reports whether s has a noindex without indexifembedded, or an unknown word that a reader might
// understand as such a noindex.
func (s Set) PlainNoindex() bool { return s.index == noindexPlain || s.mayNoindex() }

// contradicts reports whether w, one of the sorted words, has no effect in s. This is the case for a permissive word if
// s has the opposite rule, and for a name without a value if s has the rule with a value. A malformed value is kept
// next to a valid one, because a reader may understand it.
func (s Set) contradicts(w string, words []string) bool {
	name, valued := wordName(w)
	switch {
	case valued || strings.HasPrefix(name, "no"):
		return false
	case takesValue(name):
		return s.hasValue(name) || name == "max-snippet" && s.flags&nosnippet != 0
	case name == "all":
		return s.restricts(words)
	}
	if name == "cache" && s.flags&noarchive != 0 {
		return true
	}
	return s.hasBare("no"+name, words)
}

func (s Set) restricts(words []string) bool {
	return s.flags != 0 || s.index >= noindexEmbedded || slices.Max(s.sizes[:]) >= limitZero || s.expires != 0 ||
		slices.ContainsFunc(words, func(w string) bool { return strings.HasPrefix(w, "no") })
}

func (s Set) hasBare(name string, words []string) bool {
	_, found := slices.BinarySearch(words, name)
	return found || s.hasFlag(name)
}

func (s Set) hasFlag(name string) bool {
	if name == "noindex" {
		return s.index >= noindexEmbedded
	}
	i := slices.Index(flagNames[:], name)
	return i >= 0 && s.flags&(1<<i) != 0
}

// Equal reports whether s and t have the same meaning. Order, case and spelling do not matter.
func (s Set) Equal(t Set) bool { return s == t }

// IsEmpty reports whether s has no rules. A set with a permissive word, such as "all", is not empty.
func (s Set) IsEmpty() bool { return s == Set{} }

// Has reports whether s has the rule with this name (in lowercase), with any value. The rule "none" is stored as
// noindex and nofollow, and a max-snippet of 0 as nosnippet.
func (s Set) Has(name string) bool {
	switch name {
	case "none":
		return s.index >= noindexEmbedded && s.flags&nofollow != 0
	case "indexifembedded":
		return s.index == embeddedOnlyWord || s.index == noindexEmbedded
	}
	return s.hasValue(name) || s.hasFlag(name) || slices.ContainsFunc(s.words(), func(w string) bool {
		n, _ := wordName(w)
		return n == name
	})
}

func (s Set) hasValue(name string) bool {
	i := slices.Index(sizeNames[:], name)
	return i >= 0 && s.sizes[i] != limitUnsaid || name == "unavailable_after" && s.expires != 0
}

// UnavailableAfter returns the last second, in UTC, at which the page may be shown. The second result is false if there
// is no limit.
func (s Set) UnavailableAfter() (time.Time, bool) {
	if s.expires == 0 {
		return time.Time{}, false
	}
	return time.Unix(s.expires-1, 0).UTC(), true
}

// Expired returns s as it applies at the time now. If the second of unavailable_after is over, that rule is
// replaced by noindex, which engines that do not support the date obey as well.
func (s Set) Expired(now time.Time) Set {
	if s.expires == 0 || now.Unix() < s.expires {
		return s
	}
	s.expires = 0
	s.index = noindexPlain
	return s.canonical()
}

// Of returns the set with the named rules, such as "noindex" or "max-snippet:20".
func Of(names ...string) Set { return Parse(strings.Join(names, ",")) }

// MaxSnippet returns the set with a max-snippet of n characters. -1 means no limit. 0 and all other negative
// numbers mean nosnippet.
func MaxSnippet(n int) Set {
	if n < -1 {
		n = 0
	}
	return Set{sizes: [numSizes]int64{snippet: limit(int64(n))}}.canonical()
}

// UnavailableAfter returns the set with an unavailable_after of t, in whole seconds between 1970 and 9999.
func UnavailableAfter(t time.Time) Set {
	return Set{expires: clampDate(t.Unix()) + 1}
}

// others lists names of rules that are in use although no engine documents them, and permissive opposites of known
// rules.
var others = []string{
	"archive", "cache", "imageindex", "noai", "noimageai", "nositelinkssearchbox", "noyaca", "noydir", "odp", "snippet", "translate",
}

// IsRule reports whether name is the name of a rule. It accepts rules that engines document, the names in the variable
// others, and all names that begin with max-. The case of name does not matter. In X-Robots-Tag, IsRule distinguishes a
// rule with a value ("unavailable_after: …") from a user agent ("examplebot: …").
func IsRule(name string) bool {
	name = ascii.Lower(name)
	return takesValue(name) || slices.Contains(others, name) ||
		slices.ContainsFunc(documented, func(d documentedRule) bool { return d.name == name })
}

// HasRule reports whether a list has at least one rule that IsRule accepts, with any value.
func HasRule(list string) bool {
	for list != "" {
		var e element
		if e, list = nextElement(list); IsRule(e.name) {
			return true
		}
	}
	return false
}

// Cut splits off the first rule of a list, in the same way as Parse. So it does not split at the commas in a date.
// rule and rest are parts of list, without the comma between them.
func Cut(list string) (rule, rest string) {
	_, rest = nextElement(list)
	rule = list[:len(list)-len(rest)]
	if rest != "" || strings.HasSuffix(list, ",") {
		rule = strings.TrimSuffix(rule, ",")
	}
	return rule, rest
}

// Restrictive returns s without words that only allow something, such as all, index, and an indexifembedded without
// noindex. These words only repeat the default, but some engines let them override a restriction in another field or
// tag.
func (s Set) Restrictive() Set {
	if s.index == embeddedOnlyWord {
		s.index = indexUnsaid
	}
	return s.drop(permissive)
}

// WithoutUnknown returns s without unknown rules and malformed values, which can make a set long.
func (s Set) WithoutUnknown() Set {
	return s.Without(func(string) bool { return true })
}

// Without returns s without the unknown rules and malformed values that drop returns true for. The argument of drop
// is "name", "name:value" or, for a parameter that cannot be written as "name:value", "name=item".
func (s Set) Without(drop func(rule string) bool) Set {
	return s.drop(func(w string) bool { return !permissive(w) && drop(w) })
}

// WithoutEmbedding returns s without indexifembedded.
func (s Set) WithoutEmbedding() Set {
	switch s.index {
	case embeddedOnlyWord:
		s.index = indexUnsaid
	case noindexEmbedded:
		s.index = noindexPlain
	}
	return s
}

// Beyond returns the rules of s that add something to t. If r is the result, the Union of r and t equals the Union of s
// and t, and r is the smallest set with this property.
func (s Set) Beyond(t Set) Set {
	d := s.Union(t)
	d.flags &^= t.flags
	if d.index == t.index {
		d.index = indexUnsaid
	}
	for i := range d.sizes {
		if d.sizes[i] == t.sizes[i] {
			d.sizes[i] = limitUnsaid
		}
	}
	if d.expires == t.expires {
		d.expires = 0
	}
	have := t.words()
	return d.drop(func(w string) bool {
		_, found := slices.BinarySearch(have, w)
		return found
	})
}

func (s Set) drop(which func(word string) bool) Set {
	s.other = strings.Join(slices.DeleteFunc(s.words(), which), "\n")
	return s
}
