// SPDX-License-Identifier: Apache-2.0

package source

import (
	"context"
	"errors"
	"time"

	"github.com/robotspolicy/caddy-robots-policy/site/compare"
)

// Outcome is the result of applying a state of a source. A state is the text of the source, or the error of reading it.
type Outcome struct {
	Before  *Snapshot // the previous version, or nil
	Now     *Snapshot
	Err     error // the reason why the state was rejected; if not nil, Now equals Before
	Changes *compare.Diff

	news    news
	undo    bool          // Now has the text that servers served before the previous version
	settle  time.Duration // how long the state must stay the same before it is applied
	missing bool          // the file of a host is gone
}

// news is the kind of change that the log and events report about an Outcome.
type news int

const (
	nothing   news = iota
	loaded         // a new version is served
	rejected       // the source's present text cannot be served
	recovered      // the source had an error, and now has the served version again
)

// update reads a source and, if its state has changed, applies the new state and reports the result. If all is set, it
// applies the state at once, even if a program may still be writing the text, and also gives the version to stores that
// do not watch. The caller must hold d.loading; update releases it.
func (d *Document) update(ctx context.Context, o *Options, src *source, all bool) Outcome {
	out := d.readAndApply(ctx, o, src, all)
	o.report(src, out) // d.loading is released here, because a handler of the event may load a configuration
	d.alert(o, src, out)
	d.markServed(ctx, o, src)
	return out
}

func (d *Document) readAndApply(ctx context.Context, o *Options, src *source, all bool) Outcome {
	defer d.loading.Release(1)
	last := d.validator
	if all && d.file == nil {
		last = nil
	}
	found, err := d.read(ctx, src, last)
	now := d.Current()
	switch {
	case ctx.Err() != nil:
		return Outcome{Before: now, Now: now, Err: ctx.Err()}
	case errors.Is(err, errUnchanged):
		return Outcome{Before: now, Now: now}
	case !all && d.settling(src, found, err):
		return Outcome{Before: now, Now: now, settle: src.settle}
	case d.file != nil && isMissing(err):
		return Outcome{Before: now, Now: now, missing: true}
	}
	return d.apply(o, src, found, err, all)
}

// settling reports whether the caller must not apply the state of the source yet. A new state must first stay the same
// for the time src.settle. This also applies to an error, because an editor may have removed the old file, and not yet
// written the new one.
func (d *Document) settling(src *source, found content, err error) bool {
	state := src.state(found, err)
	now := d.Current()
	if src.settle == 0 || state == d.rejected || now != nil && state == now.SHA256 || state == d.pending {
		d.pending = ""
		return false
	}
	d.pending = state
	return true
}

// undecidedRetry is the wait before Options.Guard is asked again after it could not decide.
const undecidedRetry = time.Minute

// apply applies a state of the source. It compiles a new text, and gives the resulting version to the stores that watch
// the source. If all is set, every store gets the version. If there is no text, or the text has an error, the stores
// keep their version.
func (d *Document) apply(o *Options, src *source, found content, err error, all bool) Outcome {
	before := d.Current()
	state := src.state(found, err)
	d.mu.RLock()
	lastErr := d.err
	d.mu.RUnlock()
	if before != nil && state == before.SHA256 {
		return d.unchanged(found, before, lastErr != nil, all)
	}
	known := lastErr != nil && (state == d.rejected || before == nil && src.isNothing(found, err))
	if known && (d.undecided.IsZero() || !all && time.Since(d.undecided) < undecidedRetry) {
		if err == nil {
			err = lastErr
		}
		return d.reject(src, state, found, err, known)
	}
	d.undecided = time.Time{}
	var s *Snapshot
	var accepted []string
	returns := NeverServed
	if err == nil {
		returns, accepted = d.returned(src, state)
		s, err = compileReturned(src.name, found.data, returns)
	}
	if err == nil && before != nil && returns != Undo {
		err = d.allows(o, src, before, s, accepted)
	}
	if err != nil {
		if _, ok := errors.AsType[UndecidedError](err); ok {
			d.undecided = time.Now()
		}
		return d.reject(src, state, found, err, known && !d.undecided.IsZero())
	}
	out := d.adopt(o, src, found, s, all)
	out.undo = returns == Undo
	return out
}

