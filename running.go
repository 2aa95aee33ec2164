// SPDX-License-Identifier: Apache-2.0

package robotspolicy

import (
	"errors"
	"sync"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/robotspolicy/caddy-robots-policy/crawlers/identity"
	"github.com/robotspolicy/caddy-robots-policy/handler"
	"github.com/robotspolicy/caddy-robots-policy/internal/caddyside/auditor"
	"github.com/robotspolicy/caddy-robots-policy/internal/caddyside/cataloguestore"
	"github.com/robotspolicy/caddy-robots-policy/internal/caddyside/fleet"
	"github.com/robotspolicy/caddy-robots-policy/internal/caddyside/optional"
	"github.com/robotspolicy/caddy-robots-policy/internal/caddyside/recorders"
	"github.com/robotspolicy/caddy-robots-policy/policy"
)

// running are the handlers of the configurations that are loaded. Caddy gives the admin
// API no other way to them.
var running handlers

type handlers struct {
	mu  sync.Mutex
	all map[*handler.Handler]bool
}

func (s *handlers) add(h *handler.Handler) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.all == nil {
		s.all = map[*handler.Handler]bool{}
	}
	s.all[h] = true
}

func (s *handlers) remove(h *handler.Handler) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.all[h] {
		delete(s.all, h)
		h.SetOverride(policy.ModeUnset)
	}
}

// override limits what all handlers enforce, until a new configuration is loaded.
// ModeUnset lifts the limit. It returns how many handlers there are.
func (s *handlers) override(m policy.Mode) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	for h := range s.all {
		h.SetOverride(m)
	}
	return len(s.all)
}

// Caddy makes new handlers and matchers with each configuration, and they have no way to
// each other. So what outlives a reload, and what they share, is of the process.
var metrics = handler.NewMetrics()

// collectors are the metrics of handlers, and of packages that register none themselves.
func collectors() []prometheus.Collector {
	return append(append(identity.Collectors(), auditor.Collectors()...), recorders.Metric, optional.Metric, cataloguestore.Collector, fleet.Metric, metrics)
}

// registerMetrics adds the metrics to a registry, which may be nil. All handlers of a
// configuration share one.
func registerMetrics(r *prometheus.Registry) error {
	if r == nil {
		return nil
	}
	for _, c := range collectors() {
		var already prometheus.AlreadyRegisteredError
		if err := r.Register(c); err != nil && (!errors.As(err, &already) || already.ExistingCollector != c) {
			return err
		}
	}
	return nil
}
