// SPDX-License-Identifier: Apache-2.0

package robotspolicy

import (
	"context"
	"errors"
	"sync"
	"time"
)

// bucket lets so many pass a second, and about as many at once. The rest waits,
// as long as there is room to wait.
type bucket struct {
	rate float64

	mu      sync.Mutex
	next    time.Time // when the next may pass
	waiting int
}

var errBusy = errors.New("too many hosts are asked for at once")

// wait returns when its caller may pass.
func (b *bucket) wait(ctx context.Context) error {
	b.mu.Lock()
	now := time.Now()
	if earliest := now.Add(-time.Second); b.next.Before(earliest) {
		b.next = earliest
	}
	delay := b.next.Sub(now)
	if delay > 0 && b.waiting >= maxWaiting {
		b.mu.Unlock()
		return errBusy
	}
	b.next = b.next.Add(b.each())
	if delay <= 0 {
		b.mu.Unlock()
		return nil
	}
	b.waiting++
	b.mu.Unlock()
	defer func() {
		b.mu.Lock()
		b.waiting--
		b.mu.Unlock()
	}()
	timer := time.NewTimer(delay)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		b.mu.Lock()
		b.next = b.next.Add(-b.each()) // for somebody else
		b.mu.Unlock()
		return ctx.Err()
	}
}

// each is how long one takes.
func (b *bucket) each() time.Duration { return time.Duration(float64(time.Second) / b.rate) }
