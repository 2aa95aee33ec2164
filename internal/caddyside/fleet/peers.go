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

// If a server's key contains no new message for missingAfter reads, the server is treated as missing. After
// forgetAfter, its key is deleted, because a server in a container can have a new name at each start and leave many
// keys. Once in forgetEvery reads, this server checks whether it must delete a key.
const (
	missingAfter = 3
	forgetAfter  = 7 * 24 * time.Hour
	forgetEvery  = 1000
)

// peer is another server.
type peer struct {
	message
	seen   bool // whether it has written a message since this server started
	silent int  // number of reads without a new message
}

// forget deletes the key of a server that has written nothing for a long time. It compares the modification time of this
// key with the time of this server's key. The storage sets both times, so a wrong clock of a server does not matter.
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

// heard stores m, the message at the key of the server node. m is nil if the message cannot be read. silent is the
// number of reads since the last new message.
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
			caddy.Log().Named("robots_policy.fleet").Info("a server of the fleet writes its messages to Caddy's storage again", zap.String("name", node))
		}
		p.message, p.seen, p.silent = *m, true, 0
	default:
		if p.silent++; p.silent == missingAfter && p.seen {
			caddy.Log().Named("robots_policy.fleet").Warn("a server of the fleet has not written a message to Caddy's storage for three intervals of the option \"fleet\"", zap.String("name", node))
		}
	}
	return p.silent
}

// Missing returns the names of servers that no longer write messages, sorted.
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

// count returns the number of running servers, including this one, and the number of missing servers.
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

// Metric is a Prometheus collector of the number of servers in the fleet.
var Metric prometheus.Collector = collector{}

type collector struct{}

var desc = prometheus.NewDesc("caddy_robots_policy_fleet_servers",
	"Number of servers in the fleet, including this one, by state: alive or missing.", []string{"state"}, nil)

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
