// SPDX-License-Identifier: Apache-2.0

// Package recorders holds the recorders of visits that the running configuration
// has. The handlers pass visits to all of them.
package recorders

import (
	"context"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/robotspolicy/caddy-robots-policy/activity"
	"github.com/robotspolicy/caddy-robots-policy/site"
)

// running are the recorders of the process. Caddy gives the handlers, the console and the
// admin API no way to each other, and a recorder outlives the configuration it began in.
var running activity.Recorders

// Running returns the recorders of the running configuration.
func Running() *activity.Recorders { return &running }

// Find returns the first recorder of a type. Packages that do not import each other
// reach each other's recorders by it.
func Find[T any]() (found T, ok bool) {
	for _, name := range []string{"activity", "evidence", "guard"} {
		if found, ok = running.Get(name).(T); ok {
			return found, true
		}
	}
	return found, false
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
	running.Dropped(func(name string, n uint64) {
		ch <- prometheus.MustNewConstMetric(droppedDesc, prometheus.CounterValue, float64(n), name)
	})
}
