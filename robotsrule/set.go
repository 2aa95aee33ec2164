// SPDX-License-Identifier: Apache-2.0

// Package robotsrule holds the robots control rules of one audience (noindex,
// nosnippet, max-snippet and so on) as one value, and combines two of them to
// the most restrictive.
//
// "Robots control rules" is the term of the IANA registry that
// draft-illyes-repext-03 sets up. The rules and their values are those that
// search engines document for robots meta elements and X-Robots-Tag; the draft
// itself defines only noindex and nosnippet and leaves the combination at
// "union". Where the engines' own ways of combining would relax a rule, the
// comments here say what is done instead.
package robotsrule

import (
	"slices"
	"strings"
	"time"
)

// Set is a set of robots control rules. The zero value is the empty set. Two
// sets are equal under == exactly when Equal says so, so a Set can be a map key.
// No method changes a Set.
type Set struct {
	flags   uint16
	index   uint8
	image   uint8
	snippet int64  // see limit
	video   int64  // see limit
	expires int64  // Unix seconds plus one; 0 is no date
	other   string // sorted, unique, separated by newlines
}

// The restrictive rules that are a bare name, in the order they are written in.
// noindex is apart because indexifembedded weakens it.
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

// What a set says of indexing, from the weakest to the strictest. An
// indexifembedded without noindex says nothing by itself; it stays because
// pages and headers spread the two over several elements.
const (
	indexUnsaid uint8 = iota
	embeddedOnlyWord
	noindexEmbedded
	noindexPlain
)

// max-image-preview, from the weakest to the strictest.
const (
	imageUnsaid uint8 = iota
	imageLarge
	imageStandard
	imageNone
)

var imageNames = [...]string{imageLarge: "large", imageStandard: "standard", imageNone: "none"}

// A limit is 0 where nothing is said, 1 for "no limit" (-1), else the number
// plus 2.
const (
	limitUnsaid    = 0
	limitUnlimited = 1
	limitZero      = 2
	// maxNumber is the largest Integer of RFC 9651 §3.3.1. A larger number is
	// read as this one, which is the stricter of the two.
	maxNumber = 999_999_999_999_999
)

// maxDate is the last second of the year 9999, the last that the header and
// meta spellings can write.
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

// Union gives the most restrictive combination of s and t. It is commutative,
// associative and idempotent.
//
// max-snippet and max-video-preview take the smaller number, where -1 is "no
// limit" and a max-snippet of 0 is nosnippet, which beats any max-snippet.
// max-image-preview takes none before standard before large. unavailable_after
// takes the earlier date. indexifembedded stays only where no noindex comes from
// a side without it. noarchive beats nocache, because Bing reads both together
// as nocache, the weaker. A permissive word (index, follow, archive, …) goes
// when its contrary is there, and all goes when anything is restricted. Rules
// that are unknown here all stay.
func (s Set) Union(t Set) Set {
	if s == t || t == (Set{}) {
		return s
	}
	s.flags |= t.flags
	s.index = max(s.index, t.index)
	s.image = max(s.image, t.image)
	s.snippet = stricterLimit(s.snippet, t.snippet)
	s.video = stricterLimit(s.video, t.video)
	if s.expires == 0 || t.expires != 0 && t.expires < s.expires {
		s.expires = t.expires
	}
	s.other = mergeWords(s.other, t.other)
	return s.canonical()
}

// canonical drops what a stricter rule of the same set makes idle. Each
// condition, once true, stays true under Union: that is what makes Union
// associative.
func (s Set) canonical() Set {
	if s.snippet == limitZero {
		s.flags |= nosnippet
	}
	if s.flags&nosnippet != 0 {
		s.snippet = limitUnsaid
	}
	if s.flags&noarchive != 0 {
		s.flags &^= nocache
	}
	words := s.words()
	return s.drop(func(w string) bool { return s.contradicts(w, words) })
}

// contradicts reports whether w, one of the sorted words, is a permissive word
// whose contrary s holds, or a malformed value of a rule that s has a value for.
func (s Set) contradicts(w string, words []string) bool {
	name, valued := wordName(w)
	switch name {
	case "max-snippet", "max-video-preview", "max-image-preview", "unavailable_after":
		return s.hasValue(name) || name == "max-snippet" && s.flags&nosnippet != 0
	case "all":
		return !valued && s.restricts(words)
	}
	if valued || strings.HasPrefix(name, "no") {
		return false
	}
	if name == "cache" && s.flags&noarchive != 0 {
		return true
	}
	return s.hasBare("no"+name, words)
}

// restricts reports whether anything in s contradicts the word all.
func (s Set) restricts(words []string) bool {
	if s.flags != 0 || s.index >= noindexEmbedded || s.image >= imageStandard ||
		s.snippet >= limitZero || s.video >= limitZero || s.expires != 0 {
		return true
	}
	for _, w := range words {
		if strings.HasPrefix(w, "no") {
			return true
		}
	}
	return false
}

// hasBare reports whether s, whose words are words, has the bare rule name.
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

// Equal reports whether s and t mean the same. The order, the case and the
// spelling in which the rules were given do not matter.
func (s Set) Equal(t Set) bool { return s == t }

// IsEmpty reports whether s says nothing at all. A set with only a permissive
// word, such as all, is not empty.
func (s Set) IsEmpty() bool { return s == Set{} }

// Has reports whether the rule called name (in lowercase) is in s, whatever its
// value. none is in s when noindex and nofollow are. A max-snippet of 0 is
// nosnippet, and nosnippet leaves no max-snippet beside it.
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

// hasValue reports whether s has a proper value of the rule called name.
func (s Set) hasValue(name string) bool {
	switch name {
	case "max-snippet":
		return s.snippet != limitUnsaid
	case "max-video-preview":
		return s.video != limitUnsaid
	case "max-image-preview":
		return s.image != imageUnsaid
	case "unavailable_after":
		return s.expires != 0
	}
	return false
}

// UnavailableAfter gives the last second at which the page may be shown, in
// UTC, and whether s has such a date.
func (s Set) UnavailableAfter() (time.Time, bool) {
	if s.expires == 0 {
		return time.Time{}, false
	}
	return time.Unix(s.expires-1, 0).UTC(), true
}

// Expired gives s as it is at the instant now: an unavailable_after that has
// passed is replaced with noindex, which is what it has come to mean, and which
// engines that do not document the date (Bing) obey as well. The date has passed
// when its second is over.
func (s Set) Expired(now time.Time) Set {
	if s.expires == 0 || now.Unix() < s.expires {
		return s
	}
	s.expires = 0
	s.index = noindexPlain
	return s.canonical()
}

// Of gives the set of the rules named, such as Of("noindex", "nosnippet"). Each
// name may carry a value, as in Parse.
func Of(names ...string) Set { return Parse(strings.Join(names, ",")) }

// MaxSnippet gives the set with a max-snippet of n characters. 0 is nosnippet,
// and so is a number below -1, which has no meaning; -1 is "no limit".
func MaxSnippet(n int) Set {
	if n < -1 {
		n = 0
	}
	return Set{snippet: limit(int64(n))}.canonical()
}

// UnavailableAfter gives the set with an unavailable_after of t, cut to whole
// seconds. A time before 1970 is read as the start of 1970, and one after the
// year 9999 as the end of that year.
func UnavailableAfter(t time.Time) Set {
	return Set{expires: clampDate(t.Unix()) + 1}
}
