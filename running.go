// SPDX-License-Identifier: Apache-2.0

package robotspolicy

import (
	"sync"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/robotspolicy/caddy-robots-policy/crawlers/identity"
	"github.com/robotspolicy/caddy-robots-policy/handler"
	"github.com/robotspolicy/caddy-robots-policy/internal/caddyside/auditor"
	"github.com/robotspolicy/caddy-robots-policy/internal/caddyside/catalogstore"
	"github.com/robotspolicy/caddy-robots-policy/internal/caddyside/fleet"
	"github.com/robotspolicy/caddy-robots-policy/internal/caddyside/optional"
	"github.com/robotspolicy/caddy-robots-policy/internal/caddyside/recorders"
	"github.com/robotspolicy/caddy-robots-policy/policy"
)

// running has the handlers of the configurations that are loaded. Caddy gives the admin API no other way to them.
var running sync.Map

// stopRunning ends the limit on a handler, if it was running.
func stopRunning(h *handler.Handler) {
	if _, ok := running.LoadAndDelete(h); ok {
		h.SetOverride(policy.ModeUnset)
	}
}

// override limits what all handlers enforce, until a new configuration is loaded; ModeUnset lifts the limit. It
// returns how many handlers there are.
func override(m policy.Mode) (n int) {
	for h := range running.Range {
		h.(*handler.Handler).SetOverride(m)
		n++
	}
	return n
}

// Caddy makes new handlers and matchers with each configuration, and they have no way to
// each other. So what outlives a reload, and what they share, is of the process.
var metrics = handler.NewMetrics()

// collectors are the metrics of handlers, and of packages that register none themselves.
func collectors() []prometheus.Collector {
	return append(append(identity.Collectors(), auditor.Collectors()...), recorders.Metric, optional.Metric, catalogstore.Collector, fleet.Metric, metrics)
}
