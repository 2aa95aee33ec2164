// SPDX-License-Identifier: Apache-2.0

package fleet

import (
	"bytes"
	"cmp"
	"compress/gzip"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"path"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/certmagic"
	"github.com/prometheus/client_golang/prometheus"
	"go.uber.org/zap"

	"github.com/robotspolicy/caddy-robots-policy/handler"
	"github.com/robotspolicy/caddy-robots-policy/internal/caddyside/optional"
	"github.com/robotspolicy/caddy-robots-policy/internal/caddyside/policies"
	"github.com/robotspolicy/caddy-robots-policy/site"
	"github.com/robotspolicy/caddy-robots-policy/source"
)

// prefix begins the keys in the storage, one for each server.
const prefix = "robots_policy/fleet/"

// Bounds of what one server tells the others. Anyone can use the name of a crawler, with any
// host.
const (
	maxReadings   = 2000
	maxUnverified = 200
	maxMessage    = 4 << 20 // as JSON
	maxOlder      = 32      // versions of policies that this server does not serve
)

// missingAfter is after how many reads without a new message a server is missing, and
// forgetAfter how long it has written nothing when its key is deleted: servers in containers
// may have a new name each time. It is looked up once in forgetEvery reads.
const (
	missingAfter = 3
	forgetAfter  = 7 * 24 * time.Hour
	forgetEvery  = 1000
)

// message is what a server writes to its key. Sequence differs each time: it shows that the
// server is alive, whatever the clocks say.
type message struct {
	Sequence int64             `json:"sequence"`
	Readings []handler.Reading `json:"readings"`
}

func (m *message) encode() ([]byte, error) {
	var b bytes.Buffer
	z := gzip.NewWriter(&b)
	err := errors.Join(json.NewEncoder(z).Encode(m), z.Close())
	return b.Bytes(), err
}

func decode(data []byte) (*message, error) {
	z, err := gzip.NewReader(bytes.NewReader(data))
	if err != nil {
		return nil, err
	}
	text, err := io.ReadAll(io.LimitReader(z, maxMessage)) // to the end, where the checksum is
	if err != nil {
		return nil, err
	}
	m := new(message)
	if err := json.Unmarshal(text, m); err != nil {
		return nil, err
	}
	m.Readings = m.Readings[:min(len(m.Readings), maxReadings)]
	return m, nil
}

// peer is another server.
type peer struct {
	message
	seen   bool // it has written while this server was watching
	silent int  // reads without a new message
}

// exchange writes what this server knows and reads what the others know. Only its goroutine
// touches the storage: requests look at what is in memory.
type exchange struct {
	settings func() *Fleet
	state    *optional.State
	cancel   context.CancelFunc
	done     chan struct{}
	busy     chan struct{} // holds a token while the storage works

	restored []handler.Reading // what this server wrote before it was started; nil: not read yet
	sequence int64
	older    map[string]*site.Site // versions that this server does not serve, nil: not in the history

	mu    sync.Mutex // guards peers
	peers map[string]*peer
}

func newExchange(settings func() *Fleet) *exchange {
	ctx, cancel := context.WithCancel(context.Background())
	x := &exchange{
		settings: settings, state: optional.NewState("fleet"), cancel: cancel, done: make(chan struct{}), busy: make(chan struct{}, 1),
		sequence: time.Now().UnixNano(), older: map[string]*site.Site{}, peers: map[string]*peer{},
	}
	go x.run(ctx)
	return x
}

// lastWrite is how long the last message may take, when a server ends.
const lastWrite = 2 * time.Second

// close writes once more, for the next start, and does not wait for a storage that hangs.
func (x *exchange) close(f *Fleet) {
	x.cancel()
	<-x.done
	ctx, cancel := context.WithTimeout(context.Background(), lastWrite)
	defer cancel()
	_ = x.write(ctx, f) // the next start knows a little less
	x.state.Remove()
}

func (x *exchange) run(ctx context.Context) {
	defer close(x.done)
	var wrote, read time.Time
	for {
		f := x.settings()
		if f == nil {
			return
		}
		interval := time.Duration(f.Interval)
		var err error
		worked := false
		if now := time.Now(); now.Sub(wrote) >= interval {
			wrote, worked = now, true
			err = x.write(ctx, f)
		}
		if now := time.Now(); now.Sub(read) >= max(interval*3/2, time.Duration(len(x.peers))*time.Second) {
			read, worked = now, true
			err = errors.Join(err, x.read(ctx, f))
			x.learn(ctx)
			alive, _ := x.count()
			if !f.SharedLimits {
				alive = 1
			}
			handler.ShareLimits(alive)
		}
		if ctx.Err() != nil {
			return
		}
		if worked {
			x.state.Report(err)
		}
		select {
		case <-ctx.Done():
			return
		case <-time.After(min(interval, time.Second)):
		}
	}
}

// storageTimeout is how long one operation of the storage may take.
const storageTimeout = 10 * time.Second

