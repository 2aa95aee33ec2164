// SPDX-License-Identifier: Apache-2.0

package activity

import (
	"slices"
	"sync"
	"sync/atomic"

	"github.com/robotspolicy/caddy-robots-policy/site"
)

// Publisher is a recorder that also receives published texts. Its methods may block, because they are called in a
// separate goroutine, unless the recorder is an [OrderedPublisher].
type Publisher interface {
	// Publish announces that a publication is in force. The new publication replaces the previous one with the same
	// name.
	Publish(*Publication)
	// Serve announces that a crawler received a document that the publication does not list. Such a document is for a
	// single host, or was merged with the upstream's document.
	Serve(*Publication, site.Document)
	// End announces that a publication is no longer in force.
	End(*Publication)
}

// OrderedPublisher is a Publisher that must receive a publication before the requests that it applies to. A request
// waits while the methods of an OrderedPublisher are called, so they must not block.
type OrderedPublisher interface {
	Publisher
	Ordered()
}

// Recorders holds the recorders that handlers pass requests to. The set of recorders can change while requests are
// served. The zero value is empty. Recorders is safe for concurrent use, and a nil *Recorders records nothing.
type Recorders struct {
	mu      sync.Mutex
	added   []*addedRecorder                 // protected by mu
	current atomic.Pointer[[]*addedRecorder] // for each name in added, the oldest recorder
	changes atomic.Uint64
}

type addedRecorder struct {
	name string
	Recorder
	publishing sync.RWMutex // read-locked while a publication is being passed on
	removed    bool
}

// Generation returns a number that increases when a recorder is added, is removed, or becomes ready.
func (rs *Recorders) Generation() uint64 { return rs.changes.Load() }

// Changed must be called when a recorder becomes ready, for example because its database has been opened. Handlers then
// pass their publications to the recorders again.
func (rs *Recorders) Changed() { rs.changes.Add(1) }

// Add adds a recorder under the given name, which also appears in the counter of its dropped requests. The returned
// function removes the recorder, after all pending publications have been passed to it.
func (rs *Recorders) Add(name string, r Recorder) (remove func()) {
	e := &addedRecorder{name: name, Recorder: r}
	rs.change(func(all []*addedRecorder) []*addedRecorder { return append(all, e) })
	return func() {
		rs.change(func(all []*addedRecorder) []*addedRecorder {
			return slices.DeleteFunc(all, func(o *addedRecorder) bool { return o == e })
		})
		e.publishing.Lock()
		defer e.publishing.Unlock()
		e.removed = true
	}
}

// change changes the set of recorders. While a configuration is being loaded, its recorders exist next to the recorders
// of the running configuration. The old and the new recorders have the same names, and often use the same database.
// Only the old recorders receive requests, so that no request is counted twice.
func (rs *Recorders) change(f func([]*addedRecorder) []*addedRecorder) {
	rs.mu.Lock()
	defer rs.mu.Unlock()
	rs.added = f(rs.added)
	var active []*addedRecorder
	for _, e := range rs.added {
		if !slices.ContainsFunc(active, func(o *addedRecorder) bool { return o.name == e.name }) {
			active = append(active, e)
		}
	}
	rs.current.Store(&active)
	rs.changes.Add(1)
}

// Active reports whether at least one recorder exists.
func (rs *Recorders) Active() bool { return len(rs.all()) > 0 }

// Get returns the recorder with a name, or nil if there is none. If several recorders have this name, Get returns the
// one that receives requests.
func (rs *Recorders) Get(name string) Recorder {
	for _, r := range rs.all() {
		if r.name == name {
			return r.Recorder
		}
	}
	return nil
}

func (rs *Recorders) all() []*addedRecorder {
	if rs == nil {
		return nil
	}
	if all := rs.current.Load(); all != nil {
		return *all
	}
	return nil
}

// Record passes a request to every recorder.
func (rs *Recorders) Record(v Request) {
	for _, r := range rs.all() {
		r.Record(v)
	}
}

// Publish passes a publication to every recorder that is a Publisher.
func (rs *Recorders) Publish(p *Publication) {
	rs.publish(func(r Publisher) { r.Publish(p) })
}

// Serve calls the method Serve of every recorder that is a Publisher, because a crawler received a document that the
// publication does not list.
func (rs *Recorders) Serve(p *Publication, d site.Document) {
	rs.publish(func(r Publisher) { r.Serve(p, d) })
}

// End calls the method End of every recorder that is a Publisher, because the publication is no longer in force.
func (rs *Recorders) End(p *Publication) {
	rs.publish(func(r Publisher) { r.End(p) })
}

func (rs *Recorders) publish(pass func(Publisher)) {
	for _, r := range rs.all() {
		if ordered, ok := r.Recorder.(OrderedPublisher); ok {
			pass(ordered)
			continue
		}
		publisher, ok := r.Recorder.(Publisher)
		if !ok || !r.publishing.TryRLock() {
			continue // the recorder is being removed
		}
		go func() {
			defer r.publishing.RUnlock()
			if !r.removed {
				pass(publisher)
			}
		}()
	}
}

// Dropped calls the function each for every recorder that counts dropped requests, with the recorder's name and the
// number of requests that it has dropped.
func (rs *Recorders) Dropped(each func(name string, n uint64)) {
	for _, r := range rs.all() {
		if d, ok := r.Recorder.(interface{ Dropped() uint64 }); ok {
			each(r.name, d.Dropped())
		}
	}
}
