// SPDX-License-Identifier: Apache-2.0

package robotspolicy

import (
	"errors"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/robotspolicy/caddy-robots-policy/crawlers/identity"
	"github.com/robotspolicy/caddy-robots-policy/handler"
	"github.com/robotspolicy/caddy-robots-policy/internal/caddyside/auditor"
	"github.com/robotspolicy/caddy-robots-policy/internal/caddyside/cataloguestore"
	"github.com/robotspolicy/caddy-robots-policy/internal/caddyside/optional"
	"github.com/robotspolicy/caddy-robots-policy/internal/caddyside/recorders"
)

// Caddy makes new handlers and matchers with each configuration, and they have no way to
// each other. So what outlives a reload, and what they share, is of the process.
var metrics = handler.NewMetrics()

// collectors are the metrics of handlers, and of packages that register none themselves.
func collectors() []prometheus.Collector {
	return append(append(identity.Collectors(), auditor.Collectors()...), recorders.Metric, optional.Metric, cataloguestore.Collector, metrics)
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
