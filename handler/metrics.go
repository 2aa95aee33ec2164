// SPDX-License-Identifier: Apache-2.0

package handler

import (
	"sync/atomic"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/robotspolicy/caddy-robots-policy/internal/leaf/labels"
)

// Values of the label channel.
const (
	channelRobotsTxt = "robots_txt"
	channelEdge      = "blocking"
	channelHeaders   = "headers"
	channelPage      = "page"
)

// Values of the label decision for all channels except blocking. Blocking uses the values of [activity.Decision].
const (
	decisionServed = "served" // robots.txt
	decisionSent   = "sent"   // headers, meta tags
)

// Limits on the number and length of label values. All labels have a closed set of values, because rules and
// crawlers come from the policy and the catalog, never from requests. Values beyond these limits become
// labels.Other.
const maxLabelRules, maxLabelBots, maxLabelBytes = 200, 2000, 64

// Metrics counts decisions about requests by crawlers. It is a Prometheus collector that several handlers can
// share.
type Metrics struct {
	requests, violations, identities *prometheus.CounterVec
	override                         *prometheus.GaugeVec

	rules, bots *labels.Set
}

// NewMetrics returns metrics with all counters at zero.
func NewMetrics() *Metrics {
	name := func(name, help string) prometheus.Opts {
		return prometheus.Opts{Namespace: "caddy", Subsystem: "robots_policy", Name: name, Help: help}
	}
	counter := func(o prometheus.Opts, labels ...string) *prometheus.CounterVec {
		return prometheus.NewCounterVec(prometheus.CounterOpts(o), labels)
	}
	return &Metrics{
		requests: counter(name("decisions_total", "Requests from crawlers, by channel, decision and the rule that decided."),
			"crawler", "channel", "decision", "rule"),
		violations: counter(name("violations_total", "Requests that violated the robots.txt that the crawler had fetched before, by identity and rule."),
			"crawler", "identity", "rule"),
		identities: counter(name("crawler_identity_total", "Requests from crawlers, by the result of verification: verified, impostor or unverified."),
			"crawler", "identity"),
		override: prometheus.NewGaugeVec(prometheus.GaugeOpts(name("enforce_override", "Number of handlers (directives such as robots_policy) whose enforcement is now limited through the admin API, by the mode that was set.")),
			[]string{"mode"}),
		rules: labels.NewSet(maxLabelRules, maxLabelBytes), bots: labels.NewSet(maxLabelBots, maxLabelBytes),
	}
}

func (m *Metrics) collectors() []prometheus.Collector {
	return []prometheus.Collector{m.requests, m.violations, m.identities, m.override}
}

// Describe implements prometheus.Collector.
func (m *Metrics) Describe(ch chan<- *prometheus.Desc) {
	for _, c := range m.collectors() {
		c.Describe(ch)
	}
}

// Collect implements prometheus.Collector.
func (m *Metrics) Collect(ch chan<- prometheus.Metric) {
	for _, c := range m.collectors() {
		c.Collect(ch)
	}
}

// crawler returns the label of a crawler: its token in the catalog or the policy.
func (m *Metrics) crawler(token string) string { return m.bots.Label(token) }

// rule returns the label value for a rule's name, or for "" if no rule decided.
func (m *Metrics) rule(name string) string {
	if name == "" {
		return ""
	}
	return m.rules.Label(name)
}

// series creates each counter when it is first incremented, so that counters of zero are not exported.
type series struct {
	counters atomic.Pointer[[]prometheus.Counter]
}

func (s *series) inc(find func() []prometheus.Counter) {
	counters := s.counters.Load()
	if counters == nil {
		found := find()
		counters = &found
		s.counters.Store(counters)
	}
	for _, c := range *counters {
		c.Inc()
	}
}
