// SPDX-License-Identifier: Apache-2.0

package source

import (
	"context"
	"fmt"
)

// open makes sure that there is a version for a subscriber that is about to join.
// The source is read even if the document is in use by the configuration that is
// about to be replaced, as its version may be out of date. A policy with an error
// rejects the new configuration; a network failure does not.
func (d *Document) open(ctx context.Context, r *subscriber) error {
	fromLastGood := r.src.startsFromLastGood() && r.watch
	if fromLastGood && d.Status().Current != nil {
		return nil // without waiting for a read in progress
	}
	if err := d.reading.Acquire(ctx, 1); err != nil {
		return err
	}
	defer d.reading.Release(1)
	current := d.Status().Current
	if fromLastGood && (current != nil || d.startLastGood(r) != nil) {
		return nil
	}
	found, err := d.read(ctx, r, nil)
	if err != nil {
		if r.src.remote() && (current != nil || d.startLastGood(r) != nil) {
			d.setError(err)
			return nil
		}
		return d.openFallback(r, fmt.Errorf("reading the policy: %w", err))
	}
	if current != nil && sumOf(found.data) == current.SHA256 {
		d.validator, d.rejected = found.validator, ""
		d.setError(nil)
		return nil
	}
	s, err := Compile(r.src.name(), found.data)
	if err != nil && r.notifier.accepted(r.src, found.data) {
		s, err = compileAccepted(r.src.name(), found.data)
	}
	if err != nil {
		return d.openFallback(r, err)
	}
	d.adopt(r, found, s, false).Notify()
	return nil
}

// openFallback opens a document whose source has an error. While Caddy is starting
// up, the last good policy is better than no site at all. Where a configuration runs
// already, that one stays, and the error says why.
func (d *Document) openFallback(r *subscriber, err error) error {
	if !startingUp() {
		return err
	}
	s := d.startLastGood(r)
	if s == nil {
		return err
	}
	d.setError(err)
	r.notifier.rejected(r.src, s, err)
	return nil
}

// startLastGood makes the last good policy the current one. It returns nil if there
// is none.
func (d *Document) startLastGood(r *subscriber) *Snapshot {
	s, validator := r.notifier.loadLastGood(r.src)
	if s != nil {
		d.validator = validator
		d.mu.Lock()
		d.setCurrent(s)
		d.mu.Unlock()
	}
	return s
}
