// SPDX-License-Identifier: Apache-2.0

package optional

import (
	"cmp"
	"errors"
	"slices"
	"sync"
	"time"

	"github.com/caddyserver/caddy/v2"
	"github.com/prometheus/client_golang/prometheus"
	"go.uber.org/zap"
)

// State is the state of an optional part. If the part stops working or works again, this is logged. From NewState until
// Remove, [Failing] and [Metric] include the part.
type State struct {
	name  string
	tried chan struct{} // closed after the first attempt to open the part; nil if Wait need not wait for it
	mu    sync.Mutex
	err   error // why the part does not work; nil if it works
	since time.Time
}

var states = struct {
	sync.Mutex
	all []*State
}{}

// NewState returns the state of a part. A new State assumes that the part works. name identifies the part in the log
// and in metrics.
func NewState(name string) *State { return add(&State{name: name}) }

func add(s *State) *State {
	states.Lock()
	defer states.Unlock()
	states.all = append(states.all, s)
	return s
}

// Wait waits until the first attempt to open each part has ended, with or without success. It waits at most for the
// duration d.
func Wait(d time.Duration) {
	states.Lock()
	all := slices.Clone(states.all)
	states.Unlock()
	end := time.After(d)
	for _, s := range all {
		if s.tried == nil {
			continue
		}
		select {
		case <-s.tried:
		case <-end:
			return
		}
	}
}

// Remove removes the state from Failing and Metric.
func (s *State) Remove() {
	states.Lock()
	defer states.Unlock()
	states.all = slices.DeleteFunc(states.all, func(o *State) bool { return o == s })
}

// errSlow is reported while a part takes long to open, because the actual reason is not known yet.
var errSlow = errors.New("the optional part does not answer: its disk, network file system or storage may hang")

// Report sets the state. err is the reason why the part does not work, or nil if it works. Report logs only the first
// of several errors until the part works again. But if the first error was errSlow, Report also logs the next one,
// because it contains the actual reason.
func (s *State) Report(err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	before := s.err
	if s.err = err; err != nil && before == nil {
		s.since = time.Now()
	}
	switch {
	case err != nil && (before == nil || before == errSlow && err != errSlow): //nolint:errorlint // errSlow is never wrapped
		s.logger().Error("an optional part of robots_policy does not work; Caddy serves the sites without it, and tries again to start it", zap.String("part", s.name), zap.Error(err))
	case err == nil && before != nil:
		s.logger().Info("an optional part of robots_policy works again", zap.String("part", s.name))
	}
}

func (s *State) logger() *zap.Logger { return caddy.Log().Named("robots_policy." + s.name) }

// Err returns the reason why the part does not work, or nil if it works.
func (s *State) Err() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.err
}

// Failure describes a part that does not work.
type Failure struct {
	Part  string
	Err   error
	Since time.Time
}

// Failing returns the parts that do not work at the moment, sorted by name.
func Failing() (all []Failure) {
	states.Lock()
	defer states.Unlock()
	for _, s := range states.all {
		s.mu.Lock()
		if s.err != nil {
			all = append(all, Failure{s.name, s.err, s.since})
		}
		s.mu.Unlock()
	}
	slices.SortStableFunc(all, func(a, b Failure) int { return cmp.Compare(a.Part, b.Part) })
	return all
}

// Metric is a Prometheus collector of the states of all parts.
var Metric prometheus.Collector = collector{}

type collector struct{}

var desc = prometheus.NewDesc("caddy_robots_policy_part_failing",
	"1 if an optional part of robots_policy does not work, so Caddy serves the sites without it. The optional parts are activity, catalog, catalog_release, fleet_database, console, evidence and fleet.", []string{"part"}, nil)

func (collector) Describe(ch chan<- *prometheus.Desc) { ch <- desc }

func (collector) Collect(ch chan<- prometheus.Metric) {
	values := map[string]float64{} // while one configuration replaces another, a part may occur twice
	states.Lock()
	for _, s := range states.all {
		values[s.name] += 0
		if s.Err() != nil {
			values[s.name] = 1
		}
	}
	states.Unlock()
	for name, v := range values {
		ch <- prometheus.MustNewConstMetric(desc, prometheus.GaugeValue, v, name)
	}
}
