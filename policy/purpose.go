// SPDX-License-Identifier: Apache-2.0

package policy

import "strings"

// MatchPurpose reports whether a pattern of usage purposes matches the name or URI of
// one (ACAP 1.0 sections 2.3.3 and 2.8), both in lower case. The pattern is for the
// whole of it, so that "news" is not "newsletter": a "$" at its end changes nothing.
func MatchPurpose(pattern, s string) bool {
	pattern = strings.TrimSuffix(pattern, "$")
	i := strings.IndexByte(pattern, '*')
	if i < 0 {
		return s == pattern
	}
	if !strings.HasPrefix(s, pattern[:i]) {
		return false
	}
	s, pattern = s[i:], pattern[i+1:]
	for {
		i = strings.IndexByte(pattern, '*')
		if i < 0 {
			return strings.HasSuffix(s, pattern)
		}
		j := strings.Index(s, pattern[:i])
		if j < 0 {
			return false
		}
		s, pattern = s[j+i:], pattern[i+1:]
	}
}

// Purposes lists the purposes that rules are for or ask for, in lower case and the order
// of the rules. One with "*" is itself an example of what it matches.
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
