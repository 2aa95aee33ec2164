// SPDX-License-Identifier: Apache-2.0

// Package replay decides real traffic anew: what a policy, or the difference
// between two, would have done to the requests of access logs.
package replay

import (
	"context"
	"io"
	"runtime"
	"sync"
	"time"

	"github.com/robotspolicy/caddy-robots-policy/activity"
	"github.com/robotspolicy/caddy-robots-policy/activity/accesslog"
	"github.com/robotspolicy/caddy-robots-policy/policy"
	"github.com/robotspolicy/caddy-robots-policy/site"
	"github.com/robotspolicy/caddy-robots-policy/site/compare"
)

// Options say what to replay.
type Options struct {
	New *site.Site
	Old *site.Site // nil: nothing was refused
	// Files are logs, as [accesslog.Expand] returns them.
	Files []string
	// Stored reads the rows of an activity store between two times, and says how many
	// requests have no row any more. It may be nil. StoreName is what the report calls the
	// store.
	Stored    Stored
	StoreName string
	Parser    accesslog.Parser // nil: each file's format is found from its start
	Stdin     io.Reader        // for "-" among the files, by default os.Stdin
	// Host is the host of records that have none. Without it they are decided by
	// the rules that hold on every host.
	Host string
	// Since and Until bound the time of the requests; the zero time does not.
	Since, Until time.Time
	Workers      int // goroutines; by default one for each CPU
	// Decided is called with each request of a crawler in a log and what the new policy
	// does about it, from several goroutines at once. It may be nil.
	Decided func(*accesslog.Record, Verdict)

	losses func() *compare.Losses // what search engines may lose, found without traffic
}

// Verdict is what a policy does about a request.
type Verdict struct {
	Crawler  string // the product token of the crawler that decided
	Identity policy.Identity
	Decision activity.Decision
	Rule     string // its name or audience; enforcement.impostors; empty for none
}

// Run replays logs, or a store, and reports what it found. An error is of the files or
// the store; there is no report then.
func Run(ctx context.Context, o Options) (*Report, error) {
	if o.Workers <= 0 {
		o.Workers = runtime.GOMAXPROCS(0)
	}
	o.losses = sync.OnceValue(func() *compare.Losses { return compare.Sites(o.Old, o.New, compare.Options{}).Losses })
	workers := make([]*worker, o.Workers)
	for i := range workers {
		workers[i] = newWorker(&o)
	}
	reading := accesslog.Reading{Parser: o.Parser, Workers: o.Workers, Stdin: o.Stdin}
	result, err := reading.Read(ctx, o.Files, func(w int, r *accesslog.Record) { workers[w].record(r) })
	if err != nil {
		return nil, err
	}
	total := workers[0]
	if o.Stored != nil {
		if err := total.store(ctx); err != nil {
			return nil, err
		}
	}
	for _, w := range workers[1:] {
		total.tally.merge(w.tally)
	}
	return newReport(&o, result, total.tally), nil
}
