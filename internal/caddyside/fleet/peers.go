// SPDX-License-Identifier: Apache-2.0

package fleet

import (
	"context"
	"errors"
	"io/fs"
	"slices"
	"time"

	"github.com/caddyserver/caddy/v2"
	"github.com/prometheus/client_golang/prometheus"
	"go.uber.org/zap"
)

// missingAfter is the number of reads without a new message after which a server is missing.
// forgetAfter is the time without a message after which its key is deleted, because servers in
// containers may have a new name each time. It is looked up once in forgetEvery reads.
const (
	missingAfter = 3
	forgetAfter  = 7 * 24 * time.Hour
	forgetEvery  = 1000
)

// peer is another server.
type peer struct {
	message
	seen   bool // it has written while this server was watching
	silent int  // reads without a new message
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
			caddy.Log().Named("robots_policy.fleet").Info("a server of the fleet is there again", zap.String("name", node))
		}
		p.message, p.seen, p.silent = *m, true, 0
	default:
		if p.silent++; p.silent == missingAfter && p.seen {
			caddy.Log().Named("robots_policy.fleet").Warn("a server of the fleet has not written for three intervals", zap.String("name", node))
		}
	}
	return p.silent
}

// Missing lists the servers that were there and write no more, in order.
func Missing() (names []string) {
	running.Lock()
	x := running.exchange
	running.Unlock()
	if x == nil {
		return nil
	}
	return x.missing()
}

func (x *exchange) missing() (names []string) {
	x.mu.Lock()
	defer x.mu.Unlock()
	for name, p := range x.peers {
		if p.seen && p.silent >= missingAfter {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}

// count returns the number of servers that are alive, this one included, and the number that were.
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

// Metric is a Prometheus collector of the servers of the fleet.
var Metric prometheus.Collector = collector{}

type collector struct{}

var desc = prometheus.NewDesc("caddy_robots_policy_fleet_servers",
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
