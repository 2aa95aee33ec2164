// SPDX-License-Identifier: Apache-2.0

package effect

import (
	"iter"

	"github.com/robotspolicy/caddy-robots-policy/policy"
	"github.com/robotspolicy/caddy-robots-policy/robotstag"
)

// PageQueries yields the questions for headers and meta tags: each reading of the target, without the purposes
// that a client names, because they address everyone.
func (e *Engine) PageQueries(q policy.Query) iter.Seq2[Reader, policy.Query] {
	q.Purposes = nil
	return e.Queries(e.TargetOf(q.Host, q.Path), q)
}

// Sources returns the reasons for what headers and elements say to the query's crawler, by its name and to everyone.
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
