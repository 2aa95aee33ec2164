// SPDX-License-Identifier: Apache-2.0

package site

import (
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/robotspolicy/caddy-robots-policy/policy"
)

var (
	start   = time.Date(2026, 11, 22, 12, 0, 0, 0, time.UTC)
	sixty   = policy.Limit{Requests: 60, Per: time.Minute, Burst: 60}
	tenFive = policy.Limit{Requests: 10, Per: time.Hour, Burst: 5}
)

func TestLimiter(t *testing.T) {
	t.Parallel()
	var l Limiter
	key := limitKey{Crawler: "GPTBot", Pos: policy.Pos{Line: 3}, Limit: sixty}
	allowed := 0
	for range 1000 {
		if _, wait, ok := l.allow(start, 1, key); ok {
			allowed++
		} else if wait != time.Second {
			t.Fatalf("wait %v, want 1s", wait)
		}
	}
	if allowed != 60 {
		t.Errorf("%d of 1000 requests are allowed, want 60", allowed)
	}
	for _, other := range []limitKey{
		{Crawler: "CCBot", Pos: policy.Pos{Line: 3}, Limit: sixty},
		{Crawler: "GPTBot", Identity: policy.Verified, Pos: policy.Pos{Line: 3}, Limit: sixty},
		{Crawler: "GPTBot", Identity: policy.Impostor, Pos: policy.Pos{Line: 3}, Limit: sixty},
		{Crawler: "GPTBot", Pos: policy.Pos{Line: 3, Column: 9}, Limit: sixty},
	} {
		if _, _, ok := l.allow(start, 1, other); !ok {
			t.Errorf("%+v shares a bucket with %+v", other, key)
		}
	}
	if _, _, ok := l.allow(start.Add(999*time.Millisecond), 1, key); ok {
		t.Error("a request is allowed too early")
	}
	if _, _, ok := l.allow(start.Add(time.Second), 1, key); !ok {
		t.Error("no request is allowed after a second")
	}
}

func TestLimiterBurst(t *testing.T) {
	t.Parallel()
	var l Limiter
	key := limitKey{Crawler: "GPTBot", Limit: tenFive}
	for i := range 6 {
		_, wait, ok := l.allow(start, 1, key)
		if ok != (i < 5) || !ok && wait != 6*time.Minute {
			t.Errorf("request %d: %v %v", i, wait, ok)
		}
	}
}

func TestShareOfALimit(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		limit    policy.Limit
		servers  int
		burst    int
		interval time.Duration
	}{
		{sixty, 1, 60, time.Second}, {sixty, 3, 20, 3 * time.Second}, {sixty, 200, 1, 200 * time.Second}, {tenFive, 2, 2, 12 * time.Minute},
	} {
		if burst, interval := share(tt.limit, tt.servers); burst != tt.burst || interval != tt.interval {
			t.Errorf("%v among %d servers: %d at once, one each %s", tt.limit, tt.servers, burst, interval)
		}
	}
}

// The number of buckets is limited, whatever the number of keys.
func TestLimiterIsBounded(t *testing.T) {
	t.Parallel()
	var l Limiter
	for i := range 100_000 {
		l.allow(start.Add(time.Duration(i)*time.Millisecond), 1, limitKey{Crawler: "GPTBot", Pos: policy.Pos{Line: i}, Limit: tenFive})
	}
	if n := len(l.buckets); n > maxBuckets {
		t.Errorf("%d buckets", n)
	}
}

func TestLimiterConcurrently(t *testing.T) {
	t.Parallel()
	var l Limiter
	var allowed atomic.Int64
	var wait sync.WaitGroup
	for range 8 {
		wait.Go(func() {
			for range 500 {
				if _, _, ok := l.allow(start, 1, limitKey{Crawler: "GPTBot", Limit: sixty}); ok {
					allowed.Add(1)
				}
			}
		})
	}
	wait.Wait()
	if n := allowed.Load(); n != 60 {
		t.Errorf("%d allowed", n)
	}
	// The 3,940 denied requests above do not make the crawler wait longer.
	if _, wait, ok := l.allow(start.Add(time.Second), 1, limitKey{Crawler: "GPTBot", Limit: sixty}); !ok {
		t.Errorf("a second later it has to wait %v more", wait)
	}
}

// If a request has several limits and the bucket of one of them is empty, the request does not take anything from the
// buckets of the others.
func TestLimiterTakesFromAllOrNone(t *testing.T) {
	t.Parallel()
	var l Limiter
	wide, narrow := limitKey{Crawler: "GPTBot", Limit: sixty}, limitKey{Crawler: "CCBot", Limit: tenFive}
	for i := range 100 {
		if over, wait, ok := l.allow(start, 1, wide, narrow); ok != (i < 5) || !ok && (over != 1 || wait != 6*time.Minute) {
			t.Fatalf("request %d: %v, bucket %d, %v", i, ok, over, wait)
		}
	}
	for i := range 56 {
		if _, _, ok := l.allow(start, 1, wide); ok != (i < 55) {
			t.Fatalf("request %d after 5 of 60: %v", i, ok)
		}
	}
	// If several buckets are empty, the longest wait is returned.
	if over, wait, ok := l.allow(start, 1, narrow, wide); ok || over != 0 || wait != 6*time.Minute {
		t.Errorf("%v, bucket %d, %v", ok, over, wait)
	}
}
