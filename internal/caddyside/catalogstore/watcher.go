// SPDX-License-Identifier: Apache-2.0

package catalogstore

import (
	"bytes"
	"context"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/caddyserver/certmagic"
	"github.com/prometheus/client_golang/prometheus"
	"go.uber.org/zap"

	"github.com/robotspolicy/caddy-robots-policy/crawlers"
	"github.com/robotspolicy/caddy-robots-policy/crawlers/identity"
	"github.com/robotspolicy/caddy-robots-policy/internal/caddyside/optional"
	"github.com/robotspolicy/caddy-robots-policy/internal/caddyside/policies"
	"github.com/robotspolicy/caddy-robots-policy/source"
)

// interval is the time between checks for a newer catalog.
const interval = time.Minute

// Watcher reads the catalog from a configuration's storage and installs it. It does this again whenever the storage has
// a later version of the catalog.
type Watcher struct {
	read   func(context.Context) ([]byte, error)
	logger *zap.Logger
	state  *optional.State
	stop   context.CancelFunc

	storage  certmagic.Storage
	address  string // address of the released catalog, or "" if it is not fetched
	running  func() []*source.Snapshot
	release  *optional.State
	updating sync.Mutex

	checking sync.Mutex
}

// started holds the watchers of all configurations that have started and not stopped. There are two such watchers while
// one configuration replaces another.
var started optional.Latest[Watcher]

var last struct {
	mu     sync.Mutex
	status Status
}

// Status describes the catalog in use.
type Status struct {
	AsOf     string    `json:"as_of"`
	Source   string    `json:"source"` // embedded or storage:KEY
	Crawlers int       `json:"crawlers"`
	Checked  time.Time `json:"checked,omitzero"` // time when the storage was last read
	// Error is the reason why the catalog in the storage is not used. It is absent if the catalog in the storage is
	// used, or if the storage does not contain a catalog.
	Error string `json:"error,omitempty"`
	// Fetched is the time of the last fetch of the released catalog with `catalog auto`. Rejected is the reason why the
	// fetched catalog was not installed.
	Fetched  time.Time `json:"fetched,omitzero"`
	Rejected string    `json:"rejected,omitempty"`
	Warning  string    `json:"warning,omitempty"` // set if the catalog is old
}

// CurrentStatus returns the status of the catalog that this server uses.
func CurrentStatus() Status {
	last.mu.Lock()
	s := last.status
	last.mu.Unlock()
	c, _ := crawlers.Default() // the built-in catalog is valid
	s.AsOf, s.Crawlers, s.Source, s.Warning = c.AsOf(), c.Len(), sourceOf(c), Aged(c, time.Now())
	return s
}

// sourceOf returns the source of the catalog in use.
func sourceOf(c *crawlers.Catalog) string {
	if embedded, _ := crawlers.Embedded(); c == embedded {
		return SourceEmbedded
	}
	return SourceStorage
}

// New returns a Watcher for a storage. It installs the catalog of the storage before policies are loaded. If the
// storage cannot be read or hangs, the catalog in use does not change. If address is not empty, the released catalog is
// fetched from this address once a day.
func New(storage certmagic.Storage, address string, logger *zap.Logger) *Watcher {
	w := &Watcher{
		read: source.NewReader(storage, source.Catalog), storage: storage, address: address, logger: logger, state: optional.NewState("catalog"),
		running: policies.Pool.Running,
	}
	if address != "" {
		w.release = optional.NewState("catalog_release")
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		w.check(context.Background())
	}()
	select {
	case <-done:
	case <-time.After(startWait):
	}
	return w
}

// startWait limits the time that the start of a configuration waits for the storage.
const startWait = time.Second

// Start watches the storage until Stop.
func (w *Watcher) Start() {
	ctx, cancel := context.WithCancel(context.Background())
	w.stop = cancel
	started.Add(w)
	next := func() time.Duration { return interval - rand.N(interval/5) }
	go repeat(ctx, next(), next, w.check)
	if w.address != "" {
		go repeat(ctx, rand.N(interval), func() time.Duration { return autoInterval - rand.N(autoInterval/24) }, w.update)
	}
	if old := CurrentStatus().Warning; old != "" {
		w.logger.Warn(old)
	}
}

// repeat waits for the duration wait, and calls do. After that, it calls next before each further call of do, and waits
// for the duration that next has returned. next should return random durations, so that the servers of a fleet do not
// all act at the same moment.
func repeat(ctx context.Context, wait time.Duration, next func() time.Duration, do func(context.Context)) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-time.After(wait):
			do(ctx)
			wait = next()
		}
	}
}

