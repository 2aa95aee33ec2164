// SPDX-License-Identifier: Apache-2.0

package robotstag

// splitMembers cuts a structured field at the commas between its members. Commas
// in Strings and Inner Lists stay. The pieces of a malformed field are
// malformed.
func splitMembers(s string) []string {
	var pieces []string
	for {
		end := memberEnd(s)
		pieces = append(pieces, s[:end])
		if end == len(s) {
			return pieces
		}
		s = s[end+1:]
	}
}

// memberEnd gives the index of the comma that ends the first member of s, or the
// length of s.
func memberEnd(s string) int {
	quoted, depth := false, 0
	for i := 0; i < len(s); i++ {
		switch c := s[i]; {
		case quoted && c == '\\':
			i++
		case c == '"':
			quoted = !quoted
		case quoted:
		case c == '(':
			depth++
		case c == ')':
			depth--
		case c == ',' && depth <= 0:
			return i
		}
	}
	return len(s)
}

// lastMemberEnd gives the end of the last member that is whole in s, which has
// been cut off somewhere: draft-illyes-repext-03 has the member at the cut
// ignored and those before it honoured.
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
