// SPDX-License-Identifier: Apache-2.0

package recorders

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"
	"sync"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/caddyconfig/caddyfile"
	"github.com/prometheus/client_golang/prometheus"

	"github.com/robotspolicy/caddy-robots-policy/activity"
	"github.com/robotspolicy/caddy-robots-policy/internal/caddyside/block"
	"github.com/robotspolicy/caddy-robots-policy/internal/leaf/labels"
)

func init() { caddy.RegisterModule(new(Metrics)) }

// Metrics counts requests and the bytes sent for them, for Prometheus: `caddy_robots_policy_requests_total` and
// `caddy_robots_policy_response_bytes_total`, by crawler, identity, decision and, if configured, host. Automated
// clients that the policy does not know are counted as the crawler `unlisted`.
type Metrics struct {
	// Whether the counters have a label for the host. The first MaxHosts hosts get their own label; all others are
	// counted as `other`.
	Hosts bool `json:"hosts,omitempty"`

	// The number of hosts with their own label, at most 10000. Default: 200.
	MaxHosts int `json:"max_hosts,omitempty"`

	// The maximum number of series of both counters together. A limit is needed because each combination of crawler and
	// host has its own series. When the limit is reached, requests that would need a new series are counted for the
	// crawler and host `other`, and also in `caddy_robots_policy_requests_folded_total`. Default: 20000.
	Series int `json:"series,omitempty"`

	// The hosts that get their own label, instead of the first 200. Name them if the site accepts any host, because
	// clients can then invent hosts.
	HostNames []string `json:"host_names,omitempty"`

	only map[string]bool
}

// Limits of the labels. Clients can invent hosts, but not crawlers, because crawlers come from the catalog and the
// policy.
const (
	maxCrawlerLabels = 1000
	maxHostLabels    = 10_000
	maxLabelBytes    = 253 // maximum length of a DNS name

	defaultHostLabels = 200
	defaultSeries     = 20_000
	minSeries         = 1000 // enough for all identities and decisions of the crawler and host `other`
)

// All configurations share these counters, so the counters do not start at 0 when Caddy loads a new configuration.
var (
	visitsTotal = newVisitCounter("requests_total", "Requests from crawlers and other automated clients, by decision.")
	visitBytes  = newVisitCounter("response_bytes_total", "Bytes of response bodies sent to crawlers and other automated clients.")

	visitsFolded = prometheus.NewCounter(prometheus.CounterOpts{
		Namespace: "caddy", Subsystem: "robots_policy", Name: "requests_folded_total",
		Help: "Requests that were counted for the crawler `other` and the host `other`, because the metrics have reached their limit of time series.",
	})

	crawlerLabels = labels.NewSet(maxCrawlerLabels, maxLabelBytes)
	hostLabels    = labels.NewSet(defaultHostLabels, maxLabelBytes)
	series        = seriesSet{limit: defaultSeries, all: map[visitLabels]bool{}}
)

type visitLabels struct {
	crawler  string
	identity activity.Identity
	decision activity.Decision
	host     string
}

// seriesSet holds the series in which requests are counted. Their number is limited.
type seriesSet struct {
	mu    sync.RWMutex
	limit int // maximum for both counters together
	all   map[visitLabels]bool
}

func (s *seriesSet) admit(l visitLabels) bool {
	s.mu.RLock()
	ok := s.all[l]
	s.mu.RUnlock()
	if ok {
		return true
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.all[l] && 2*len(s.all) >= s.limit-minSeries {
		return false
	}
	s.all[l] = true
	return true
}

// Collectors returns the counters of requests.
func Collectors() []prometheus.Collector {
	return []prometheus.Collector{visitsTotal, visitBytes, visitsFolded}
}

func newVisitCounter(name, help string) *prometheus.CounterVec {
	return prometheus.NewCounterVec(prometheus.CounterOpts{Namespace: "caddy", Subsystem: "robots_policy", Name: name, Help: help},
		[]string{"crawler", "identity", "decision", "host"})
}

func (*Metrics) CaddyModule() caddy.ModuleInfo {
	return caddy.ModuleInfo{ID: "robots_policy.recorders.metrics", New: func() caddy.Module { return new(Metrics) }}
}

// Provision registers the counters.
func (m *Metrics) Provision(ctx caddy.Context) error {
	m.MaxHosts, m.Series = cmp.Or(m.MaxHosts, defaultHostLabels), cmp.Or(m.Series, defaultSeries)
	if n := max(len(m.HostNames), m.MaxHosts); n > maxHostLabels || m.MaxHosts < 0 {
		return fmt.Errorf("\"metrics hosts\" lists %d hosts: must be at most %d", n, maxHostLabels)
	}
	if m.Series < 2*minSeries || m.Series > 1_000_000 {
		return fmt.Errorf("invalid \"series\" %d in the metrics block: must be from %d to 1000000", m.Series, 2*minSeries)
	}
	if len(m.HostNames) > 0 {
		m.Hosts, m.only = true, map[string]bool{}
		for _, h := range m.HostNames {
			m.only[strings.ToLower(h)] = true
		}
	}
	return Register(ctx, Collectors()...)
}

// Register registers metrics in the registry of a configuration, unless they are already registered. It does
// nothing if the configuration has no registry.
func Register(ctx caddy.Context, collectors ...prometheus.Collector) error {
	registry := ctx.GetMetricsRegistry()
	if registry == nil {
		return nil
	}
	for _, c := range collectors {
		var already prometheus.AlreadyRegisteredError
		if err := registry.Register(c); err != nil && (!errors.As(err, &already) || already.ExistingCollector != c) {
			return fmt.Errorf("registering metrics: %w", err)
		}
	}
	return nil
}

// Start applies the limits.
func (m *Metrics) Start() error {
	hostLabels.SetLimit(m.MaxHosts)
	series.mu.Lock()
	defer series.mu.Unlock()
	series.limit = m.Series
	return nil
}

// UnmarshalCaddyfile sets up the recorder from Caddyfile tokens. Syntax:
//
//	metrics [hosts [<number>|<names...>]] {
//	    series <number>
//	}
func (m *Metrics) UnmarshalCaddyfile(d *caddyfile.Dispenser) error {
	d.Next()
	if d.NextArg() {
		if d.Val() != "hosts" {
			return d.Errf("invalid metrics %q: the first argument can only be \"hosts\", as in: metrics hosts", d.Val())
		}
		m.Hosts, m.HostNames = true, d.RemainingArgs()
		if len(m.HostNames) == 1 {
			if n, err := strconv.Atoi(m.HostNames[0]); err == nil && n > 0 {
				m.MaxHosts, m.HostNames = n, nil
			}
		}
	}
	return block.Read(d, block.Number("series", &m.Series, 1, math.MaxInt32, "a number such as 20000"))
}

func (m *Metrics) Record(v activity.Request) {
	crawler, host := activity.CategoryUnlisted, ""
	if v.Category != activity.CategoryUnlisted {
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
	if !series.admit(visitLabels{crawler, v.Identity, v.Decision, host}) {
		visitsFolded.Inc()
		if crawler = labels.Other; host != "" {
			host = labels.Other
		}
	}
	visitsTotal.WithLabelValues(crawler, string(v.Identity), string(v.Decision), host).Inc()
	visitBytes.WithLabelValues(crawler, string(v.Identity), string(v.Decision), host).Add(float64(v.Bytes))
}

var (
	_ caddy.Provisioner     = (*Metrics)(nil)
	_ caddyfile.Unmarshaler = (*Metrics)(nil)
)
