// SPDX-License-Identifier: Apache-2.0

package robotspolicy

import (
	"context"
	"errors"
	"math/rand/v2"
	"time"
)

// run follows the source until ctx ends.
func (d *document) run(ctx context.Context, woken <-chan struct{}) {
	follow(ctx, woken, d.look)
}

// follow looks, and looks again after as long as look says, until ctx ends. Whoever
// wakes it has it look soon.
func follow(ctx context.Context, woken <-chan struct{}, look func(context.Context) time.Duration) {
	timer := time.NewTimer(starting)
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-woken:
			timer.Reset(starting)
			continue
		case <-timer.C:
		}
		timer.Reset(look(ctx))
	}
}

// asked returns the newest running reader, and the interval at which to look.
func (d *document) asked() (*reader, time.Duration) {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.newest(), d.interval()
}

// starting is how long to wait for a configuration that is being loaded. Until
// it runs, nothing is read and nobody is told: it may only be validated.
const starting = 20 * time.Millisecond

// look reads the source once and takes up what is new there. It returns when to
// look again.
func (d *document) look(ctx context.Context) time.Duration {
	r, interval := d.asked()
	if r == nil || interval == 0 {
		return starting
	}
	wait, tell := interval, func() {} // after a panic
	func() {
		defer r.teller.recover()
		if d.checking.take(ctx) != nil {
			return
		}
		defer d.checking.pass()
		wait, tell = d.lookLocked(ctx, r, interval)
	}()
	defer r.teller.recover()
	tell()
	return wait
}

// lookLocked looks at the source once, with checking held. It returns when to
// look again, and what is to be told.
func (d *document) lookLocked(ctx context.Context, r *reader, interval time.Duration) (wait time.Duration, tell func()) {
	nothing := func() {}
	found, err := d.read(ctx, r, d.mark)
	if ctx.Err() != nil {
		return interval, nothing
	}
	if errors.Is(err, errUnchanged) {
		d.failures = 0
		return pause(interval, 0, r.src.remote()), nothing
	}
	if d.failures++; err == nil {
		d.failures = 0
	}
	if wait := d.unsettled(r, found, err); wait > 0 {
		return wait, nothing
	}
	o := d.take(r, found, err, false)
	return pause(interval, d.failures, r.src.remote()), o.tell
}

// pause is how long to wait before the next look. Sources across a network are
// asked less often while they fail, and not by a whole fleet at once.
func pause(interval time.Duration, failures int, remote bool) time.Duration {
	if !remote {
		return interval
	}
	const longest = 5 * time.Minute
	for range failures {
		if interval >= longest {
			break
		}
		interval = min(2*interval, longest)
	}
	return interval - time.Duration(rand.Int64N(int64(interval)/5+1))
}

// unsettled returns when to look at the source again before its state is taken
// up, 0 if it stands. An error has to stand as well: an editor may have put the
// old file away and not yet the new one in its place.
func (d *document) unsettled(r *reader, found reading, err error) time.Duration {
	settle, state := r.src.settle(), stateOf(r.src, found, err)
	d.mu.Lock()
	defer d.mu.Unlock()
	if settle == 0 || state == d.dropped || d.current != nil && state == d.current.sum || state == d.pending {
		d.pending = ""
		return 0
	}
	d.pending = state
	return settle
}

// stateOf tells states of a source apart. What a network answers when it does not
// work can be new each time, with ports and numbers of requests: that is one
// state.
func stateOf(src source, found reading, err error) string {
	switch {
	case err == nil:
		return sumOf(found.data)
	case src.remote():
		return "error"
	}
	return "error: " + err.Error()
}

// read reads the source, for a limited time.
func (d *document) read(ctx context.Context, r *reader, last any) (reading, error) {
	ctx, cancel := context.WithTimeout(ctx, readTimeout)
	defer cancel()
	found, err := r.patience.read(ctx, func(ctx context.Context) (reading, error) { return r.src.read(ctx, last) })
	d.mu.Lock()
	d.checked = time.Now()
	d.mu.Unlock()
	return found, err
}
