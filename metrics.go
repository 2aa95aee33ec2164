// SPDX-License-Identifier: Apache-2.0

package robotspolicy

import (
	"errors"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/robotspolicy/caddy-robots-policy/policy"
	"github.com/robotspolicy/caddy-robots-policy/site"
)

// The channels and decisions of the counters.
const (
	channelRobotsTxt = "robots_txt"
	channelEdge      = "edge"
	channelHeaders   = "headers"
	channelPage      = "page"

	decisionServed      = "served"       // robots.txt
	decisionSent        = "sent"         // headers, elements for a page
	decisionAllowed     = "allowed"      // edge
	decisionDisallowed  = "disallowed"   // edge: disallowed, and nothing done about it
	decisionWouldRefuse = "would_refuse" // edge: mode log
	decisionRefused     = "refused"      // edge
)

// Every label has a closed set of values: rules and crawlers are of the policy and
// the catalogue, never of requests, and past these bounds they are otherLabel.
const (
	otherLabel    = "other"
	maxLabelRules = 200
	maxLabelBots  = 1000
	maxLabelBytes = 64
)

// edgeMetrics count what crawlers do. There is one for the whole process, that each
// configuration registers with its own registry, so that counting goes on when a
// configuration is reloaded.
type edgeMetrics struct {
	requests, violations, identities, fetches *prometheus.CounterVec

	mu    sync.RWMutex
	rules map[string]string // labels by name
	bots  map[string]string
}

var metrics = &edgeMetrics{
	requests: prometheus.NewCounterVec(prometheus.CounterOpts{
		Namespace: "caddy", Subsystem: "robots_policy", Name: "crawler_requests_total",
		Help: "Requests of crawlers, by crawler, what the channel decided, and the rule that decided.",
	}, []string{"crawler", "channel", "decision", "rule"}),
	violations: prometheus.NewCounterVec(prometheus.CounterOpts{
		Namespace: "caddy", Subsystem: "robots_policy", Name: "violations_total",
		Help: "Requests of crawlers for what the robots.txt that they had fetched disallows to them.",
	}, []string{"crawler", "rule"}),
	identities: prometheus.NewCounterVec(prometheus.CounterOpts{
		Namespace: "caddy", Subsystem: "robots_policy", Name: "crawler_identity_total",
		Help: "Requests of crawlers, by what verification found out: verified, impostor or unknown.",
	}, []string{"crawler", "verified"}),
	fetches: newFetches(),
	rules:   map[string]string{}, bots: map[string]string{},
}

// newFetches is the counter of what verification asks, with all of its values from
// the start, so that the first failure is an increase.
func newFetches() *prometheus.CounterVec {
	v := prometheus.NewCounterVec(prometheus.CounterOpts{
		Namespace: "caddy", Subsystem: "robots_policy", Name: "verification_fetches_total",
		Help: "Address lists and key directories that were fetched, and addresses that DNS was asked about, by whether there was an answer.",
	}, []string{"source", "result"})
	for _, source := range []string{sourceList, sourceDNS, sourceKeys} {
		v.WithLabelValues(source, fetchOK)
		v.WithLabelValues(source, fetchFailed)
	}
	return v
}

// register makes the counters known to a registry, which may be nil. Several
// handlers of a configuration share one.
func (m *edgeMetrics) register(r *prometheus.Registry) error {
	if r == nil {
		return nil
	}
	for _, c := range []prometheus.Collector{m.requests, m.violations, m.identities, m.fetches} {
		var already prometheus.AlreadyRegisteredError
		if err := r.Register(c); err != nil && !(errors.As(err, &already) && already.ExistingCollector == c) {
			return err
		}
	}
	return nil
}

// label returns what stands for a name, or otherLabel when there are too many.
func (m *edgeMetrics) label(of map[string]string, most int, name string) string {
	m.mu.RLock()
	l, ok := of[name]
	m.mu.RUnlock()
	if ok {
		return l
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if l, ok := of[name]; ok {
		return l
	}
	if len(of) >= most {
		return otherLabel
	}
	l = name
	if len(l) > maxLabelBytes {
		l = strings.ToValidUTF8(l[:maxLabelBytes], "") // what is no UTF-8 makes the counters panic
	}
	of[name] = l
	return l
}

// crawler is the label of a crawler: its token in the catalogue or the policy.
func (m *edgeMetrics) crawler(token string) string { return m.label(m.bots, maxLabelBots, token) }

// rule is the label of a rule; empty for none.
func (m *edgeMetrics) rule(s *site.Site, r *policy.Rule) string {
	if r == nil {
		return ""
	}
	return m.label(m.rules, maxLabelRules, s.RuleName(r))
}

// decision is what the edge does about a kind of requests.
func (k *kind) decision() string {
	if !k.refused() {
		return decisionAllowed
	}
	switch k.action {
	case policy.ModeBlock:
		return decisionRefused
	case policy.ModeLog:
		return decisionWouldRefuse
	}
	return decisionDisallowed
}

// series are counters that stand still until something is counted: before, there are
// no such series in the metrics.
type series struct {
	of atomic.Pointer[[]prometheus.Counter]
}

// inc counts one more, by the counters that find returns.
func (s *series) inc(find func() []prometheus.Counter) {
	of := s.of.Load()
	if of == nil {
		found := find()
		of = &found
		s.of.Store(of)
	}
	for _, c := range *of {
		c.Inc()
	}
}

// countEdge counts what the edge decided about a request.
func (f *finding) countEdge() {
	f.edge.inc(func() []prometheus.Counter {
		bot, rule := metrics.crawler(f.crawler.Token), f.ruleName()
		if !f.impostor {
			rule = metrics.rule(f.site, f.rule)
		}
		return []prometheus.Counter{
			metrics.requests.WithLabelValues(bot, channelEdge, f.decision(), rule),
			metrics.identities.WithLabelValues(bot, f.identity.String()),
		}
	})
}

// countSent counts what else a crawler was given.
func (f *finding) countSent(s *series, channel, decision string) {
	s.inc(func() []prometheus.Counter {
		return []prometheus.Counter{metrics.requests.WithLabelValues(metrics.crawler(f.crawler.Token), channel, decision, "")}
	})
}

// countPage counts what a response told a crawler.
func (f *finding) countPage(page *site.Page, headers bool) {
	if headers && page.Values != nil {
		f.countSent(&f.headers, channelHeaders, decisionSent)
	}
	if page.Elements != nil {
		f.countSent(&f.page, channelPage, decisionSent)
	}
}
