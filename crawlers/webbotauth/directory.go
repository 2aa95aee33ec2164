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

// How long what is known of a directory is kept.
const (
	keepDefault = time.Hour          // a response that does not say
	keepLeast   = 5 * time.Minute    // whatever it says
	keepMost    = 24 * time.Hour     // whatever it says
	keepFailure = 5 * time.Minute    // a failure, or that a key is not there (draft: at most 5 minutes)
	keepStale   = 7 * 24 * time.Hour // keys of a directory that cannot be had any more
	maxFetches  = 8                  // at the same time
	maxKept     = 1000               // directories
)

// directories keeps the keys of directories. Only successful fetches replace keys:
// a directory that is down for a while takes nobody's identity away.
type directories struct {
	fetch  func(ctx context.Context, url string) (map[string]publicKey, time.Duration, error)
	now    func() time.Time
	report func(DirectoryStatus) // may be nil
	slots  chan struct{}

	ctx    context.Context
	cancel context.CancelFunc
	wait   sync.WaitGroup

	mu   sync.Mutex // guards what follows
	kept map[string]*directory
}

// DirectoryStatus is what is known of a key directory.
type DirectoryStatus struct {
	URL     string
	Keys    int       // Ed25519 keys, from the last fetch that succeeded
	Date    time.Time // of that fetch; zero for never
	Err     error     // why the last fetch failed, or nil
	Failing time.Time // since when fetches have failed; zero while Err is nil
}

// directory is what is known of one.
type directory struct {
	keys    map[string]publicKey
	fetched time.Time     // when the keys came; zero for never
	expires time.Time     // when they are to be fetched again
	next    time.Time     // before which they are not fetched again
	err     error         // of the last fetch
	failing time.Time     // since when there has been one
	done    chan struct{} // closed when the fetch that is under way is over; nil for none
}

func newDirectories(o Options) *directories {
	d := &directories{
		fetch: newFetcher(o).fetch, now: o.Now, report: o.Report,
		slots: make(chan struct{}, maxFetches), kept: map[string]*directory{},
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

// key returns a key of a directory. It waits for a fetch until the context ends,
// unless the key is there.
func (d *directories) key(ctx context.Context, url, id string) (ed25519.PublicKey, error) {
	key, done, err := d.look(url, id)
	if done == nil || key != nil {
		return key, err
	}
	select {
	case <-done:
	case <-ctx.Done():
		return nil, fmt.Errorf("%w yet", ErrUnavailable)
	}
	key, _, err = d.look(url, id)
	return key, err
}

// look returns a key, or the channel of a fetch that may bring it and why there is
// none yet. It begins a fetch where one is due.
func (d *directories) look(url, id string) (ed25519.PublicKey, <-chan struct{}, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	now := d.now()
	k := d.kept[url]
	if k == nil {
		if len(d.kept) >= maxKept {
			return nil, nil, fmt.Errorf("%w: too many are kept", ErrUnavailable)
		}
		k = new(directory)
		d.kept[url] = k
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
		return nil, k.done, ErrNoKey
	case k.err != nil:
		return nil, k.done, fmt.Errorf("%w: %w", ErrUnavailable, k.err)
	}
	return nil, k.done, ErrUnavailable
}

// begin fetches a directory in the background, if there is room for one more.
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
		keys, keep, err := d.fetch(d.ctx, url)
		<-d.slots
		status := d.take(url, k, keys, keep, err)
		if d.report != nil && d.ctx.Err() == nil {
			d.report(status)
		}
	})
}

// take takes up what a fetch brought.
func (d *directories) take(url string, k *directory, keys map[string]publicKey, keep time.Duration, err error) DirectoryStatus {
	d.mu.Lock()
	defer d.mu.Unlock()
	now := d.now()
	switch {
	case err == nil:
		k.failing = time.Time{}
		k.keys, k.fetched, k.expires = keys, now, now.Add(min(max(keep, keepLeast), keepMost))
	case k.err == nil:
		k.failing = now
	}
	k.err, k.next = err, now.Add(keepFailure)
	close(k.done)
	k.done = nil
	return k.status(url)
}

func (k *directory) status(url string) DirectoryStatus {
	return DirectoryStatus{URL: url, Keys: len(k.keys), Date: k.fetched, Err: k.err, Failing: k.failing}
}

// status is what is known of all directories, ordered by URL.
func (d *directories) status() []DirectoryStatus {
	d.mu.Lock()
	defer d.mu.Unlock()
	all := make([]DirectoryStatus, 0, len(d.kept))
	for url, k := range d.kept {
		all = append(all, k.status(url))
	}
	slices.SortFunc(all, func(a, b DirectoryStatus) int { return strings.Compare(a.URL, b.URL) })
	return all
}
