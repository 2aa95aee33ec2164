// SPDX-License-Identifier: Apache-2.0

package handler

import (
	"maps"
	"sync"
	"sync/atomic"
	"time"

	"github.com/robotspolicy/caddy-robots-policy/policy"
)

// limitKey is what one bucket is for. Nothing in it comes from the client but what it was
// recognised as, so that a crawler with many addresses has one bucket, and the number
// of buckets depends on the policy and the catalogue only.
type limitKey struct {
	Crawler  string // its token
	Identity policy.Identity
	Pos      policy.Pos // of the limit in the policy file
	Limit    policy.Limit
	DryRun   bool // requests over the limit pass, so they must not count for those who refuse
}

// maxBuckets bounds the buckets of one policy. New versions of the policy have new keys.
const maxBuckets = 8192

// limiter holds the buckets of one policy. The zero value has none. It is safe for
// concurrent use.
type limiter struct {
	mu sync.Mutex
	// buckets has when each is full again (the generic cell rate algorithm). Denied
	// requests do not change it, however many come at a time.
	buckets map[limitKey]time.Time
}

// limitShare is among how many servers each limit is divided, 0 for one. It is global, as the
// servers of a fleet are counted once for a process, whatever configurations it has.
var limitShare atomic.Int64

// ShareLimits divides every limit among so many servers.
func ShareLimits(servers int) { limitShare.Store(int64(servers)) }

// share is what one server of several has of a limit.
func share(l policy.Limit, servers int64) (burst int, interval time.Duration) {
	return max(1, l.Burst/int(servers)), l.Interval() * time.Duration(servers)
}

// allow takes a request from the bucket of each key, or from none: if one is empty, it
// returns which, and after which time the request is possible; of several, the one with
// the longest wait.
func (l *limiter) allow(now time.Time, keys ...limitKey) (over int, wait time.Duration, ok bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	servers := max(1, limitShare.Load())
	for i, k := range keys {
		full := latest(l.buckets[k], now)
		burst, interval := share(k.Limit, servers)
		if w := full.Add(-time.Duration(burst-1) * interval).Sub(now); w > wait {
			over, wait = i, w
		}
	}
	if wait > 0 {
		return over, wait, false
	}
	for _, k := range keys {
		full, known := l.buckets[k]
		if !known && len(l.buckets) >= maxBuckets {
			l.sweep(now)
		}
		if l.buckets == nil {
			l.buckets = map[limitKey]time.Time{}
		}
		_, interval := share(k.Limit, servers)
		l.buckets[k] = latest(full, now).Add(interval)
	}
	return 0, 0, true
}

func latest(a, b time.Time) time.Time {
	if a.Before(b) {
		return b
	}
	return a
}

// sweep removes the buckets that are full again, which a new one equals. If none is, it
// removes all: to let a few requests more pass is better than to grow.
func (l *limiter) sweep(now time.Time) {
	maps.DeleteFunc(l.buckets, func(_ limitKey, full time.Time) bool { return !full.After(now) })
	if len(l.buckets) >= maxBuckets {
		clear(l.buckets)
	}
}
