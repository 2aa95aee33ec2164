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
	Since time.Time     // time of the first audit that had this result
	Found *audit.Report // nil if Err is not nil
	Err   error         // why the audit failed
}

var results = struct {
	sync.Mutex
	by map[string]Result
}{by: map[string]Result{}}

// Results returns the results of the running configuration's audits, by address.
func Results() []Result {
	results.Lock()
	defer results.Unlock()
	all := make([]Result, 0, len(results.by))
	for _, r := range results.by {
		all = append(all, r)
	}
	slices.SortFunc(all, func(a, b Result) int { return cmp.Compare(a.URL, b.URL) })
	return all
}

// remember stores the result of an audit. same reports whether the result equals the previous one.
func remember(r Result, same bool) {
	results.Lock()
	defer results.Unlock()
	r.Since = r.Time
	if before, ok := results.by[r.URL]; ok && same {
		r.Since = before.Since
	}
	results.by[r.URL] = r
}

func forget(url string) {
	results.Lock()
	defer results.Unlock()
	delete(results.by, url)
}
