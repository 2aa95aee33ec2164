// SPDX-License-Identifier: Apache-2.0

package robotsrule

import "strings"

// IsCanonical reports whether every rule of a comma list is spelled as search
// engines document it, so that they read it as Parse does: "noindex",
// "max-snippet:20", "unavailable_after: 31 Dec 2026 23:59:59 GMT", in any case and
// with white space around it. Parse is more lenient: it reads "noindex=false" and
// "noindex: nofollow" as noindex, where an engine may ignore the word. Words that Parse
// does not know are not looked at.
func IsCanonical(list string) bool {
	for list != "" {
		e, rest := nextElement(list)
		text := strings.Trim(strings.TrimSuffix(list[:len(list)-len(rest)], ","), " \t\n\f\r")
		if !e.isCanonical(text) {
			return false
		}
		list = rest
	}
	return true
}

func (e element) isCanonical(text string) bool {
	if probe := (Set{}); !probe.add(e) {
		return true
	}
	for i := range len(text) {
		if text[i] < ' ' || text[i] == 0x7f {
			return false
		}
	}
	text = lower(text)
	if e.sep == 0 {
		return text == e.name
	}
	value, ok := strings.CutPrefix(text, e.name+":")
	if !ok || !takesValue(e.name) || strings.TrimLeft(value, " ") != lower(e.value) {
		return false
	}
	if n, ok := parseNumber(e.value); ok && e.name != "unavailable_after" {
		return number(limit(n)) == e.value
	}
	return !e.isDate || e.date.exact && !e.date.localZone
}
