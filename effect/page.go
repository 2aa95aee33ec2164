// SPDX-License-Identifier: Apache-2.0

package effect

import (
	"iter"

	"github.com/robotspolicy/caddy-robots-policy/policy"
	"github.com/robotspolicy/caddy-robots-policy/robotstag"
)

// PageQueriesAt yields the queries whose answers determine the headers and meta tags of a target. With each query, it
// yields the policy that answers the query. The queries have no purposes, because headers and meta tags are the same
// whatever purpose a client declares. If the target is too long to compare with patterns, the queries are about any
// path (AnyPath).
func (p Projection) PageQueriesAt(t PolicyTarget, q policy.Query) iter.Seq2[Reader, policy.Query] {
	q.Purposes = nil
	if !t.Long {
		return p.Queries(t, q)
	}
	return func(yield func(Reader, policy.Query) bool) {
		q.AnyPath = true
		for q.Host = range t.Hosts {
			if !yield(Reader{p.Exact, false}, q) {
				return
			}
		}
	}
}

// PageQueries yields the queries of PageQueriesAt for the query's host and path.
func (p Projection) PageQueries(q policy.Query) iter.Seq2[Reader, policy.Query] {
	return p.PageQueriesAt(p.TargetOf(q.Host, q.Path), q)
}

// Sources returns the robots control rules that headers and meta tags have for the query's crawler, each with the part
// of the policy that causes it. It includes rules for everyone.
func (e *Engine) Sources(q policy.Query) (sources []robotstag.Source) {
	for p, own := range e.PageQueries(q) {
		everyone := own
		everyone.Crawler = 0
		for _, q := range []policy.Query{own, everyone} {
			more, _ := robotstag.Sources(p.Policy, q)
			sources = append(sources, more...)
		}
	}
	return sources
}
