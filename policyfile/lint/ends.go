// SPDX-License-Identifier: Apache-2.0

package lint

import (
	"fmt"
	"slices"
	"strings"

	"github.com/robotspolicy/caddy-robots-policy/policy"
)

// enforcedEnds finds files that are refused by a pattern that ends in "$". Some servers
// serve them at other addresses, too, which it does not match.
func (l *linter) enforcedEnds() {
	for i := range l.rules {
		r := &l.rules[i]
		if l.modeOf(r) <= policy.ModeOff {
			continue
		}
		var at *policy.Statement
		n := 0
		for j := range r.Statements {
			if s := &r.Statements[j]; l.endsFile(r, s) {
				if n++; at == nil {
					at = s
				}
			}
		}
		if at == nil {
			continue
		}
		more := ""
		if n > 1 {
			more = fmt.Sprintf(", and likewise in %d more of this rule", n-1)
		}
		text := at.Pattern.String()
		l.report("enforced-end", at.Pos, fmt.Sprintf(`with "$" this refuses %[1]s and not %[1]s?x, %[1]s%%20 or %[1]s%%00, at which some servers serve the same file; write %[1]s without "$"%[2]s`,
			strings.TrimSuffix(text, "$"), more))
	}
}

// endsFile reports whether a statement closes a name with an extension up to its end, and
// nothing else in the rule closes what is behind it.
func (l *linter) endsFile(r *policy.Rule, s *policy.Statement) bool {
	text := s.Pattern.String()
	if s.Allow || s.Usage != policy.Crawl || !s.Pattern.Anchored() || !strings.Contains(text[strings.LastIndexByte(text, '/')+1:], ".") {
		return false
	}
	return !slices.ContainsFunc(r.Statements, func(o policy.Statement) bool {
		return !o.Allow && o.Usage == policy.Crawl && !o.Pattern.Anchored() && o.Pattern.Covers(s.Pattern)
	})
}
