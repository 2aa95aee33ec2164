// SPDX-License-Identifier: Apache-2.0

package source

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"sync/atomic"
	"time"

	"go.uber.org/zap"
	"golang.org/x/sync/semaphore"

	"github.com/robotspolicy/caddy-robots-policy/site"
)

// Document is a policy with its source, which it watches for those stores that want it.
// It keeps serving the last good version.
type Document struct {
	Name   string // of the source
	counts *counters

	// The file of a host, which Hosts polls. It is nil if the document is for all hosts, whose users have its
	// source.
	file *source
	used atomic.Int64 // when a request came for it, in Unix seconds

	// loading is held while the source is read and a change is applied, one at a
	// time. It is acquired before mu, and guards the fields up to users.
	loading   *semaphore.Weighted
	validator any       // of the last read; nil after one that failed
	pending   string    // a new state of the source that was seen once
	rejected  string    // the last state of the source that was not loaded
	marked    time.Time // when its saved version was last marked as used
	undecided time.Time // when the guard last failed to decide on it; zero: it did
	unmarked  int       // how often it may be tried to note in the history that the present text is served

	failures atomic.Int32 // reads in a row that failed

	users // its mutex guards what follows

	current  atomic.Pointer[Snapshot] // the last good version; nil before the first
	err      error                    // why the current state of the source is not served; nil if it is
	absent   bool                     // err says that the source has no policy yet
	errSince time.Time
	checked  time.Time // when the source was last read
	previous string    // the SHA-256 of the text that was served directly before the present one

	cost      string // what search engines lose by the undo that is served, or "" if there is none
	costSince time.Time

	memory *site.Memory // of all its versions
}

func newDocument(name string) *Document {
	return &Document{Name: name, loading: semaphore.NewWeighted(1), counts: new(counters), memory: site.NewMemory(false)}
}

// Current returns the version that is served, nil before the first one.
func (d *Document) Current() *Snapshot { return d.current.Load() }

// open makes sure that there is a version for a user that is about to join. The source is read even if the document
// is in use by a configuration that is about to be replaced, as its version may be out of date. A policy with an
// error rejects the new configuration; a network failure does not.
func (d *Document) open(ctx context.Context, u *user) error {
	fromLastGood := u.src.startsFromLastGood && u.watch
	if fromLastGood && d.Current() != nil {
		return nil // without waiting for a read in progress
	}
	if err := d.loading.Acquire(ctx, 1); err != nil {
		return err
	}
	defer d.loading.Release(1)
	if fromLastGood && d.hasVersion(u) {
		return nil
	}
	found, err := d.read(ctx, u.src, nil)
	state := u.src.state(found, err)
	var s *Snapshot
	switch now := d.Current(); {
	case err != nil && u.src.remote && d.hasVersion(u):
		d.noteRejected(u, state, err)
		return nil
	case err != nil:
		err = fmt.Errorf("reading the policy: %w", err)
	case now != nil && now.SHA256 == sumOf(found.data):
		d.serves(found)
		return nil
	default:
		s, err = Compile(u.src.name, found.data)
		if err != nil && d.wasAccepted(u, found.data) {
			s, err = compileAccepted(u.src.name, found.data)
		}
	}
	if err == nil && d.waitsForGuard(u, found.data) {
		return nil
	}
	if now := d.Current(); err == nil && now != nil {
		// A text that the guard rejected is not loaded just because a configuration is loaded.
		if returns, accepted := d.returned(u.src, s.SHA256); returns != Undo {
			if err := d.allows(u.Options, u.src, now, s, accepted); err != nil {
				d.noteRejected(u, state, err)
				return nil
			}
		}
	}
	if err == nil {
		u.report(u.src, d.adopt(u.Options, u.src, found, s, false))
		return nil
	}
	if d.isFirst(u, found, err) {
		if d.rejected == "" {
			u.Logger.Warn("there is no policy yet, and robots_policy does nothing until there is one: publish it, or write the file", zap.String("policy", u.src.name), zap.Error(err))
			d.setError(err, true)
		}
		d.rejected = state
		return nil
	}
	// At a start, the last good policy is better than no site at all, and sites without a policy that a storage or
	// a web server does not give are better, too. Where a configuration runs already, that one stays, and the error
	// says why; unless it has no policy either.
	if !u.Strict && d.startLastGood(u) || u.src.remote && !u.ReadOnly && (!u.Strict || d.unavailable() != nil) {
		d.noteRejected(u, state, err)
		return nil
	}
	return err
}

