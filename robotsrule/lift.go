// SPDX-License-Identifier: Apache-2.0

package robotsrule

import "strings"

// Lift is a set of restrictions that a policy removes from the site's own headers and meta tags.
type Lift uint8

// The restrictions that can be lifted.
const (
	LiftIndex   Lift = 1 << iota // noindex and unavailable_after
	LiftSnippet                  // nosnippet and max-snippet
)

// Lifted returns s without the restrictions in l. It also removes unknown words that a reader might understand as
// such a restriction, for example "noindex nofollow". If a removed word contains other rules, Lifted adds these rules
// to s.
func (s Set) Lifted(l Lift) Set {
	var names []string
	if l&LiftIndex != 0 {
		s.index, s.expires = indexUnsaid, 0
		names = append(names, "noindex", "none", "unavailable_after")
	}
	if l&LiftSnippet != 0 {
		s.flags &^= nosnippet
		s.sizes[snippet] = limitUnsaid
		names = append(names, "nosnippet", "max-snippet")
	}
	var within []string
	s = s.Without(func(rule string) bool {
		for _, name := range names {
			if strings.Contains(rule, name) {
				within = append(within, strings.FieldsFunc(rule, func(c rune) bool { return c == ' ' || c == ';' || c == '\t' })...)
				return true
			}
		}
		return false
	})
	if len(within) == 0 {
		return s
	}
	return s.Union(Of(within...).WithoutUnknown().Restrictive().Lifted(l))
}
