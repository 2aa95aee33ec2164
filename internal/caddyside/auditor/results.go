// SPDX-License-Identifier: Apache-2.0

package auditor

import (
	"cmp"
	"slices"
	"sync"
	"time"

	"github.com/robotspolicy/caddy-robots-policy/audit"
)

// Result holds the findings of the last audit of an address.
type Result struct {
	URL   string
	Time  time.Time
	Since time.Time     // when this was first found
	Found *audit.Report // nil where Err is not
	Err   error         // the audit could not be carried out
}

var results = struct {
	sync.Mutex
	by map[string]Result
}{by: map[string]Result{}}

// Results are the results of the audits of the running configuration, by address.
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

// remember stores a result. same says that it equals the previous one.
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
