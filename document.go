// SPDX-License-Identifier: Apache-2.0

package robotspolicy

import (
	"context"
	"errors"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/caddyserver/caddy/v2"

	"github.com/robotspolicy/caddy-robots-policy/site"
)

// documents are the policies that are in use, by the keys of their sources:
// however many sites have a policy, it is read, checked and kept once, also
// while one configuration of Caddy takes over from another.
var documents = caddy.NewUsagePool()

// document is a policy with its source. It follows the source for those readers
// that want it, and keeps to the last text that was good.
type document struct {
	key  string
	name string // of its source

	// checking is held while the source is read, so that there is one reading at
	// a time. It is taken before mu.
	checking sync.Mutex
	mark     any    // of the last reading; nil after one that failed
	pending  string // a new state of the source that was seen once
	dropped  string // the last state of the source that was not taken up
	failures int    // readings in a row that failed

	mu      sync.Mutex
	current *live     // the last good policy; nil before there is one
	err     error     // why the source's state now is not what is served; nil if it is
	errAt   time.Time // since when
	checked time.Time // when the source was last looked at
	counts  counts
	readers []*reader // oldest first
	stop    context.CancelFunc
}

// counts are how often the source was found changed, by what came of it.
type counts struct {
	Taken   uint64 `json:"taken"`
	Refused uint64 `json:"refused"`
}

// reader is one user of a document: a handler, with what belongs to the
// configuration that it is of.
type reader struct {
	src      source
	follow   bool
	interval time.Duration
	take     func(*live)
	teller   *teller
	merges   bool // its handler merges robots.txt

	has *live // what take was given last
}

// give gives a reader a policy.
func (r *reader) give(l *live) {
	r.has = l
	r.take(l)
}

// status is what is to be told of a document.
type status struct {
	current        *live
	err            error
	errAt, checked time.Time
	counts         counts
	readers        int
	follow         int      // of the readers
	older          []string // what readers that do not follow serve instead
	interval       time.Duration
}

func (d *document) status() status {
	d.mu.Lock()
	defer d.mu.Unlock()
	s := status{
		current: d.current, err: d.err, errAt: d.errAt, checked: d.checked,
		counts: d.counts, readers: len(d.readers), interval: d.interval(),
	}
	for _, r := range d.readers {
		if r.follow {
			s.follow++
		}
		if r.has != d.current && !slices.Contains(s.older, r.has.sum) {
			s.older = append(s.older, r.has.sum)
		}
	}
	return s
}

// merges reports whether a site merges its upstream's robots.txt.
func (d *document) merges() bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return slices.ContainsFunc(d.readers, func(r *reader) bool { return r.merges })
}

// allDocuments lists the documents, in the order of their names.
func allDocuments() (all []*document) {
	documents.Range(func(_, v any) bool {
		if d, ok := v.(*document); ok {
			all = append(all, d)
		}
		return true
	})
	slices.SortFunc(all, func(a, b *document) int { return strings.Compare(a.name, b.name) })
	return all
}

// allHostSets lists the sets of policies of hosts, in the order of their names.
func allHostSets() (all []*hostSet) {
	documents.Range(func(_, v any) bool {
		if s, ok := v.(*hostSet); ok {
			all = append(all, s)
		}
		return true
	})
	slices.SortFunc(all, func(a, b *hostSet) int { return strings.Compare(a.template.text, b.template.text) })
	return all
}

// Destruct implements caddy.Destructor. It does not wait for the goroutine that
// follows the source: that may be telling of a change to an event handler that
// is itself loading a configuration.
func (d *document) Destruct() error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.stop != nil {
		d.stop()
		d.stop = nil
	}
	return nil
}

// newest returns the newest reader of a configuration that runs, or nil. Its
// source is the one to read, and it is the one to be told.
func (d *document) newest() *reader {
	for _, r := range slices.Backward(d.readers) {
		if r.teller.running() {
			return r
		}
	}
	return nil
}

// join gives a reader the current policy, and from then on each new one if it
// follows.
func (d *document) join(r *reader) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.readers = append(d.readers, r)
	r.give(d.current)
	if r.follow && d.stop == nil {
		ctx, cancel := context.WithCancel(context.Background())
		d.stop = cancel
		go d.run(ctx)
	}
}

// leave ends what join began.
func (d *document) leave(r *reader) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.readers = slices.DeleteFunc(d.readers, func(o *reader) bool { return o == r })
	if d.stop != nil && d.interval() == 0 {
		d.stop()
		d.stop = nil
	}
}

// interval is the shortest that a reader asks for; 0 if none follows.
func (d *document) interval() time.Duration {
	var shortest time.Duration
	for _, r := range d.readers {
		if r.follow && (shortest == 0 || r.interval < shortest) {
			shortest = r.interval
		}
	}
	return shortest
}

// run follows the source until ctx ends.
func (d *document) run(ctx context.Context) {
	timer := time.NewTimer(starting)
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-timer.C:
		}
		timer.Reset(d.look(ctx))
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
		d.checking.Lock()
		defer d.checking.Unlock()
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
	settle, state := r.src.settle(), stateOf(found, err)
	d.mu.Lock()
	defer d.mu.Unlock()
	if settle == 0 || state == d.dropped || d.current != nil && state == d.current.sum || state == d.pending {
		d.pending = ""
		return 0
	}
	d.pending = state
	return settle
}

// stateOf tells states of a source apart.
func stateOf(found reading, err error) string {
	if err != nil {
		return "error: " + err.Error()
	}
	return sumOf(found.data)
}

// read reads the source, for a limited time.
func (d *document) read(ctx context.Context, r *reader, last any) (reading, error) {
	ctx, cancel := context.WithTimeout(ctx, readTimeout)
	defer cancel()
	found, err := r.src.read(ctx, last)
	d.mu.Lock()
	d.checked = time.Now()
	d.mu.Unlock()
	return found, err
}

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
	state := stateOf(found, err)
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
		return outcome{before: before, now: before, err: failing, tell: func() {}}
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
	d.checking.Lock()
	defer d.checking.Unlock()
	found, err := d.read(ctx, r, nil)
	return d.take(r, found, err, true)
}
