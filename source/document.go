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

// Document is a policy with its source. It watches the source on behalf of the stores that follow changes, and serves
// the last good version while the source has an error.
type Document struct {
	Name   string // name of the source
	counts *counters

	// file is the source if the document is the policy file of a single host, which Hosts polls. It is nil if the
	// document applies to all hosts. In that case, the source is in the field src of each user.
	file *source
	used atomic.Int64 // time of the last request that used the document, in Unix seconds

	// loading is a lock. A goroutine holds it while it reads the source and applies a change, so that only one
	// goroutine does this. It is acquired before mu, and protects the fields from validator to unmarked.
	loading   *semaphore.Weighted
	validator any       // validator of the last read; nil if the read failed
	pending   string    // a new state that has not stayed the same for long enough yet
	rejected  string    // the last rejected state
	marked    time.Time // time when the saved version was last marked as in use
	undecided time.Time // time when Options.Guard last could not decide; zero if it decided
	unmarked  int       // number of remaining attempts to record in the history that the present text is served

	failures atomic.Int32 // number of failed reads in a row

	users // its mutex protects the fields below

	current  atomic.Pointer[Snapshot] // the last good version; nil before the first version
	err      error                    // why the present state of the source is not served, or nil if it is
	absent   bool                     // whether err means that the source does not have a policy yet
	errSince time.Time
	checked  time.Time // time when the source was last read
	previous string    // SHA-256 of the text served before the present text

	cost      string // what search engines lose because of the served undo, and which tests of the policy fail; or ""
	costSince time.Time

	memory *site.Memory // shared by all versions
}

func newDocument(name string) *Document {
	return &Document{Name: name, loading: semaphore.NewWeighted(1), counts: new(counters), memory: site.NewMemory(false)}
}

// Current returns the version in force, or nil before the first one.
func (d *Document) Current() *Snapshot { return d.current.Load() }

// open makes sure that the document has a version before a user joins. It reads the source even if another
// configuration already uses the document, because that configuration's version may be out of date. If the policy has
// an error, and the server cannot start with the last good version, open returns the error, and Caddy rejects the new
// configuration. For a network failure, open returns an error only if there is no version to serve, and Options.Strict
// or Options.ReadOnly is set.
func (d *Document) open(ctx context.Context, u *user) error {
	fromLastGood := u.src.startsFromLastGood && u.watch
	if fromLastGood && d.Current() != nil {
		return nil // do not wait for a read in progress
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
		// A configuration that is being loaded does not get a text that Options.Guard rejects.
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
			u.Logger.Warn("robots_policy does nothing yet, because the policy does not exist; publish it, or write the file", zap.String("policy", u.src.name), zap.Error(err))
			d.setError(err, true)
		}
		d.rejected = state
		return nil
	}
	// When the server starts, serving the last good policy is better than not starting. If there is no last good
	// policy, and the source is a storage or a web server that does not answer, the server starts without a policy. If
	// a configuration with a policy is already running (Strict), open returns an error, so that Caddy rejects the new
	// configuration, and the old one keeps running.
	if !u.Strict && d.startLastGood(u) || u.src.remote && !u.ReadOnly && (!u.Strict || d.unavailable() != nil) {
		d.noteRejected(u, state, err)
		return nil
	}
	return err
}

// waitsForGuard reports whether data, the text of the source, must wait for Options.Guard, which works only when the
// configuration is running. Until then, an earlier version is served. The first poll handles data like a reload.
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

// noteRejected records and reports why the state of the source is not served when a configuration is loaded.
func (d *Document) noteRejected(u *user, state string, err error) {
	d.rejected = state
	d.setError(err, false)
	u.report(u.src, Outcome{Now: d.Current(), Err: err, news: rejected})
}

// wasAccepted reports whether data is the last good version or an undo. Such a text has passed its tests before.
func (d *Document) wasAccepted(u *user, data []byte) bool {
	if u.accepted(u.src, data) {
		return true
	}
	returns, _ := d.returned(u.src, sumOf(data))
	return returns == Undo
}

// UnavailableError means that the source could not be read, so it is not known whether there is a policy.
type UnavailableError struct{ Err error }

func (e UnavailableError) Error() string { return "the policy is not available: " + e.Err.Error() }

func (e UnavailableError) Unwrap() error { return e.Err }

// unavailable returns an UnavailableError if there is no version to serve, but there may be a policy.
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

// isFirst reports whether the operator has not written the policy yet. This is the case if the source is empty, and no
// text from it was ever accepted. If Options.Strict is set, a configuration is already running, and a missing file
// probably has a mistyped name in the new configuration. So isFirst then returns false for a policy in a file. It also
// returns false if Options.ReadOnly is set. Like hasVersion, it may make a saved version the current one.
func (d *Document) isFirst(u *user, found content, err error) bool {
	return u.src.isNothing(found, err) && !u.ReadOnly && (u.src.stored != nil || !u.Strict) && !d.hasVersion(u)
}

// isNothing reports whether a source has no policy, because the file or key does not exist or the file is empty. It
// returns false for a key with an empty value, because such a value indicates damage.
func (src *source) isNothing(found content, err error) bool {
	return errors.Is(err, fs.ErrNotExist) || src.stored == nil && found.data != nil && len(bytes.TrimSpace(found.data)) == 0
}

// hasVersion reports whether there is a version to serve. If there is only a saved version, hasVersion makes it the
// current one.
func (d *Document) hasVersion(u *user) bool { return d.Current() != nil || d.startLastGood(u) }

// startLastGood makes the last good policy the current version, and reports whether there is one.
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

// join gives a user the current version. If the user watches, it also gets every later version.
func (d *Document) join(u *user) {
	d.mu.Lock()
	defer d.mu.Unlock()
	u.set(d.Current())
	if d.Current() == nil && !d.absent {
		d.users.retry = unavailableRetry
	}
	d.users.join(u, d.poll)
}

// poll reads the source once and applies a change. It returns the time until the next poll.
func (d *Document) poll(ctx context.Context) (wait time.Duration) {
	u, interval := d.active()
	switch {
	case u == nil:
		return startupPoll
	case interval == 0: // a version is loaded, and no store watches the source
		return idlePoll
	}
	wait = interval // used if poll panics
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
	// unavailableRetry is the longest wait between two reads of a source if no version of it was loaded since the
	// server started.
	unavailableRetry = 30 * time.Second
)

// nextPoll returns the time until the next poll. interval is the normal time between polls, and failures is the number
// of failed reads in a row. A remote source is polled less often after failures. Its time is also shortened at random,
// so that the servers of a fleet do not poll at the same moment.
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

// Reload reads the source and gives the result to every store, including stores that do not watch.
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
