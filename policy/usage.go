// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"slices"
	"strings"
)

// Usage is what a crawler may or may not do with a resource: a usage type of
// ACAP 1.0 (section 2.5) or a category of the AIPREF vocabulary.
type Usage uint8

// The usages. Present covers each of its derivations that no statement speaks
// of; Other covers every usage but Crawl that none speaks of.
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

// String is the usage's name as ACAP and AIPREF spell it.
func (u Usage) String() string { return usageNames[u] }

// ParseUsage returns the usage of that name. Case does not matter (ACAP 1.0,
// section 3).
func ParseUsage(name string) (Usage, bool) {
	u := slices.IndexFunc(usageNames[:], func(n string) bool { return strings.EqualFold(n, name) })
	return Usage(max(0, u)), u >= 0
}

// Usages lists all usages, in the order of the documents.
func Usages() []Usage {
	all := make([]Usage, numUsages)
	for i := range all {
		all[i] = Usage(i)
	}
	return all
}

// IsACAP reports whether the usage is one of ACAP 1.0's.
func (u Usage) IsACAP() bool { return u <= Other }

// IsPresentation reports whether the usage is derived from Present.
func (u Usage) IsPresentation() bool { return u > Present && u <= PresentLink }

// fallback is the usage consulted in the same place when none speaks of u.
func (u Usage) fallback() (Usage, bool) { return Present, u.IsPresentation() }
