// SPDX-License-Identifier: Apache-2.0

// Package recorders holds the recorders of visits that the running configuration
// has. The handlers pass visits to all of them.
package recorders

import (
	"context"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/robotspolicy/caddy-robots-policy/activity"
	"github.com/robotspolicy/caddy-robots-policy/site"
)

// Publisher is a recorder that also takes the texts that were published. Publish
// may wait; it is called in a goroutine of its own.
type Publisher interface {
	Publish(Publication)
}

// OrderedPublisher is a recorder whose publications must come before the visits that
// depend on them. PublishNow is called while a request waits, once for each version.
type OrderedPublisher interface {
	PublishNow(Publication)
}

// Publication is a policy or a robots.txt that came into force.
type Publication struct {
	Kind    string // "policy" or "robots"
	Version string // what visits call it
	Host    string // of a robots.txt
	Name    string // of the policy's source
	Time    time.Time
	Text    string
}

// entry is a recorder that was added.
type entry struct {
	name string
	activity.Recorder
	publishing sync.RWMutex // locked for reading while a publication is on its way
	removed    bool
}

var (
	mu      sync.Mutex
	added   []*entry                 // guarded by mu
	current atomic.Pointer[[]*entry] // the first of added of each name; nil for none
	changes atomic.Uint64
)

// Generation changes when a recorder is added or removed.
func Generation() uint64 { return changes.Load() }

// Add adds a recorder, by whose name its dropped visits are counted. The function
// that it returns removes it again, after what was published has reached it.
func Add(name string, r activity.Recorder) (remove func()) {
	e := &entry{name: name, Recorder: r}
	change(func(all []*entry) []*entry { return append(all, e) })
	return func() {
		change(func(all []*entry) []*entry { return slices.DeleteFunc(all, func(o *entry) bool { return o == e }) })
		e.publishing.Lock()
		defer e.publishing.Unlock()
		e.removed = true
	}
}

// change changes which recorders there are. While a configuration is being loaded, its
// recorders and those of the running one are there together, of the same names and often
// with the same store below: only the older ones get visits, so that none counts twice.
func change(f func([]*entry) []*entry) {
	mu.Lock()
	defer mu.Unlock()
	added = f(added)
	var active []*entry
	for _, e := range added {
		if !slices.ContainsFunc(active, func(o *entry) bool { return o.name == e.name }) {
			active = append(active, e)
		}
	}
	defer changes.Add(1)
	if len(active) == 0 {
		current.Store(nil)
		return
	}
	current.Store(&active)
}

// Active reports whether there is any recorder.
func Active() bool { return current.Load() != nil }

// Find returns the first recorder of a type. Packages that do not import each other
// reach each other's recorders by it.
func Find[T any]() (found T, ok bool) {
	if all := current.Load(); all != nil {
		for _, r := range *all {
			if found, ok = r.Recorder.(T); ok {
				return found, true
			}
		}
	}
	return found, false
}

// Record passes a visit to every recorder.
func Record(v activity.Visit) {
	if all := current.Load(); all != nil {
		for _, r := range *all {
			r.Record(v)
		}
	}
}

// Publish passes a publication to every recorder that takes them.
func Publish(p Publication) {
	all := current.Load()
	if all == nil {
		return
	}
	for _, r := range *all {
		if ordered, ok := r.Recorder.(OrderedPublisher); ok {
			ordered.PublishNow(p)
			continue
		}
		publisher, ok := r.Recorder.(Publisher)
		if !ok || !r.publishing.TryRLock() {
			continue // it is being removed
		}
		go func() {
			defer r.publishing.RUnlock()
			if !r.removed {
				publisher.Publish(p)
			}
		}()
	}
}

// Dropped calls each with the name of every recorder and how many visits it has
// dropped.
func Dropped(each func(name string, n uint64)) {
	all := current.Load()
	if all == nil {
		return
	}
	for _, r := range *all {
		if d, ok := r.Recorder.(interface{ Dropped() uint64 }); ok {
			each(r.name, d.Dropped())
		}
	}
}

// ViolationStore is a recorder that stores violations.
type ViolationStore interface {
	// Violations returns the violations since a time, the most frequent first.
	Violations(ctx context.Context, since time.Time, limit int) ([]Violation, error)
}

// Violation is what a crawler fetched although the robots.txt that it had read
// disallows it.
type Violation struct {
	Crawler  string `json:"crawler"`
	Identity string `json:"identity"`
	Host     string `json:"host"`
	Path     string `json:"path"`
	Decision string `json:"decision"` // what was done about it
	Requests int64  `json:"requests"`
}

// ReloadGuard is a recorder that decides whether a new version of a policy may be
// loaded.
type ReloadGuard interface {
	// CheckReload returns an error if the version of a policy that is served must not be
	// replaced: a source.UndecidedError if this is not known now, and may be later. name is
	// that of the policy's source.
	CheckReload(ctx context.Context, name string, before, after *site.Site) error
}

// CheckReload asks the guard of the running configuration, if it has one.
func CheckReload(ctx context.Context, name string, before, after *site.Site) error {
	if g, ok := Find[ReloadGuard](); ok {
		return g.CheckReload(ctx, name, before, after)
	}
	return nil
}

// Metric is a Prometheus collector of how many visits each recorder has dropped.
var Metric prometheus.Collector = dropped{}

type dropped struct{}

var droppedDesc = prometheus.NewDesc("caddy_robots_policy_visits_dropped_total",
	"Visits that a recorder dropped because its queue was full.", []string{"recorder"}, nil)

// Describe implements prometheus.Collector.
func (dropped) Describe(ch chan<- *prometheus.Desc) { ch <- droppedDesc }

// Collect implements prometheus.Collector.
func (dropped) Collect(ch chan<- prometheus.Metric) {
	Dropped(func(name string, n uint64) {
		ch <- prometheus.MustNewConstMetric(droppedDesc, prometheus.CounterValue, float64(n), name)
	})
}
