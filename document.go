// SPDX-License-Identifier: Apache-2.0

package robotspolicy

import (
	"context"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/caddyserver/caddy/v2"
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
	checking turn
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
	woken   chan struct{} // has the source looked at soon
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

	has      *live // what take was given last
	patience patience
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

// servedDocuments lists the documents that have a policy. Of several with one name,
// as there can be while one configuration takes over from another with another
// storage, it is the one that runs.
func servedDocuments() (served []*document) {
	for _, d := range allDocuments() {
		if d.status().current == nil {
			continue
		}
		if last := len(served) - 1; last >= 0 && served[last].name == d.name {
			if running, _ := d.asked(); running != nil {
				served[last] = d
			}
			continue
		}
		served = append(served, d)
	}
	return served
}

// allHostSets lists the sets of policies of hosts, in the order of their names.
func allHostSets() (all []*hostSet) {
	documents.Range(func(_, v any) bool {
		if s, ok := v.(*hostSet); ok {
			all = append(all, s)
		}
		return true
	})
	slices.SortFunc(all, func(a, b *hostSet) int { return strings.Compare(a.template.String(), b.template.String()) })
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
	switch {
	case !r.follow:
	case d.stop == nil:
		ctx, cancel := context.WithCancel(context.Background())
		d.stop, d.woken = cancel, make(chan struct{}, 1)
		go d.run(ctx, d.woken)
	default:
		wake(d.woken) // the next look may be further off than this reader wants it
	}
}

// wake has what follows a source look at it soon.
func wake(woken chan struct{}) {
	select {
	case woken <- struct{}{}:
	default: // it was told already
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
