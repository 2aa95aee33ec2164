// SPDX-License-Identifier: Apache-2.0

package robotstag

import (
	"strings"

	"github.com/robotspolicy/caddy-robots-policy/internal/leaf/ascii"
	"github.com/robotspolicy/caddy-robots-policy/robotsrule"
)

// splitMembers splits a structured field at the commas between members. It does not split at commas within Strings
// and Inner Lists.
func splitMembers(s string) []string {
	var pieces []string
	for {
		end := memberEnd(s)
		if i := strings.LastIndex(ascii.Lower(s[:end]), "unavailable_after"); i >= 0 {
			date, _ := robotsrule.Cut(s[i:]) // the date includes its commas
			end = max(end, i+len(date))
		}
		pieces = append(pieces, s[:end])
		if end == len(s) {
			return pieces
		}
		s = s[end+1:]
	}
}

// memberEnd returns the index of the comma after the first member of s, or the length of s. If a String or Inner List
// does not end, it returns the index of the first comma. An Inner List cannot contain another one. So if a second "("
// occurs before the first one is closed, memberEnd assumes that the first Inner List does not end.
func memberEnd(s string) int {
	quoted, depth, comma := false, 0, -1
	for i := 0; i < len(s); i++ {
		switch c := s[i]; {
		case quoted && c == '\\':
			i++
		case c == '"':
			quoted = !quoted
		case quoted:
		case c == '(':
			if depth > 0 && comma >= 0 {
				return comma
			}
			depth++
		case c == ')':
			depth--
		case c == ',' && depth <= 0:
			return i
		case c == ',' && comma < 0:
			comma = i
		}
	}
	if i := strings.IndexByte(s, ','); i >= 0 && (quoted || depth > 0) {
		return i
	}
	return len(s)
}

// lastMemberEnd returns the end of the last complete member of a line that was cut off. draft-illyes-repext-03
// says that readers ignore the incomplete member and obey the members before it.
func lastMemberEnd(s string) int {
	last := -1
	for at := 0; ; {
		end := at + memberEnd(s[at:])
		if end == len(s) {
			return last
		}
		last, at = end, end+1
	}
}
