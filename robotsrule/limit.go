// SPDX-License-Identifier: Apache-2.0

package robotsrule

// Limit returns how much a set leaves of what max-snippet, max-video-preview or max-image-preview limits, and whether it
// limits that: characters, seconds, or 0 for "none", 1 for "standard". Large is not a limit, nor is -1.
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