var errHangs = errors.New("the storage does not answer")

// within carries out an operation of the storage. One that goes on after ctx ends is left to
// itself, its answer counts for nothing, and nothing else begins until it has ended.
func within[T any](ctx context.Context, x *exchange, do func(context.Context) (T, error)) (got T, err error) {
	ctx, cancel := context.WithTimeout(ctx, storageTimeout)
	defer cancel()
	select {
	case x.busy <- struct{}{}:
	default:
		return got, errHangs
	}
	type result struct {
		got T
		err error
	}
	results := make(chan result, 1)
	go func() {
		got, err := do(ctx)
		<-x.busy // before the caller can begin the next one
		results <- result{got, err}
	}()
	select {
	case r := <-results:
		return r.got, r.err
	case <-ctx.Done():
		return got, cmp.Or(context.Cause(ctx), errHangs)
	}
}

func key(node string) string { return prefix + node + ".json.gz" }

// write tells the others what crawlers have read here.
func (x *exchange) write(ctx context.Context, f *Fleet) error {
	if x.restored == nil {
		m, err := x.load(ctx, f.storage, key(f.Node))
		switch {
		case errors.Is(err, fs.ErrNotExist):
			m = new(message)
		case err != nil:
			return fmt.Errorf("reading what this server knew before: %w", err)
		}
		x.restored = append([]handler.Reading{}, m.Readings...)
	}
	x.sequence++
	m := message{Sequence: x.sequence, Readings: x.own()}
	data, err := m.encode()
	if err != nil {
		return err
	}
	_, err = within(ctx, x, func(ctx context.Context) (none struct{}, err error) {
		return none, f.storage.Store(ctx, key(f.Node), data)
	})
	return err
}

// own is what crawlers have read here, the newest of each crawler and host.
func (x *exchange) own() []handler.Reading {
	all := slices.Clone(x.restored)
	for _, d := range policies.Pool.Loaded() {
		all = append(all, handler.Readings(d.Current())...)
	}
	all = newest(all)
	unverified := 0
	all = slices.DeleteFunc(all, func(r handler.Reading) bool {
		if !r.Verified {
			unverified++
		}
		return !r.Verified && unverified > maxUnverified
	})
	return all[:min(len(all), maxReadings)]
}

// newest sorts readings, those of verified crawlers first and then the newest, and leaves the
// newest of each crawler, host and policy.
func newest(all []handler.Reading) []handler.Reading {
	slices.SortFunc(all, func(a, b handler.Reading) int {
		verified := 0
		if a.Verified != b.Verified {
			verified = 1
			if a.Verified {
				verified = -1
			}
		}
		return cmp.Or(verified, cmp.Compare(b.At, a.At), strings.Compare(a.Crawler, b.Crawler), strings.Compare(a.Host, b.Host))
	})
	type id struct{ crawler, host, policy string }
	seen := map[id]bool{}
	return slices.DeleteFunc(all, func(r handler.Reading) bool {
		k := id{r.Crawler, r.Host, r.Policy}
		before := seen[k]
		seen[k] = true
		return before
	})
}

func (x *exchange) load(ctx context.Context, storage certmagic.Storage, key string) (*message, error) {
	return within(ctx, x, func(ctx context.Context) (*message, error) {
		data, err := storage.Load(ctx, key)
		if err != nil {
			return nil, err
		}
		return decode(data)
	})
}

// read reads what the others have written.
func (x *exchange) read(ctx context.Context, f *Fleet) error {
	keys, err := within(ctx, x, func(ctx context.Context) ([]string, error) {
		return f.storage.List(ctx, strings.TrimSuffix(prefix, "/"), false)
	})
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	var failed []error
	there := map[string]bool{}
	for _, k := range keys {
		node, ok := strings.CutSuffix(path.Base(k), ".json.gz")
		if !ok || node == f.Node {
			continue
		}
		there[node] = true
		m, err := x.load(ctx, f.storage, key(node))
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			failed = append(failed, fmt.Errorf("%s: %w", k, err))
		}
		if silent := x.heard(node, m); silent%forgetEvery == missingAfter {
			failed = append(failed, x.forget(ctx, f, node))
		}
	}
	for _, node := range slices.Collect(maps.Keys(x.peers)) { // which only this goroutine changes
		if !there[node] && x.heard(node, nil) >= missingAfter {
			x.remove(node) // another server, or somebody, has deleted its key
		}
	}
	return errors.Join(failed...)
}

// forget deletes the key of a server that has written nothing for long, by the clock of the
// storage: this server's own key was written a moment ago.
func (x *exchange) forget(ctx context.Context, f *Fleet, node string) error {
	gone, err := within(ctx, x, func(ctx context.Context) (gone bool, err error) {
		own, err := f.storage.Stat(ctx, key(f.Node))
		if err != nil {
			return false, err
		}
		theirs, err := f.storage.Stat(ctx, key(node))
		if errors.Is(err, fs.ErrNotExist) {
			return true, nil
		}
		if err != nil || theirs.Modified.IsZero() || own.Modified.Sub(theirs.Modified) < forgetAfter {
			return false, err
		}
		return true, f.storage.Delete(ctx, key(node))
	})
	if gone && err == nil {
		x.remove(node)
	}
	return err
}

