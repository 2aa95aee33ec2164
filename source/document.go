// SPDX-License-Identifier: Apache-2.0

package source

import (
	"context"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/caddyserver/caddy/v2"
	"golang.org/x/sync/semaphore"

	"github.com/robotspolicy/caddy-robots-policy/robotstxt"
)

// pool holds the documents and hosts in use, by key: however many handlers use a
// policy, it is read and compiled once, also while one configuration replaces
// another.
var pool = caddy.NewUsagePool()

// Document is a policy with its source. It watches the source for those subscribers
// that want it, and keeps serving the last good version.
type Document struct {
	Name    string // of the source
	key     string
	perHost bool

	// reading is held while the source is read and a change is applied, one at a
	// time. It is acquired before mu, and guards the fields up to mu.
	reading   *semaphore.Weighted
	validator any       // of the last read; nil after one that failed
	pending   string    // a new state of the source that was seen once
	rejected  string    // the last state of the source that was not loaded
	undecided time.Time // when the guard of reloads last failed to evaluate it; zero: it did
	failures  int       // reads in a row that failed

	mu          sync.Mutex
	current     *Snapshot // the last good version; nil before the first
	err         error     // why the current state of the source is not served; nil if it is
	errSince    time.Time
	checked     time.Time // when the source was last read
	counts      Counts
	subscribers []*subscriber // oldest first
	stop        context.CancelFunc
	woken       chan struct{} // makes the watcher poll soon

	shared attachment // see Snapshot.Shared
}

func newDocument(key, name string) *Document {
	return &Document{key: key, Name: name, reading: semaphore.NewWeighted(1)}
}

// subscriber is the use of a document by one handler, with what belongs to the
// configuration of that handler.
type subscriber struct {
	src      source
	watch    bool
	interval time.Duration
	onChange func(*Snapshot)
	notifier *notifier
	upstream func(host string) *robotstxt.File // nil: the handler merges no robots.txt

	snapshot *Snapshot // what onChange was called with last
	reads    boundedRead
}

func newSubscriber(src source, n *notifier) *subscriber {
	return &subscriber{src: src, notifier: n, onChange: func(*Snapshot) {}, reads: newBoundedRead()}
}

func (r *subscriber) set(s *Snapshot) {
	r.snapshot = s
	r.onChange(s)
}

// Status describes a document.
type Status struct {
	Current     *Snapshot
	Err         error // why the current state of the source is not served
	ErrSince    time.Time
	Checked     time.Time // when the source was last read
	Counts      Counts
	Subscribers int
	Watching    int           // of the subscribers
	Older       []string      // SHA-256 of the versions that subscribers without watching still serve
	Interval    time.Duration // 0: nobody is watching
}

// Status returns the present status.
func (d *Document) Status() Status {
	d.mu.Lock()
	defer d.mu.Unlock()
	s := Status{
		Current: d.current, Err: d.err, ErrSince: d.errSince, Checked: d.checked,
		Counts: d.counts, Subscribers: len(d.subscribers), Interval: d.interval(),
	}
	for _, r := range d.subscribers {
		if r.watch {
			s.Watching++
		}
		if r.snapshot != d.current && !slices.Contains(s.Older, r.snapshot.SHA256) {
			s.Older = append(s.Older, r.snapshot.SHA256)
		}
	}
	return s
}

// Merges reports whether a handler merges the upstream's robots.txt.
func (d *Document) Merges() bool { return len(d.upstreams()) > 0 }

// Upstream returns the robots.txt of a host's upstream as a handler fetched it last, or
// nil.
func (d *Document) Upstream(host string) *robotstxt.File { return d.upstreams().last(host) }

func (d *Document) upstreams() (all upstreams) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, r := range d.subscribers {
		if r.upstream != nil {
			all = append(all, r.upstream)
		}
	}
	return all
}

// upstreams are what handlers that merge robots.txt fetched last.
type upstreams []func(host string) *robotstxt.File

func (u upstreams) last(host string) *robotstxt.File {
	for _, of := range u {
		if other := of(host); other != nil {
			return other
		}
	}
	return nil
}

// allDocuments returns the documents in the order of their names.
func allDocuments() (all []*Document) {
	pool.Range(func(_, v any) bool {
		if d, ok := v.(*Document); ok {
			all = append(all, d)
		}
		return true
	})
	slices.SortFunc(all, func(a, b *Document) int { return strings.Compare(a.Name, b.Name) })
	return all
}

// Documents returns the documents that are loaded, in the order of their names. If
// there are two of one name, while a configuration with another storage takes over,
// it returns that of the running configuration.
func Documents() (loaded []*Document) {
	for _, d := range allDocuments() {
		if d.Status().Current == nil {
			continue
		}
		if last := len(loaded) - 1; last >= 0 && loaded[last].Name == d.Name {
			if running, _ := d.running(); running != nil {
				loaded[last] = d
			}
			continue
		}
		loaded = append(loaded, d)
	}
	return loaded
}

// Destruct implements caddy.Destructor. It does not wait for the watcher, which may
// be emitting an event to a handler that is itself loading a configuration.
func (d *Document) Destruct() error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.stop != nil {
		d.stop()
		d.stop = nil
	}
	return nil
}

// running returns the newest subscriber whose configuration runs, nil if there is
// none, and the interval at which to poll. Its source is the one to read, and its
// notifier the one to use.
func (d *Document) running() (*subscriber, time.Duration) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, r := range slices.Backward(d.subscribers) {
		if r.notifier.running() {
			return r, d.interval()
		}
	}
	return nil, d.interval()
}

// leave ends what join began.
func (d *Document) leave(r *subscriber) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.subscribers = slices.DeleteFunc(d.subscribers, func(o *subscriber) bool { return o == r })
	if d.stop != nil && d.interval() == 0 {
		d.stop()
		d.stop = nil
	}
}

// interval returns the shortest interval that a subscriber wants, 0 if none
// watches. It is called with mu held.
func (d *Document) interval() time.Duration {
	var shortest time.Duration
	for _, r := range d.subscribers {
		if r.watch && (shortest == 0 || r.interval < shortest) {
			shortest = r.interval
		}
	}
	return shortest
}

// read reads the source, for at most readTimeout.
func (d *Document) read(ctx context.Context, r *subscriber, last any) (content, error) {
	ctx, cancel := context.WithTimeout(ctx, readTimeout)
	defer cancel()
	found, err := r.reads.do(ctx, func(ctx context.Context) (content, error) { return r.src.read(ctx, last) })
	d.mu.Lock()
	d.checked = time.Now()
	d.mu.Unlock()
	return found, err
}

// setCurrent is called with mu held, before anybody else has s.
func (d *Document) setCurrent(s *Snapshot) {
	if d.current != s {
		s.shared = &d.shared
	}
	d.current = s
}
