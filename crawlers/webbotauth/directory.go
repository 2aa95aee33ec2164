// SPDX-License-Identifier: Apache-2.0

package webbotauth

import (
	"context"
	"crypto/ed25519"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"
)

// These durations determine how long a directory is cached. The other constants limit fetches and the cache.
const (
	keepDefault = time.Hour          // if the response has no lifetime
	keepLeast   = 5 * time.Minute    // minimum, even if the response has a shorter lifetime
	keepMost    = 24 * time.Hour     // maximum, even if the response has a longer lifetime
	keepFailure = 5 * time.Minute    // time until the next fetch after a failure, or if a key is missing (the draft allows 5 minutes)
	keepStale   = 7 * 24 * time.Hour // how long keys are used while fetches fail
	maxFetches  = 8                  // maximum number of concurrent fetches
	maxCached   = 1000               // maximum number of cached directories
)

// directories caches the keys of key directories. Only a successful fetch replaces keys, so signatures can be checked
// while a directory is not available.
type directories struct {
	fetch  func(ctx context.Context, url string) (document, time.Duration, error)
	now    func() time.Time
	report func(DirectoryStatus) // may be nil
	slots  chan struct{}

	ctx    context.Context
	cancel context.CancelFunc
	wait   sync.WaitGroup

	mu    sync.Mutex // protects the fields below
	cache map[string]*directory
}

// DirectoryStatus is the state of a key directory.
type DirectoryStatus struct {
	URL     string
	Keys    int       // number of Ed25519 keys from the last successful fetch
	Card    Card      // the card from the last successful fetch
	Date    time.Time // the time of the last successful fetch, or zero
	Err     error     // the error of the last fetch
	Failing time.Time // time of the first failed fetch in a row; zero while Err is nil
}

type directory struct {
	document
	fetched time.Time     // when the keys were fetched, or zero
	expires time.Time     // when to fetch the keys again
	next    time.Time     // earliest time of the next fetch
	err     error         // error of the last fetch
	failing time.Time     // time of the first error in a row
	done    chan struct{} // closed when the fetch in progress ends; nil if there is none
}

func newDirectories(o Options) *directories {
	d := &directories{
		fetch: newFetcher(o).fetch, now: o.Now, report: o.Report,
		slots: make(chan struct{}, maxFetches), cache: map[string]*directory{},
	}
	d.ctx, d.cancel = context.WithCancel(context.Background())
	return d
}

func (d *directories) close() {
	d.mu.Lock()
	d.cancel()
	d.mu.Unlock()
	d.wait.Wait()
}

// key returns the key whose ID is id from the directory at url. If the key is not cached, key fetches the directory and
// waits for the result until ctx is done.
func (d *directories) key(ctx context.Context, url, id string) (ed25519.PublicKey, error) {
	key, done, err := d.look(url, id)
	if done == nil || key != nil {
		return key, err
	}
	select {
	case <-done:
	case <-ctx.Done():
		return nil, fmt.Errorf("%w yet", errUnavailable)
	}
	key, _, err = d.look(url, id)
	return key, err
}

// look returns a cached key. If the key is not cached, look returns an error and, during a fetch, a channel that is
// closed when the fetch ends. look starts a fetch if the next fetch is due.
func (d *directories) look(url, id string) (ed25519.PublicKey, <-chan struct{}, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	now := d.now()
	k := d.cache[url]
	if k == nil {
		if len(d.cache) >= maxCached {
			return nil, nil, fmt.Errorf("%w: too many key directories are in use", errUnavailable)
		}
		k = new(directory)
		d.cache[url] = k
	}
	fresh := !k.fetched.IsZero() && now.Sub(k.fetched) < keepStale
	found, ok := k.keys[id]
	ok = ok && fresh && !now.Before(found.from) && (found.to.IsZero() || now.Before(found.to))
	if (!ok || !now.Before(k.expires)) && !now.Before(k.next) && k.done == nil {
		d.begin(url, k)
	}
	switch {
	case ok:
		return found.key, nil, nil
	case fresh && k.err == nil:
		return nil, k.done, errNoKey
	case k.err != nil:
		return nil, k.done, fmt.Errorf("%w: %w", errUnavailable, k.err)
	}
	return nil, k.done, errUnavailable
}

// begin starts to fetch a directory in the background. It has no effect if too many fetches are in progress.
func (d *directories) begin(url string, k *directory) {
	select {
	case d.slots <- struct{}{}:
	default:
		return
	}
	if d.ctx.Err() != nil {
		<-d.slots
		return
	}
	k.done = make(chan struct{})
	d.wait.Go(func() {
		found, keep, err := d.fetch(d.ctx, url)
		<-d.slots
		status := d.take(url, k, found, keep, err)
		if d.report != nil && d.ctx.Err() == nil {
			d.report(status)
		}
	})
}

func (d *directories) take(url string, k *directory, found document, keep time.Duration, err error) DirectoryStatus {
	d.mu.Lock()
	defer d.mu.Unlock()
	now := d.now()
	switch {
	case err == nil:
		k.failing = time.Time{}
		k.document, k.fetched, k.expires = found, now, now.Add(min(max(keep, keepLeast), keepMost))
	case k.err == nil:
		k.failing = now
	}
	k.err, k.next = err, now.Add(keepFailure)
	close(k.done)
	k.done = nil
	return k.status(url)
}

func (k *directory) status(url string) DirectoryStatus {
	return DirectoryStatus{URL: url, Keys: len(k.keys), Card: k.card, Date: k.fetched, Err: k.err, Failing: k.failing}
}

// status returns the state of all directories, ordered by URL.
func (d *directories) status() []DirectoryStatus {
	d.mu.Lock()
	defer d.mu.Unlock()
	all := make([]DirectoryStatus, 0, len(d.cache))
	for url, k := range d.cache {
		all = append(all, k.status(url))
	}
	slices.SortFunc(all, func(a, b DirectoryStatus) int { return strings.Compare(a.URL, b.URL) })
	return all
}
