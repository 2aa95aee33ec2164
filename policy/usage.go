// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"slices"
	"strings"

	"github.com/robotspolicy/caddy-robots-policy/pathpattern"
)

// Usage is a usage type of ACAP 1.0 (section 2.5) or a category of the AIPREF vocabulary.
type Usage uint8

// The usages. Usages such as PresentLink are derived from Present: if a policy has no statement about PresentLink, its
// statements about Present apply. A statement about Other applies to every usage without a statement, except Crawl.
const (
	Crawl Usage = iota
	Follow
	Index
	Preserve
	Present
	PresentOriginal
	PresentCurrentCopy
	PresentOldCopy
	PresentSnippet
	PresentThumbnail
	PresentOldSnippet
	PresentOldThumbnail
	PresentLink
	Other
	TrainAI
	AIUse
	Search

	numUsages
)

var usageNames = [numUsages]string{
	"crawl", "follow", "index", "preserve",
	"present", "present-original", "present-currentcopy", "present-oldcopy", "present-snippet",
	"present-thumbnail", "present-oldsnippet", "present-oldthumbnail", "present-link",
	"other", "train-ai", "ai-use", "search",
}

// String returns the usage's name as ACAP and AIPREF spell it.
func (u Usage) String() string { return usageNames[u] }

// ParseUsage returns the usage with a name, and whether there is one. The case of the name does not matter (ACAP 1.0
// section 3).
func ParseUsage(name string) (Usage, bool) {
	u := slices.IndexFunc(usageNames[:], func(n string) bool { return strings.EqualFold(n, name) })
	return Usage(max(0, u)), u >= 0
}

// Usages lists all usages, first the usages of ACAP 1.0 and then the usages of AIPREF.
func Usages() []Usage {
	all := make([]Usage, numUsages)
	for i := range all {
		all[i] = Usage(i)
	}
	return all
}

// IsRight reports whether the usage is one of RightsUsages. ACAP 1.0 does not have these usages.
func (u Usage) IsRight() bool { return u > Other }

// InGroups reports whether groups of robots.txt have lines about the usage u. They can have lines about Other, because
// a statement about Other applies to the rights usages without a statement, such as TrainAI.
func (u Usage) InGroups() bool { return u == Crawl || u == Other || u.IsRight() }

// IsPresentation reports whether the usage is derived from Present.
func (u Usage) IsPresentation() bool { return u > Present && u <= PresentLink }

// fallback returns the usage whose statements apply if there is no statement about u. The result is false if there is
// no such usage.
func (u Usage) fallback() (Usage, bool) { return Present, u.IsPresentation() }

// Covers reports whether a statement about the usage u can decide about the usage v.
func (u Usage) Covers(v Usage) bool {
	fallback, ok := v.fallback()
	return u == v || ok && u == fallback || u == Other && v != Crawl
}

// IsPurpose reports whether a word is a valid name of a purpose: a letter, followed by letters, digits, "-", "_" and
// "." (ACAP 1.0 section 3, name-start-char and name-char).
func IsPurpose(word string) bool {
	const letters = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
	return word != "" && strings.IndexByte(letters, word[0]) >= 0 && strings.Trim(word, letters+"0123456789-_.") == ""
}

// MatchPurpose reports whether a pattern matches the whole name or URI of a purpose (ACAP 1.0 sections 2.3.3 and 2.8).
// Both must be in lower case. A "$" at the end of the pattern has no effect.
func MatchPurpose(pattern, s string) bool {
	pattern = strings.TrimSuffix(pattern, "$")
	return pattern == s || strings.Contains(pattern, "*") && pathpattern.Raw(pattern+"$").Match(s)
}

// Purposes lists the names of purposes that the rules mention, in their audiences (purpose:NAME) or as usage purposes.
// The names are in lower case and in the order of the file.
func (s *Spec) Purposes() (names []string) {
	seen := map[string]bool{}
	add := func(name string) {
		if name = strings.ToLower(name); !seen[name] {
			seen[name] = true
			names = append(names, name)
		}
	}
	for i := range s.Rules {
		for _, a := range s.Rules[i].For {
			if a.Kind == ForPurpose {
				add(a.Name)
			}
		}
		for _, u := range s.Rules[i].UsagePurposes {
			add(u)
		}
	}
	return names
}
