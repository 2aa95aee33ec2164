// SPDX-License-Identifier: Apache-2.0

package site

import (
	"strings"

	"github.com/robotspolicy/caddy-robots-policy/pathpattern"
	"github.com/robotspolicy/caddy-robots-policy/policy"
)

// lineReason is the part of the policy that made an Allow or Disallow line which a
// crawler reads. It need not be what decides for the query: robots.txt speaks to
// everybody of a name, verified or not, and says the stricter where it cannot say what
// the policy says.
func (s *Site) lineReason(line string, q policy.Query) (Reason, bool) {
	key, value, _ := strings.Cut(line, ":")
	pattern, err := pathpattern.Parse(strings.TrimSpace(value))
	if line == "" || err != nil {
		return Reason{}, false
	}
	allow := key == "Allow"
	q.Usage = policy.Crawl
	for _, q.Identity = range []policy.Identity{q.Identity, policy.Verified} {
		if d := s.Policy.Decide(q); d.Rule != nil && d.Statement.Allow == allow && prints(d.Statement.Pattern, pattern) {
			return s.reason(d), true
		}
	}
	class := s.Policy.ClassOf(q.Crawler, q.Host)
	for _, tier := range []policy.Tier{policy.TierToken, policy.TierGroup, policy.TierEveryone} {
		for _, r := range s.Policy.Rules(&class, tier) {
			for i := range r.Statements {
				st := &r.Statements[i]
				if st.Usage == policy.Crawl && st.Allow == allow && prints(st.Pattern, pattern) {
					return s.reason(policy.Decision{Rule: r, Statement: st}), true
				}
			}
		}
	}
	return Reason{}, false
}

// prints reports whether a pattern of the policy is printed as a pattern of
// robots.txt: with more stars, or without its end, where that is the stricter.
func prints(stated, printed pathpattern.Pattern) bool {
	if stated.Anchored() && !printed.Anchored() {
		open, err := pathpattern.Parse(strings.TrimSuffix(stated.String(), "$"))
		return err == nil && open.Covers(printed) && printed.Covers(open)
	}
	return stated.Covers(printed) && printed.Covers(stated)
}