func (x *exchange) remove(node string) {
	x.mu.Lock()
	defer x.mu.Unlock()
	delete(x.peers, node)
}

// heard notes what a server has written, nil if that cannot be read, and returns in how many
// reads there was nothing new.
func (x *exchange) heard(node string, m *message) (silent int) {
	x.mu.Lock()
	defer x.mu.Unlock()
	p := x.peers[node]
	switch {
	case p == nil && m != nil:
		x.peers[node] = &peer{message: *m}
		return 0
	case p == nil:
		return 0
	case m != nil && m.Sequence != p.Sequence:
		if p.silent >= missingAfter && p.seen {
			caddy.Log().Named("robots_policy.fleet").Info("a server of the fleet is there again", zap.String("node", node))
		}
		p.message, p.seen, p.silent = *m, true, 0
	default:
		if p.silent++; p.silent == missingAfter && p.seen {
			caddy.Log().Named("robots_policy.fleet").Warn("a server of the fleet has not written for three intervals", zap.String("node", node))
		}
	}
	return p.silent
}

// count is how many servers are alive, this one included, and how many were.
func (x *exchange) count() (alive, missing int) {
	x.mu.Lock()
	defer x.mu.Unlock()
	alive = 1
	for _, p := range x.peers {
		switch {
		case p.seen && p.silent < missingAfter:
			alive++
		case p.seen:
			missing++
		}
	}
	return alive, missing
}

// learn gives each policy what crawlers have read elsewhere, under versions that this server
// serves or served, or that the history of the policy has.
func (x *exchange) learn(ctx context.Context) {
	all := slices.Clone(x.restored)
	x.mu.Lock()
	for _, p := range x.peers {
		all = append(all, p.Readings...)
	}
	x.mu.Unlock()
	by, known := map[string][]handler.Reading{}, map[string]bool{}
	for _, r := range newest(all) {
		by[r.Policy] = append(by[r.Policy], r)
	}
	documents := policies.Pool.Loaded()
	sites := make([]map[string]*site.Site, len(documents))
	for i, d := range documents {
		sites[i] = handler.KnownPolicies(d.Current())
		for sum := range sites[i] {
			known[sum] = true
		}
	}
	var unknown []string
	for sum := range by {
		if !known[sum] {
			unknown = append(unknown, sum)
		}
	}
	for i, d := range documents {
		if len(unknown) > 0 && d.Writable() {
			x.addOlder(ctx, d, unknown, sites[i])
		}
		var readings []handler.Reading
		for sum := range sites[i] {
			readings = append(readings, by[sum]...)
		}
		handler.SetElsewhere(d.Current(), newest(readings), sites[i])
	}
}

// addOlder adds versions from the history of a policy in the storage.
func (x *exchange) addOlder(ctx context.Context, d *source.Document, sums []string, into map[string]*site.Site) {
	id := func(sum string) string { return d.Name + " " + sum }
	if slices.ContainsFunc(sums, func(sum string) bool { _, ok := x.older[id(sum)]; return !ok }) {
		history, err := d.History(ctx)
		if err != nil {
			return
		}
		if len(x.older) > maxOlder {
			clear(x.older)
		}
		for _, sum := range sums {
			x.older[id(sum)] = nil
		}
		for _, v := range history {
			if slices.Contains(sums, v.SHA256) {
				if s, err := source.Compile(d.Name, []byte(v.Text)); err == nil {
					x.older[id(v.SHA256)] = s.Site
				}
			}
		}
	}
	for _, sum := range sums {
		if s := x.older[id(sum)]; s != nil {
			into[sum] = s
		}
	}
}

// Metric is a Prometheus collector of the servers of the fleet.
var Metric prometheus.Collector = collector{}

type collector struct{}

var desc = prometheus.NewDesc("caddy_robots_policy_fleet_nodes",
	"Servers that tell each other through the storage what crawlers have read, this one included, by state: alive or missing.", []string{"state"}, nil)

// Describe implements prometheus.Collector.
func (collector) Describe(ch chan<- *prometheus.Desc) { ch <- desc }

// Collect implements prometheus.Collector.
func (collector) Collect(ch chan<- prometheus.Metric) {
	running.Lock()
	x := running.exchange
	running.Unlock()
	if x == nil {
		return
	}
	alive, missing := x.count()
	ch <- prometheus.MustNewConstMetric(desc, prometheus.GaugeValue, float64(alive), "alive")
	ch <- prometheus.MustNewConstMetric(desc, prometheus.GaugeValue, float64(missing), "missing")
}
