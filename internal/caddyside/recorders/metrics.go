// SPDX-License-Identifier: Apache-2.0

package recorders

import (
	"errors"
	"fmt"
	"strings"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/caddyconfig/caddyfile"
	"github.com/prometheus/client_golang/prometheus"

	"github.com/robotspolicy/caddy-robots-policy/activity"
	"github.com/robotspolicy/caddy-robots-policy/internal/leaf/labels"
)

func init() { caddy.RegisterModule(new(Metrics)) }

// Metrics counts visits and the bytes sent for them, for Prometheus:
// `caddy_robots_policy_visits_total` and `caddy_robots_policy_visit_bytes_total`, by
// crawler, identity and decision, and by host if asked for. Automated clients that the
// policy does not know are counted as the crawler `unknown`.
type Metrics struct {
	// Whether the counters have a label for the host. At most 200 hosts get one of
	// their own, in the order in which they are visited; the others are `other`.
	Hosts bool `json:"hosts,omitempty"`

	// The hosts that get a label of their own, instead of the first 200. Any client can
	// make up hosts where a site takes all of them.
	HostNames []string `json:"host_names,omitempty"`

	only map[string]bool
}

// Bounds of the labels. Crawlers come from the catalogue and the policy, hosts from
// requests.
const (
	maxCrawlerLabels = 1000
	maxHostLabels    = 200
	maxLabelBytes    = 253 // of a DNS name
)

// The counters are the same for every configuration, so that counting goes on across
// reloads.
var (
	visitsTotal = newVisitCounter("visits_total", "Requests of crawlers and other automated clients, by what was decided.")
	visitBytes  = newVisitCounter("visit_bytes_total", "Bytes of response bodies sent to crawlers and other automated clients.")

	crawlerLabels = labels.NewSet(maxCrawlerLabels, maxLabelBytes)
	hostLabels    = labels.NewSet(maxHostLabels, maxLabelBytes)
)

// Collectors are the counters of visits.
func Collectors() []prometheus.Collector { return []prometheus.Collector{visitsTotal, visitBytes} }

func newVisitCounter(name, help string) *prometheus.CounterVec {
	return prometheus.NewCounterVec(prometheus.CounterOpts{Namespace: "caddy", Subsystem: "robots_policy", Name: name, Help: help},
		[]string{"crawler", "identity", "decision", "host"})
}

// CaddyModule returns the Caddy module information.
func (*Metrics) CaddyModule() caddy.ModuleInfo {
	return caddy.ModuleInfo{ID: "robots_policy.recorders.metrics", New: func() caddy.Module { return new(Metrics) }}
}

// Provision registers the counters.
func (m *Metrics) Provision(ctx caddy.Context) error {
	if len(m.HostNames) > maxHostLabels {
		return fmt.Errorf("metrics hosts names %d hosts: must be at most %d", len(m.HostNames), maxHostLabels)
	}
	if len(m.HostNames) > 0 {
		m.Hosts, m.only = true, map[string]bool{}
		for _, h := range m.HostNames {
			m.only[strings.ToLower(h)] = true
		}
	}
	registry := ctx.GetMetricsRegistry()
	if registry == nil {
		return nil
	}
	for _, c := range []*prometheus.CounterVec{visitsTotal, visitBytes} {
		var already prometheus.AlreadyRegisteredError
		if err := registry.Register(c); err != nil && (!errors.As(err, &already) || already.ExistingCollector != c) {
			return fmt.Errorf("registering metrics: %w", err)
		}
	}
	return nil
}

// UnmarshalCaddyfile sets up the recorder from Caddyfile tokens. Syntax:
//
//	metrics [hosts [<names...>]]
func (m *Metrics) UnmarshalCaddyfile(d *caddyfile.Dispenser) error {
	d.Next()
	if d.NextArg() {
		if d.Val() != "hosts" {
			return d.Errf("invalid metrics %q: must be hosts, or nothing", d.Val())
		}
		m.Hosts, m.HostNames = true, d.RemainingArgs()
	}
	return nil
}

// Record implements activity.Recorder.
func (m *Metrics) Record(v activity.Visit) {
	if v.Audit {
		return
	}
	crawler, host := activity.KindUnknown, ""
	if v.Kind != activity.KindUnknown {
		crawler = crawlerLabels.Label(v.Crawler)
	}
	switch {
	case !m.Hosts:
	case m.only == nil && len(v.Host) <= maxLabelBytes:
		host = hostLabels.Label(v.Host)
	case m.only[v.Host]:
		host = strings.Clone(v.Host)
	default:
		host = labels.Other
	}
	visitsTotal.WithLabelValues(crawler, string(v.Identity), string(v.Decision), host).Inc()
	visitBytes.WithLabelValues(crawler, string(v.Identity), string(v.Decision), host).Add(float64(v.Bytes))
}

var (
	_ caddy.Provisioner     = (*Metrics)(nil)
	_ caddyfile.Unmarshaler = (*Metrics)(nil)
)