// returned determines whether a new text of the source was served before. sum is the hash of the text. returned uses
// both d.previous and the history in the storage, because this server may have missed versions. If the result is
// Earlier, a person has published an earlier text again. The second result then lists the search engines that may lose
// something, because this person has accepted their losses.
func (d *Document) returned(src *source, sum string) (Return, []string) {
	d.mu.RLock()
	previous := d.previous
	d.mu.RUnlock()
	if sum == previous {
		return Undo, nil
	}
	if src.stored == nil {
		return NeverServed, nil
	}
	st, err := within(context.Background(), readTimeout, "the storage", src.stored.standing)
	if err != nil || st.SHA256 != sum {
		return NeverServed, nil
	}
	r := st.returned()
	if r == Earlier {
		return r, st.History[0].Accepted
	}
	return r, nil
}

// reject records that a state of the source is not served. known means that this state of the source was reported
// before. In that case, it is not reported again. Only the stored error is updated, because its wording may have
// changed.
func (d *Document) reject(src *source, state string, found content, err error, known bool) Outcome {
	d.rejected, d.validator = state, found.validator
	if !d.undecided.IsZero() {
		d.validator = nil // forces the next read to return the text, even if it has not changed
	}
	now := d.Current()
	out := Outcome{Before: now, Now: now, Err: err}
	if absent := src.isNothing(found, err); known {
		d.mu.Lock()
		d.err, d.absent = err, absent
		d.mu.Unlock()
	} else {
		d.setError(err, absent)
		out.news = rejected
	}
	return out
}

// unchanged returns the outcome if the source still has the text of the current version s. hadError means that the
// previous read of the source led to an error, so the outcome reports that the source has recovered. If all is set,
// unchanged gives s to every store.
func (d *Document) unchanged(found content, s *Snapshot, hadError, all bool) Outcome {
	d.serves(found)
	if all {
		d.publish(s, true)
	} else {
		d.mu.Lock()
		d.retry = 0
		d.mu.Unlock()
	}
	out := Outcome{Before: s, Now: s}
	if hadError {
		out.news = recovered
	}
	return out
}

// adopt makes s, which was compiled from found, the current version.
func (d *Document) adopt(o *Options, src *source, found content, s *Snapshot, all bool) Outcome {
	before := d.Current()
	d.serves(found)
	saved := o.saveLastGood(src, s) // saved before it is served, so that a crash does not bring back the old version
	if before != nil && before.SHA256 != s.SHA256 {
		saved = before.SHA256
	}
	d.mu.Lock()
	d.previous = saved
	d.mu.Unlock()
	if src.stored != nil {
		d.unmarked = markTries
	}
	d.publish(s, all)
	o.pool.watchDates(s)
	out := Outcome{Before: before, Now: s, news: loaded}
	if before != nil {
		out.Changes = compare.Sites(before.Site, s.Site, compare.Options{})
	}
	return out
}

// serves records that the source's present state is served.
func (d *Document) serves(found content) {
	d.validator, d.rejected = found.validator, ""
	d.setError(nil, false)
}

// setError sets or, for nil, clears the present error of the source. absent means that the source does not have a
// policy yet.
func (d *Document) setError(err error, absent bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if err != nil {
		d.counts.rejected.Add(1)
	}
	if (err == nil) != (d.err == nil) {
		d.errSince = time.Now()
	}
	d.err, d.absent = err, absent
}

// publish makes a version the current one. The stores that watch get the version or, if all is set, every store gets
// it.
func (d *Document) publish(s *Snapshot, all bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if now := d.Current(); now != nil && now != s {
		d.counts.applied.Add(1)
		d.cost, d.costSince = "", time.Time{}
	}
	d.setCurrent(s)
	for _, u := range d.all {
		// If retry is set, no version could be loaded at the start, so stores that do not watch need this one, too.
		if u.watch || all || d.retry > 0 {
			u.set(s)
		}
	}
	d.retry = 0
}

// setCurrent sets the current version. The caller must hold d.mu, and no other goroutine may have s yet.
func (d *Document) setCurrent(s *Snapshot) {
	if d.Current() != s {
		s.Memory = d.memory
	}
	d.current.Store(s)
}
