// SPDX-License-Identifier: Apache-2.0

package robotspolicy

import (
	"context"
	"errors"
	"time"

	"github.com/robotspolicy/caddy-robots-policy/site"
)

// outcome is what came of taking up a state of a source.
type outcome struct {
	before  *live // nil: there was none
	now     *live
	err     error // why the state was not taken up; now is what before was
	changes *site.Changes
	tell    func() // tells people; not to be called with checking held
}

// take takes up a state of the source: a new policy is checked and handed to the
// readers that follow, or to all; a broken one, or none, leaves them with the
// policy that they have.
func (d *document) take(r *reader, found reading, err error, all bool) outcome {
	state := stateOf(r.src, found, err)
	d.mark = found.mark // nil after an error: then everything is read anew
	d.mu.Lock()
	before, failing := d.current, d.err
	d.mu.Unlock()
	switch {
	case before != nil && state == before.sum:
		// As it was, or again as it was before somebody broke it.
		d.dropped = ""
		d.note(nil)
		if all {
			d.hand(before, true)
		}
		return outcome{before: before, now: before, tell: func() {
			if failing != nil {
				r.teller.mended(r.src, before)
			}
		}}
	case failing != nil && state == d.dropped:
		if err == nil {
			err = failing
		}
		d.reword(err)
		return outcome{before: before, now: before, err: err, tell: func() {}}
	}
	var l *live
	if err == nil {
		l, err = newLive(r.src.name(), found.data)
	}
	if err != nil {
		d.dropped = state
		d.note(err)
		return outcome{before: before, now: before, err: err, tell: func() { r.teller.failed(r.src, before, err) }}
	}
	return d.adopt(r, found, l, all)
}

// adopt hands a new policy, which is that of what was found, to the readers that
// follow, or to all.
func (d *document) adopt(r *reader, found reading, l *live, all bool) outcome {
	d.mu.Lock()
	before := d.current
	d.mu.Unlock()
	d.mark, d.dropped = found.mark, ""
	d.note(nil)
	// First it is kept: what was served once is served after a crash.
	r.teller.keep(r.src, found)
	d.hand(l, all)
	o := outcome{before: before, now: l}
	if before != nil {
		o.changes = site.Compare(before.site, l.site)
	}
	o.tell = func() { r.teller.loaded(r.src, o) }
	return o
}

// note notes what is wrong with the source now, if anything.
func (d *document) note(err error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if err != nil {
		d.counts.Refused++
	}
	if (err == nil) != (d.err == nil) {
		d.errAt = time.Now()
	}
	d.err = err
}

// reword puts what is wrong with the source in the words of now.
func (d *document) reword(err error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.err = err
}

// hand makes a policy the current one and gives it to the readers that follow,
// or to all.
func (d *document) hand(l *live, all bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.current != nil && d.current != l {
		d.counts.Taken++
	}
	d.current = l
	for _, r := range d.readers {
		if r.follow || all {
			r.give(l)
		}
	}
}

// reload reads the source now and gives what it finds to every reader, also to
// those that do not follow.
func (d *document) reload(ctx context.Context) outcome {
	r, _ := d.asked()
	if r == nil {
		return outcome{err: errors.New("no site uses this policy any more"), tell: func() {}}
	}
	if err := d.checking.take(ctx); err != nil {
		now := d.status().current
		return outcome{before: now, now: now, err: err, tell: func() {}}
	}
	defer d.checking.pass()
	found, err := d.read(ctx, r, nil)
	return d.take(r, found, err, true)
}
