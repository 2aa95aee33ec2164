// SPDX-License-Identifier: Apache-2.0

package site

import (
	"iter"

	"github.com/robotspolicy/caddy-robots-policy/policy"
)

// Offers yields the licenses that the policy offers for usages that it disallows for the query's crawler and URL.
func (s *Site) Offers(q policy.Query) iter.Seq[*policy.Offer] {
	return func(yield func(*policy.Offer) bool) {
		offers := s.File.Spec.Rights.Offers
		for i := range offers {
			q.Usage = offers[i].Usage
			if s.disallows(q) && !yield(&offers[i]) {
				return
			}
		}
	}
}

// disallows reports whether the policy disallows the query's usage for any of the paths that the request can mean.
func (s *Site) disallows(q policy.Query) bool {
	for p, q := range s.Queries(s.TargetOf(q.Host, q.Path), q) {
		if p.Decide(q).Verdict == policy.Disallowed {
			return true
		}
	}
	return false
}
