// SPDX-License-Identifier: Apache-2.0

package source

import (
	"context"
	"errors"
	"time"

	"github.com/robotspolicy/caddy-robots-policy/internal/recorders"
	"github.com/robotspolicy/caddy-robots-policy/site/compare"
)

// apply applies a state of the source. A new version is compiled and given to the
// subscribers that watch, or to all; if it has an error, or there is none, they keep
// the version that they have.
func (d *Document) apply(r *subscriber, found content, err error, all bool) Outcome {
	state := stateOf(r.src, found, err)
	d.validator = found.validator // nil after an error: the next read is a full one
	d.mu.Lock()
	before, lastErr := d.current, d.err
	d.mu.Unlock()
	switch {
	case before != nil && state == before.SHA256:
		return d.unchanged(r, before, lastErr != nil, all)
	case lastErr != nil && state == d.rejected && (d.undecided.IsZero() || !all && time.Since(d.undecided) < undecidedRetry):
		if !d.undecided.IsZero() {
			d.validator = nil // the same text must be read again
		}
		if err == nil {
			err = lastErr
		}
		d.updateError(err)
		return Outcome{Before: before, Now: before, Err: err, Notify: noNotification}
	}
	known := lastErr != nil && state == d.rejected // and not decided until now
	d.undecided = time.Time{}
	var s *Snapshot
	if err == nil {
		s, err = Compile(r.src.name(), found.data)
	}
	if err == nil && before != nil {
		err = checkReload(r.src.name(), before, s)
	}
	if err == nil {
		s.PerHost = d.perHost
	} else {
		d.rejected = state
		if _, ok := errors.AsType[recorders.UndecidedError](err); ok {
			d.undecided, d.validator = time.Now(), nil
			if known { // it was reported the first time
				d.updateError(err)
				return Outcome{Before: before, Now: before, Err: err, Notify: noNotification}
			}
		}
		d.setError(err)
		return Outcome{Before: before, Now: before, Err: err, Notify: func() { r.notifier.rejected(r.src, before, err) }}
	}
	return d.adopt(r, found, s, all)
}

const (
	// guardTimeout bounds how long the recorder that guards reloads may take.
	guardTimeout = time.Minute
	// undecidedRetry is after how long it is asked again if it could not decide.
	undecidedRetry = time.Minute
)

// checkReload asks whether recent traffic allows a new version.
func checkReload(name string, before, after *Snapshot) error {
	ctx, cancel := context.WithTimeout(context.Background(), guardTimeout)
	defer cancel()
	return recorders.CheckReload(ctx, name, before.Site, after.Site)
}

// unchanged is the outcome for a source that holds the current version, still or
// again.
func (d *Document) unchanged(r *subscriber, s *Snapshot, recovered, all bool) Outcome {
	d.rejected = ""
	d.setError(nil)
	if all {
		d.publish(s, true)
	}
	o := Outcome{Before: s, Now: s, Notify: noNotification}
	if recovered {
		o.Notify = func() { r.notifier.recovered(r.src, s) }
	}
	return o
}

// adopt makes a new version, compiled from found, the current one.
func (d *Document) adopt(r *subscriber, found content, s *Snapshot, all bool) Outcome {
	d.mu.Lock()
	before := d.current
	d.mu.Unlock()
	d.validator, d.rejected = found.validator, ""
	d.setError(nil)
	// Saved before it is served, so that it is served after a crash too.
	r.notifier.saveLastGood(r.src, found)
	d.publish(s, all)
	o := Outcome{Before: before, Now: s}
	if before != nil {
		o.Changes = compare.Policies(before.Site.Policy, s.Site.Policy, compare.Options{})
	}
	o.Notify = func() { r.notifier.applied(r.src, o) }
	return o
}

// setError records what is wrong with the source now, nil for nothing.
func (d *Document) setError(err error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if err != nil {
		d.counts.Rejected++
	}
	if (err == nil) != (d.err == nil) {
		d.errSince = time.Now()
	}
	d.err = err
}

// updateError replaces the error by a newer one of the same state, which may be
// worded differently.
func (d *Document) updateError(err error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.err = err
}

// publish makes a version the current one and gives it to the subscribers that
// watch, or to all.
func (d *Document) publish(s *Snapshot, all bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.current != nil && d.current != s {
		d.counts.Applied++
	}
	d.setCurrent(s)
	for _, r := range d.subscribers {
		if r.watch || all {
			r.set(s)
		}
	}
}

// Reload reads the source now and gives the result to every subscriber, also to
// those that do not watch.
func (d *Document) Reload(ctx context.Context) Outcome {
	r, _ := d.running()
	if r == nil {
		return Outcome{Err: errors.New("no site uses this policy any more"), Notify: noNotification}
	}
	if err := d.reading.Acquire(ctx, 1); err != nil {
		now := d.Status().Current
		return Outcome{Before: now, Now: now, Err: err, Notify: noNotification}
	}
	defer d.reading.Release(1)
	found, err := d.read(ctx, r, nil)
	return d.apply(r, found, err, true)
}
