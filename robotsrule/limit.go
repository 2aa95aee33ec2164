// SPDX-License-Identifier: Apache-2.0

package robotsrule

import "slices"

// Limit returns the value of the rule max-snippet, max-video-preview or max-image-preview in a set. n is a number of
// characters for max-snippet and of seconds for max-video-preview. For max-image-preview, 0 means "none" and 1 means
// "standard". limited is false if the set has no such limit. If the set has nosnippet, max-snippet is 0. The values
// "large" and -1 are not limits.
func (s Set) Limit(name string) (n int64, limited bool) {
	i := slices.Index(sizeNames[:], name)
	switch {
	case i < 0:
		return 0, false
	case i == snippet && s.flags&nosnippet != 0:
		return 0, true
	}
	return s.sizes[i] - limitZero, s.sizes[i] >= limitZero
}
