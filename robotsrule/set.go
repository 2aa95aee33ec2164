// SPDX-License-Identifier: Apache-2.0

// Package robotsrule holds the robots control rules of one audience (noindex, nosnippet, max-snippet and so on) as
// one value, and combines two of them to the most restrictive.
//
// "Robots control rules" is the term of the IANA registry of draft-illyes-repext-03, which defines only noindex
// and nosnippet, combined by "union". The others are those that search engines document for robots meta tags
// and X-Robots-Tag. Comments say where a combination is stricter than an engine's own.
package robotsrule

import (
	"slices"
	"strings"
	"time"

	"github.com/robotspolicy/caddy-robots-policy/internal/leaf/ascii"
)

// Set is a set of robots control rules. The zero value is the empty set. Sets are equal under == exactly if
// Equal says so, so a Set can be a map key. No method changes a Set.
type Set struct {
	flags   uint16
	index   uint8
	image   uint8
	snippet int64  // see limit
	video   int64  // see limit
	expires int64  // Unix seconds plus one; 0 means no date
	other   string // sorted, unique, separated by newlines
}

// Restrictive rules without a value, in the order of writing. noindex is apart: indexifembedded weakens it.
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

// What a set says about indexing, the weakest first. An indexifembedded alone says nothing; it stays because
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

// A limit is 0 for nothing, 1 for "no limit" (-1), else the number plus 2.
const (
	limitUnsaid    = 0
	limitUnlimited = 1
	limitZero      = 2
	// maxNumber is the largest Integer of RFC 9651 §3.3.1, as which larger numbers are read.
	maxNumber = 999_999_999_999_999
)

// maxDate is the end of the year 9999, the last second that headers and meta tags can write.
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
// max-snippet and max-video-preview take the smaller number; -1 is "no limit", and a max-snippet of 0 is
// nosnippet, which beats any other. max-image-preview takes none before standard before large, and
// unavailable_after the earlier date. indexifembedded stays only if no noindex comes without it. noarchive beats
// nocache, because Bing reads both together as nocache, the weaker. A permissive word goes if its contrary is
// there, and all goes if anything is restricted. Unknown rules and malformed values stay.
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

// UnionAll returns the Union of any number of sets, in halves, because each Union copies the unknown rules of both.
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

// canonical drops what a stricter rule of the set makes idle. Each condition, once true, stays true under Union,
// which makes Union associative.
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
	if s.index == noindexEmbedded && s.mayNoindex() {
		s.index = noindexPlain
	}
	words := s.words()
	return s.drop(func(w string) bool { return s.contradicts(w, words) })
}

// mayNoindex reports whether a reader might find a noindex without its exception in unknown rules.
func (s Set) mayNoindex() bool {
	return strings.Contains(s.other, "noindex") || strings.Contains(s.other, "none")
}

// PlainNoindex reports whether s has a noindex, or what may be one to a reader, without indexifembedded.
func (s Set) PlainNoindex() bool { return s.index == noindexPlain || s.mayNoindex() }

// contradicts reports whether w, one of the sorted words, is a permissive word whose contrary s has, or a known
// rule that lacks its value. A malformed value stays next to a proper one, because a reader may understand it.
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

// Equal reports whether s and t mean the same, whatever their order, case and spelling was.
func (s Set) Equal(t Set) bool { return s == t }

// IsEmpty reports whether s says nothing; a permissive word is something.
func (s Set) IsEmpty() bool { return s == Set{} }

// Has reports whether s has the rule called name (in lowercase), whatever its value. none is noindex and
// nofollow, and a max-snippet of 0 is only nosnippet.
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

// UnavailableAfter returns the last second at which the page may be shown, in UTC, if there is one.
func (s Set) UnavailableAfter() (time.Time, bool) {
	if s.expires == 0 {
		return time.Time{}, false
	}
	return time.Unix(s.expires-1, 0).UTC(), true
}

// Expired returns s at the time now: an unavailable_after whose second is over is replaced with noindex, which
// engines that do not document the date obey as well.
func (s Set) Expired(now time.Time) Set {
	if s.expires == 0 || now.Unix() < s.expires {
		return s
	}
	s.expires = 0
	s.index = noindexPlain
	return s.canonical()
}

// Of returns the set of rules such as "noindex" or "max-snippet:20".
func Of(names ...string) Set { return Parse(strings.Join(names, ",")) }

// MaxSnippet returns the set with a max-snippet of n characters; -1 is "no limit", and less is nosnippet as 0 is.
func MaxSnippet(n int) Set {
	if n < -1 {
		n = 0
	}
	return Set{snippet: limit(int64(n))}.canonical()
}

// UnavailableAfter returns the set with an unavailable_after of t in whole seconds, between 1970 and 9999.
func UnavailableAfter(t time.Time) Set {
	return Set{expires: clampDate(t.Unix()) + 1}
}

// others are names in use for rules that no engine documents, and permissive contraries of known rules.
var others = []string{
	"archive", "cache", "imageindex", "noai", "noimageai", "nositelinkssearchbox", "noyaca", "noydir", "odp", "snippet", "translate",
}

// IsRule reports whether name, in any case, is the name of a rule that an engine documents or that is in use, or
// starts with max-. In X-Robots-Tag it distinguishes "unavailable_after: …" from "examplebot: …".
func IsRule(name string) bool {
	name = ascii.Lower(name)
	return takesValue(name) || slices.Contains(others, name) ||
		slices.ContainsFunc(documented, func(d documentedRule) bool { return d.name == name })
}

// HasRule reports whether a list has a rule, whatever its value.
func HasRule(list string) bool {
	for list != "" {
		var e element
		if e, list = nextElement(list); IsRule(e.name) {
			return true
		}
	}
	return false
}

// Cut takes the first rule off a list as Parse reads it, so that a date keeps its commas. Rule and rest are
// parts of list, without the comma between them.
func Cut(list string) (rule, rest string) {
	_, rest = nextElement(list)
	rule = list[:len(list)-len(rest)]
	if rest != "" || strings.HasSuffix(list, ",") {
		rule = strings.TrimSuffix(rule, ",")
	}
	return rule, rest
}

// Restrictive returns s without words that only allow (all, index, … and an indexifembedded without noindex).
// They state the default, and some engines let them win over a restriction from elsewhere.
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

// Without returns s without the unknown rules and malformed values for which drop is true. A rule is "name",
// "name:value" or, for a parameter without that spelling, "name=item".
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

// Beyond returns the smallest set whose union with t is that of s and t.
func (s Set) Beyond(t Set) Set {
	d := s.Union(t)
	d.flags &^= t.flags
	if d.index == t.index {
		d.index = indexUnsaid
	}
	if d.image == t.image {
		d.image = imageUnsaid
	}
	if d.snippet == t.snippet {
		d.snippet = limitUnsaid
	}
	if d.video == t.video {
		d.video = limitUnsaid
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
