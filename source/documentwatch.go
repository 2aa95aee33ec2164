// SPDX-License-Identifier: Apache-2.0

package source

import (
	"context"
	"errors"
	"time"
)

// poll reads the source once and applies what has changed. It returns when to poll
// again.
func (d *Document) poll(ctx context.Context) time.Duration {
	r, interval := d.running()
	if r == nil || interval == 0 {
		return startupPoll
	}
	wait, notify := interval, func() {} // after a panic
	func() {
		defer r.notifier.recoverPanic()
		if d.reading.Acquire(ctx, 1) != nil {
			return
		}
		defer d.reading.Release(1)
		wait, notify = d.pollOnce(ctx, r, interval)
	}()
	defer r.notifier.recoverPanic()
	notify()
	return wait
}

// pollOnce is poll, with reading held. The caller calls notify without it.
func (d *Document) pollOnce(ctx context.Context, r *subscriber, interval time.Duration) (wait time.Duration, notify func()) {
	nothing := func() {}
	found, err := d.read(ctx, r, d.validator)
	if ctx.Err() != nil {
		return interval, nothing
	}
	if errors.Is(err, errUnchanged) {
		d.failures = 0
		return nextPoll(interval, 0, r.src.remote()), nothing
	}
	if d.failures++; err == nil {
		d.failures = 0
	}
	if wait := d.settling(r, found, err); wait > 0 {
		return wait, nothing
	}
	o := d.apply(r, found, err, false)
	return nextPoll(interval, d.failures, r.src.remote()), o.Notify
}

// settling returns how long a new state of the source must still stay the same
// before it is applied, 0 if it has. Errors must settle as well: an editor may have
// removed the old file and not yet written the new one.
func (d *Document) settling(r *subscriber, found content, err error) time.Duration {
	settle, state := r.src.settle(), stateOf(r.src, found, err)
	d.mu.Lock()
	defer d.mu.Unlock()
	if settle == 0 || state == d.rejected || d.current != nil && state == d.current.SHA256 || state == d.pending {
		d.pending = ""
		return 0
	}
	d.pending = state
	return settle
}

// join gives a subscriber the current version and, if it watches, each one that
// follows.
func (d *Document) join(r *subscriber) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.subscribers = append(d.subscribers, r)
	r.set(d.current)
	switch {
	case !r.watch:
	case d.stop == nil:
		ctx, cancel := context.WithCancel(context.Background())
		d.stop, d.woken = cancel, make(chan struct{}, 1)
		go watch(ctx, d.woken, d.poll)
	default:
		wake(d.woken) // the next poll may be later than this subscriber wants
	}
}
