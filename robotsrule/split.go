// SPDX-License-Identifier: Apache-2.0

package robotsrule

import (
	"slices"
	"strings"
)

// others are names in use for rules that no engine documents, and permissive contraries of known rules.
var others = []string{
	"archive", "cache", "imageindex", "noai", "noimageai", "nositelinkssearchbox", "noyaca", "noydir", "odp", "snippet", "translate",
}

// IsRule reports whether name, in any case, is the name of a rule that an engine documents or that is in use, or
// starts with max-: "unavailable_after: …" and not "examplebot: …" in X-Robots-Tag.
func IsRule(name string) bool {
	name = lower(name)
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

// Restrictive returns s without words that only allow (all, index, … and an indexifembedded without noindex):
// that is the default, and beside a restriction from elsewhere some engines let them win.
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
