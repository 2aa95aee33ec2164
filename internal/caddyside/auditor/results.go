// SPDX-License-Identifier: Apache-2.0

package auditor

import (
	"cmp"
	"slices"
	"sync"
	"time"

	"github.com/robotspolicy/caddy-robots-policy/audit"
)

// Result is the result of the last audit of an address.
type Result struct {
	URL   string
	Time  time.Time
	Since time.Time     // time of the first of the consecutive audits that had this result
	Found *audit.Report // nil if Err is not nil
	Err   error         // why the audit failed
}

// results maps addresses to Results. Only the audit of an address changes its Result.
var results sync.Map

// Results returns the results of the running configuration's audits, by address.
func Results() (all []Result) {
	for _, r := range results.Range {
		all = append(all, r.(Result))
	}
	slices.SortFunc(all, func(a, b Result) int { return cmp.Compare(a.URL, b.URL) })
	return all
}

// remember stores the result of an audit. same reports whether the result equals the previous one.
func remember(r Result, same bool) {
	r.Since = r.Time
	if before, ok := results.Load(r.URL); ok && same {
		r.Since = before.(Result).Since
	}
	results.Store(r.URL, r)
}
