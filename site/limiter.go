// SPDX-License-Identifier: Apache-2.0

package site

import (
	"maps"
	"sync"
	"time"

	"github.com/robotspolicy/caddy-robots-policy/policy"
)

// limitKey is the key of a bucket, which counts the requests under one rate limit. It contains the recognized crawler
// and its identity, but not the client's address. So a crawler with many addresses has only one bucket for a limit, and
// the number of buckets depends only on the policy and the catalog.
type limitKey struct {
	Crawler  string // the token of the crawler
	Identity policy.Identity
	Pos      policy.Pos // the place of the limit in the policy file
	Limit    policy.Limit
	DryRun   bool // the limit is only logged; such a bucket also counts requests that an enforced limit would block
}

// maxBuckets limits the number of buckets of one policy. The number could grow without a limit, because each new
// version of the policy may add keys.
const maxBuckets = 8192

// Limiter counts requests against rate limits. It holds the buckets of one policy. The zero value has no buckets. It is
// safe for concurrent use.
type Limiter struct {
	mu sync.Mutex
	// A bucket contains the requests that a crawler may still send at once, and is refilled at the rate of the limit.
	// buckets holds, for each bucket, the time when it will be full again (the generic cell rate algorithm). Denied
	// requests do not change these times.
	buckets map[limitKey]time.Time
}

// share returns one server's part of a limit that several servers share.
func share(l policy.Limit, servers int) (burst int, interval time.Duration) {
	return max(1, l.Burst/servers), l.Interval() * time.Duration(servers)
}

// Take counts a request against limits, which must be from the policy p. Each limit is divided by the number of
// servers. If the request is over a limit, Take returns the limit, its mode, and the time to wait. The mode is at most
// maxMode. A request over a limit is not counted against any limit with the same mode.
func (l *Limiter) Take(p *policy.Policy, now time.Time, servers int, maxMode policy.Mode, limits []Limit) (over *Limit, mode policy.Mode, wait time.Duration) {
	for _, mode := range [...]policy.Mode{policy.ModeBlock, policy.ModeLog} {
		var keyBuf [4]limitKey
		var limitBuf [4]*Limit
		keys, of := keyBuf[:0], limitBuf[:0]
		for i := range limits {
			if limit := &limits[i]; min(limit.Mode, maxMode) == mode {
				keys = append(keys, limitKey{
					Crawler:  p.CrawlerInfo(limit.Crawler).Token,
					Identity: limit.Identity, Pos: limit.Pos, Limit: limit.Limit, DryRun: mode == policy.ModeLog,
				})
				of = append(of, limit)
			}
		}
		if len(keys) == 0 {
			continue
		}
		if i, wait, ok := l.allow(now, servers, keys...); !ok {
			return of[i], mode, wait
		}
	}
	return nil, policy.ModeOff, 0
}

// allow takes one request from the bucket of each key. If one of the buckets is empty, it does not take a request from
// any of them, and returns the index of the empty bucket's key, and the time to wait. If several buckets are empty, it
// returns the index of the one with the longest wait.
func (l *Limiter) allow(now time.Time, servers int, keys ...limitKey) (over int, wait time.Duration, ok bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
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

// sweep removes the buckets that are full again, because a new bucket is also full. If there are still too many
// buckets, it removes all of them. Crawlers can then send a few more requests, but this is better than using more
// memory.
func (l *Limiter) sweep(now time.Time) {
	maps.DeleteFunc(l.buckets, func(_ limitKey, full time.Time) bool { return !full.After(now) })
	if len(l.buckets) >= maxBuckets {
		clear(l.buckets)
	}
}
