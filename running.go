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

// running holds the handlers of loaded configurations. The admin API finds the handlers here, because Caddy does not
// pass them to it.
var running sync.Map

// stopRunning removes a handler from running, and removes the limit on its enforcement.
func stopRunning(h *handler.Handler) {
	if _, ok := running.LoadAndDelete(h); ok {
		h.SetOverride(policy.ModeUnset)
	}
}

// override limits the enforcement mode of all running handlers until a new configuration is loaded. A handler whose
// mode is stricter than m then uses m. ModeUnset removes this limit. n is the number of running handlers.
func override(m policy.Mode) (n int) {
	for h := range running.Range {
		h.(*handler.Handler).SetOverride(m)
		n++
	}
	return n
}

// metrics is a global variable, so that counters continue after a reload. For each configuration, Caddy creates new
// handlers, which do not know the handlers of the previous configuration.
var metrics = handler.NewMetrics()

// collectors returns the metrics of the handlers, and the metrics of packages that do not register them themselves.
func collectors() []prometheus.Collector {
	return append(append(identity.Collectors(), auditor.Collectors()...), recorders.Metric, optional.Metric, catalogstore.Collector, fleet.Metric, metrics)
}
