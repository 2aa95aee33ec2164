// SPDX-License-Identifier: Apache-2.0

package robotsrule

// Limit returns the value of the rule max-snippet, max-video-preview or max-image-preview in a set. n is a number of
// characters for max-snippet and of seconds for max-video-preview. For max-image-preview, 0 means "none" and 1 means
// "standard". limited is false if the set has no such limit. The values "large" and -1 are not limits.
func (s Set) Limit(name string) (n int64, limited bool) {
	switch {
	case name == "max-image-preview":
		return int64(imageNone - s.image), s.image >= imageStandard
	case name == "max-snippet" && s.flags&nosnippet != 0:
		return 0, true
	case name == "max-snippet":
		return s.snippet - limitZero, s.snippet >= limitZero
	case name == "max-video-preview":
		return s.video - limitZero, s.video >= limitZero
	}
	return 0, false
}
