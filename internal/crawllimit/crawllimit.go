// SPDX-License-Identifier: Apache-2.0

// Package crawllimit counts the requests of crawlers against the limits of a policy.
package crawllimit

import (
	"sync"
	"time"

	"github.com/robotspolicy/caddy-robots-policy/policy"
)

// Key is what one bucket is for. Nothing in it comes from the client but what it was
// recognised as, so that a crawler with many addresses has one bucket, and the number
// of buckets depends on the policy and the catalogue only.
type Key struct {
	Crawler  string // its token
	Identity policy.Identity
	Pos      policy.Pos // of the limit in the policy file
	Limit    policy.Limit
}

// maxBuckets bounds the buckets of one policy. New versions of the policy have new keys.
const maxBuckets = 8192

// Limiter holds the buckets of one policy. The zero value has none. It is safe for
// concurrent use.
type Limiter struct {
	mu      sync.Mutex
	buckets map[Key]*bucket
}

// bucket is when it is full again (the generic cell rate algorithm). Denied requests do
// not change it, however many come at a time.
type bucket struct{ full time.Time }

// Allow takes a request from a bucket. If there is none left, it takes nothing and
// returns after which time there will be one.
func (l *Limiter) Allow(k Key, now time.Time) (wait time.Duration, ok bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	b := l.bucket(k, now)
	full := b.full
	if full.Before(now) {
		full = now
	}
	step := k.Limit.Interval()
	if wait = full.Add(-time.Duration(k.Limit.Burst-1) * step).Sub(now); wait > 0 {
		return wait, false
	}
	b.full = full.Add(step)
	return 0, true
}

func (l *Limiter) bucket(k Key, now time.Time) *bucket {
	b := l.buckets[k]
	if b == nil {
		if len(l.buckets) >= maxBuckets {
			l.sweep(now)
		}
		if l.buckets == nil {
			l.buckets = map[Key]*bucket{}
		}
		b = &bucket{}
		l.buckets[k] = b
	}
	return b
}

// sweep removes the buckets that are full again, which a new one equals. If none is, it
// removes all: to let a few requests more pass is better than to grow.
func (l *Limiter) sweep(now time.Time) {
	for k, b := range l.buckets {
		if !b.full.After(now) {
			delete(l.buckets, k)
		}
	}
	if len(l.buckets) >= maxBuckets {
		clear(l.buckets)
	}
}

// Len returns the number of buckets.
func (l *Limiter) Len() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.buckets)
}
