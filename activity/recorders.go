// SPDX-License-Identifier: Apache-2.0

package activity

import (
	"slices"
	"sync"
	"sync/atomic"

	"github.com/robotspolicy/caddy-robots-policy/site"
)

// Publisher is a recorder that also takes published texts. The methods of one that is not an
// [OrderedPublisher] may wait, and are called in a separate goroutine.
type Publisher interface {
	// Publish says that a publication is in force, in the place of others of the name.
	Publish(*Publication)
	// Serve says that a crawler gets a document that the publication does not list: one of
	// a host alone, or merged with the upstream's.
	Serve(*Publication, site.Document)
	// End says that a publication is not in force any more.
	End(*Publication)
}

// OrderedPublisher is a Publisher whose publications must come before the requests that
// depend on them. Its methods are called while a request waits, and do not wait.
type OrderedPublisher interface {
	Publisher
	Ordered()
}

// Recorders are the recorders that handlers pass requests to. They change while requests are served. The zero value has
// none; it is safe for concurrent use, and a nil *Recorders records nothing.
type Recorders struct {
	mu      sync.Mutex
	added   []*addedRecorder                 // guarded by mu
	current atomic.Pointer[[]*addedRecorder] // the first of added of each name
	changes atomic.Uint64
}

type addedRecorder struct {
	name string
	Recorder
	publishing sync.RWMutex // locked for reading while a publication is on its way
	removed    bool
}

// Generation changes when a recorder is added or removed.
func (rs *Recorders) Generation() uint64 { return rs.changes.Load() }

// Changed reports that a recorder has begun to work, so that everything published must be passed to it again.
func (rs *Recorders) Changed() { rs.changes.Add(1) }

// Add adds a recorder, by whose name its dropped requests are counted. The function
// that it returns removes it again, after what was published has reached it.
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

// change changes the set of recorders. While a configuration is being loaded, its recorders
// exist next to the recorders of the running one, with the same names and often with the same
// database below. Only the older ones get requests, so that no request is counted twice.
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

// Active reports whether there is any recorder.
func (rs *Recorders) Active() bool { return len(rs.all()) > 0 }

// Get returns the recorder of a name that gets requests, or nil.
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

// Publish passes a publication to every recorder that takes them.
func (rs *Recorders) Publish(p *Publication) {
	rs.publish(func(r Publisher) { r.Publish(p) })
}

// Serve passes a document on that a publication does not list.
func (rs *Recorders) Serve(p *Publication, d site.Document) {
	rs.publish(func(r Publisher) { r.Serve(p, d) })
}

// End says that a publication is not in force any more.
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
			continue // it is being removed
		}
		go func() {
			defer r.publishing.RUnlock()
			if !r.removed {
				pass(publisher)
			}
		}()
	}
}

// Dropped calls each with the name of every recorder and how many requests it has dropped.
func (rs *Recorders) Dropped(each func(name string, n uint64)) {
	for _, r := range rs.all() {
		if d, ok := r.Recorder.(interface{ Dropped() uint64 }); ok {
			each(r.name, d.Dropped())
		}
	}
}