// waitsForGuard reports whether the last good policy is served at first, because the text is another one, and the guard
// starts with the configuration. The first poll applies the text, as at a reload.
func (d *Document) waitsForGuard(u *user, data []byte) bool {
	if running, _ := d.active(); u.Guard == nil || u.ReadOnly || running != nil {
		return false
	}
	if d.Current() == nil && (u.accepted(u.src, data) || !d.startLastGood(u)) {
		return false
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	d.retry = unavailableRetry
	return true
}

// noteRejected notes and reports why the state of the source is not served when a configuration is loaded.
func (d *Document) noteRejected(u *user, state string, err error) {
	d.rejected = state
	d.setError(err, false)
	u.report(u.src, Outcome{Now: d.Current(), Err: err, news: rejected})
}

// wasAccepted reports whether a text was the last good version, or is an undo, so that its tests were passed before.
func (d *Document) wasAccepted(u *user, data []byte) bool {
	if u.accepted(u.src, data) {
		return true
	}
	returns, _ := d.returned(u.src, sumOf(data))
	return returns == Undo
}

// UnavailableError is why it is not known whether there is a policy, or what it says.
type UnavailableError struct{ Err error }

func (e UnavailableError) Error() string { return "the policy is not available: " + e.Err.Error() }

func (e UnavailableError) Unwrap() error { return e.Err }

// unavailable returns an UnavailableError while there is no version to serve, although there may be a policy.
func (d *Document) unavailable() error {
	if d.Current() != nil {
		return nil
	}
	d.mu.RLock()
	defer d.mu.RUnlock()
	if d.err == nil || d.absent {
		return nil
	}
	return UnavailableError{d.err}
}

// isFirst reports whether a policy is still to be written: its source has nothing, and
// nothing was ever accepted from it. A file that is missing when a configuration replaces one
// that runs is more likely a name that was mistyped, and one that is validated should be there.
func (d *Document) isFirst(u *user, found content, err error) bool {
	return u.src.isNothing(found, err) && !u.ReadOnly && (u.src.stored != nil || !u.Strict) && !d.hasVersion(u)
}

// isNothing reports whether a source has no policy: no file, no key, or an empty file. An empty key is damaged.
func (src *source) isNothing(found content, err error) bool {
	return errors.Is(err, fs.ErrNotExist) || src.stored == nil && found.data != nil && len(bytes.TrimSpace(found.data)) == 0
}

// hasVersion reports whether there is a version to serve, if only a saved one.
func (d *Document) hasVersion(u *user) bool { return d.Current() != nil || d.startLastGood(u) }

// startLastGood makes the last good policy the current one, if there is one.
func (d *Document) startLastGood(u *user) bool {
	s, before := u.loadLastGood(u.src)
	if s == nil {
		return false
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	d.previous = before
	d.setCurrent(s)
	u.pool.watchDates(s)
	return true
}

// join gives a user the current version and, if it watches, each one that follows.
func (d *Document) join(u *user) {
	d.mu.Lock()
	defer d.mu.Unlock()
	u.set(d.Current())
	if d.Current() == nil && !d.absent {
		d.users.retry = unavailableRetry
	}
	d.users.join(u, d.poll)
}

// poll reads the source once and applies what has changed. It returns when to poll again.
func (d *Document) poll(ctx context.Context) (wait time.Duration) {
	u, interval := d.active()
	switch {
	case u == nil:
		return startupPoll
	case interval == 0: // there is a version now without a watcher
		return idlePoll
	}
	wait = interval // after a panic
	defer u.recoverPanic()
	if d.loading.Acquire(ctx, 1) != nil {
		return wait
	}
	d.markLastGood(u)
	if out := d.update(ctx, u.Options, u.src, false); out.settle > 0 {
		return out.settle
	}
	wait = nextPoll(interval, int(d.failures.Load()), u.src.remote)
	if d.Current() == nil {
		wait = min(wait, unavailableRetry)
	}
	return wait
}

const (
	idlePoll = time.Minute
	// unavailableRetry is the longest time until a source without a policy yet is asked again.
	unavailableRetry = 30 * time.Second
)

// nextPoll returns how long to wait for the next poll. Remote sources are polled
// less often while they fail, and with jitter, so that a fleet does not poll at once.
func nextPoll(interval time.Duration, failures int, remote bool) time.Duration {
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
	return interval - rand.N(interval/5+1)
}

// Reload reads the source now and gives the result to every store, also to those that do not watch.
func (d *Document) Reload(ctx context.Context) Outcome {
	u, _ := d.active()
	if u == nil {
		return Outcome{Err: errUnused}
	}
	if err := d.loading.Acquire(ctx, 1); err != nil {
		now := d.Current()
		return Outcome{Before: now, Now: now, Err: err}
	}
	return d.update(ctx, u.Options, u.src, true)
}

func (d *Document) read(ctx context.Context, src *source, last any) (content, error) {
	found, err := src.read(ctx, last)
	d.mu.Lock()
	d.checked = time.Now()
	d.mu.Unlock()
	if err == nil || errors.Is(err, errUnchanged) {
		d.failures.Store(0)
	} else {
		d.failures.Add(1)
	}
	return found, err
}
