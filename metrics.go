// SPDX-License-Identifier: Apache-2.0

package robotspolicy

import (
	"errors"
	"sync"

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
		l = l[:maxLabelBytes]
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

// count counts what the edge decided about a visit.
func (m *edgeMetrics) count(v *visit) {
	decision, rule := decisionAllowed, m.rule(v.site, v.verdict.Decision.Rule)
	if v.verdict.Impostor {
		rule = v.rule()
	}
	if v.verdict.Refused() {
		switch v.action {
		case policy.ModeBlock:
			decision = decisionRefused
		case policy.ModeLog:
			decision = decisionWouldRefuse
		default:
			decision = decisionDisallowed
		}
	}
	bot := m.crawler(v.crawler.Token)
	m.requests.WithLabelValues(bot, channelEdge, decision, rule).Inc()
	m.identities.WithLabelValues(bot, identityName(v.query.Identity)).Inc()
}

// countPage counts what a response told a crawler.
func (m *edgeMetrics) countPage(v *visit, page *site.Page, headers bool) {
	bot := m.crawler(v.crawler.Token)
	if headers && page.Values != nil {
		m.requests.WithLabelValues(bot, channelHeaders, decisionSent, "").Inc()
	}
	if page.Elements != nil {
		m.requests.WithLabelValues(bot, channelPage, decisionSent, "").Inc()
	}
}