// Stop stops watching the storage. If this configuration never ran, Stop installs the catalog of the running
// configuration again.
func (w *Watcher) Stop() {
	if w.stop != nil {
		w.stop()
	}
	w.state.Remove()
	if w.release != nil {
		w.release.Remove()
	}
	started.Remove(w)
	if other := started.Get(); other != nil {
		go other.check(context.Background())
	}
}

// reloadWait limits the time that a reload waits for the released catalog.
const reloadWait = 5 * time.Second

// Check looks for a newer catalog at once. With `catalog auto`, it first fetches the released catalog. After that, it
// reads the catalog in the storage.
func Check(ctx context.Context) {
	if w := started.Get(); w != nil {
		if w.address != "" {
			ctx, cancel := context.WithTimeout(ctx, reloadWait)
			defer cancel()
			w.update(ctx)
		}
		w.check(ctx)
	}
}

// check reads the storage and installs its catalog. If there is an error, the catalog in use does not change.
func (w *Watcher) check(ctx context.Context) {
	w.checking.Lock()
	defer w.checking.Unlock()
	data, err := w.read(ctx)
	if ctx.Err() != nil {
		return
	}
	var c *crawlers.Catalog
	if err == nil {
		c, err = stored(data)
	}
	last.mu.Lock()
	last.status.Checked, last.status.Error = time.Now().UTC(), textOf(err)
	last.mu.Unlock()
	if w.state.Report(err); err == nil {
		w.install(ctx, c)
	}
}

func textOf(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}

// stored returns the catalog to use. This is the catalog in data, which comes from a storage. But if data is nil, or if
// the built-in catalog is newer, stored returns the built-in catalog.
func stored(data []byte) (c *crawlers.Catalog, err error) {
	embedded, _ := crawlers.Embedded() // the built-in catalog is valid
	if data != nil {
		c, err = parseOnce(data)
	}
	if err == nil && (c == nil || c.AsOf() < embedded.AsOf()) {
		c = embedded
	}
	return c, err
}

// parsed is the result of parsing the data that was last read. Successive configurations share it.
var parsed struct {
	mu      sync.Mutex
	data    []byte
	catalog *crawlers.Catalog
	err     error
}

func parseOnce(data []byte) (*crawlers.Catalog, error) {
	parsed.mu.Lock()
	defer parsed.mu.Unlock()
	if parsed.data == nil || !bytes.Equal(parsed.data, data) {
		parsed.data = data
		parsed.catalog, parsed.err = crawlers.Parse(SourceStorage, data)
	}
	return parsed.catalog, parsed.err
}

// install puts a catalog into use.
func (w *Watcher) install(ctx context.Context, c *crawlers.Catalog) {
	if used, _ := crawlers.Default(); used != c {
		crawlers.Install(c)
		identity.RenewLists()
		s := CurrentStatus()
		w.logger.Info("using another catalog of crawlers",
			zap.String("as_of", s.AsOf), zap.String("source", s.Source), zap.Int("crawlers", s.Crawlers))
	}
	policies.Pool.Recompile(ctx)
}

// Collector exports the state of the catalog. All configurations share it.
var Collector prometheus.Collector = collector{}

type collector struct{}

func newDesc(name, help string, labels ...string) *prometheus.Desc {
	return prometheus.NewDesc(prometheus.BuildFQName("caddy", "robots_policy", name), help, labels, nil)
}

var (
	descTime = newDesc("catalog_timestamp_seconds", "The date of the crawler catalog in use, in Unix seconds, by source: embedded or storage.", "source")
	descSize = newDesc("catalog_crawlers", "Number of crawlers in the catalog in use.")
)

func (collector) Describe(ch chan<- *prometheus.Desc) {
	ch <- descTime
	ch <- descSize
}

func (collector) Collect(ch chan<- prometheus.Metric) {
	s := CurrentStatus()
	source, date := "storage", 0.0
	if s.Source == SourceEmbedded {
		source = SourceEmbedded
	}
	if t, err := time.Parse(time.DateOnly, s.AsOf); err == nil {
		date = float64(t.Unix())
	}
	ch <- prometheus.MustNewConstMetric(descTime, prometheus.GaugeValue, date, source)
	ch <- prometheus.MustNewConstMetric(descSize, prometheus.GaugeValue, float64(s.Crawlers))
}
