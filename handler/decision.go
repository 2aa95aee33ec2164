// SPDX-License-Identifier: Apache-2.0

package handler

import (
	"net/http"
	"sync/atomic"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/robotspolicy/caddy-robots-policy/activity"
	"github.com/robotspolicy/caddy-robots-policy/policy"
	"github.com/robotspolicy/caddy-robots-policy/site"
	"github.com/robotspolicy/caddy-robots-policy/source"
)

// class is what all requests have in common that are counted and logged alike.
type class struct {
	crawler  policy.CrawlerID
	identity policy.Identity
	verdict  policy.Verdict
	impostor bool         // enforcement.impostors decided, not a rule
	limited  bool         // it is allowed, and over the limit of rule
	action   policy.Mode  // if blocked: the policy's mode, limited by the handler's
	rule     *policy.Rule // that decided; nil if none did
}

// classify returns the class of a request, on a handler that enforces at most
// maxMode.
func classify(identity policy.Identity, v site.Verdict, maxMode policy.Mode) class {
	c := class{crawler: v.Crawler, identity: identity, verdict: v.Decision.Verdict, impostor: v.Impostor, rule: v.Decision.Rule}
	if v.Blocked() {
		c.action = min(v.Mode, maxMode)
	}
	return c
}

// refused reports whether the policy is against the request, enforced or not.
func (c *class) refused() bool { return c.impostor || c.verdict == policy.Disallowed }

// done returns what was decided about the requests of the class, and done about them.
func (c *class) done() activity.Decision {
	switch {
	case c.limited && c.action == policy.ModeBlock:
		return activity.Limited
	case c.limited:
		return activity.WouldLimit
	case !c.refused():
		return activity.Allowed
	}
	switch c.action {
	case policy.ModeBlock:
		return activity.Blocked
	case policy.ModeLog:
		return activity.WouldBlock
	case policy.ModeOff, policy.ModeUnset:
	}
	return activity.Disallowed
}

// Decision is what is counted, logged and published about a class of requests by a known
// crawler. The requests share it: but for its counters it does not change.
type Decision struct {
	class
	site    *site.Site
	info    policy.Crawler
	fetcher fetchingCrawler
	publish func(*http.Request)
	server  any // the handler's serverKey, as publish is the server's
	metrics *Metrics

	robots, edge, headers, page series
}

// Crawler returns the crawler that the policy judged by.
func (d *Decision) Crawler() policy.Crawler { return d.info }

// Identity returns what verification found about the client.
func (d *Decision) Identity() policy.Identity { return d.identity }

// Rule is the name of the rule, or of the setting, that decided; empty if none did.
func (d *Decision) Rule() string {
	if d.impostor {
		return "enforcement.impostors"
	}
	return d.site.RuleName(d.rule)
}

// Verdict is "allowed", "disallowed" or "unstated"; of a request that is over a limit
// "limited" or "would_limit".
func (d *Decision) Verdict() string {
	if d.limited {
		return string(d.done())
	}
	return d.verdict.String()
}

// Action is what is done about a request that the policy disallows or that is over a
// limit: "off", "log" or "block"; empty for one that passes.
func (d *Decision) Action() string {
	if !d.refused() && !d.limited {
		return ""
	}
	return d.action.String()
}

// decisions caches the decisions of one policy, the most recent one in each slot, so
// that its size is fixed.
type decisions [decisionSlots]atomic.Pointer[Decision]

const decisionSlots = 64

// decisionOf returns the decision of a class, cached until the policy is replaced.
func (h *Handler) decisionOf(s *source.Snapshot, c class) *Decision {
	slot := &s.Attached(func() any { return new(decisions) }).(*decisions)[c.slot()]
	if d := slot.Load(); d != nil && d.class == c && d.metrics == h.Metrics && d.server == h.serverKey {
		return d
	}
	d := &Decision{class: c, site: s.Site, info: s.Site.Policy.CrawlerInfo(c.crawler), server: h.serverKey, metrics: h.Metrics}
	d.fetcher = newFetchingCrawler(d.info.Token)
	d.publish = h.Server.Publisher(d)
	slot.Store(d)
	return d
}

// slot returns the slot of a class. Crawlers next to each other in the catalog
// have different ones.
func (c *class) slot() uint {
	h := uint(c.crawler) + 16*uint(c.verdict) + 8*uint(c.identity)
	if c.rule != nil {
		h += 5 * uint(c.rule.Pos.Line)
	}
	return h % decisionSlots
}

func (d *Decision) countEdge() {
	d.edge.inc(func() []prometheus.Counter {
		crawler, rule := d.metrics.crawler(d.info.Token), d.Rule()
		if !d.impostor {
			rule = d.metrics.rule(d.site, d.rule)
		}
		return []prometheus.Counter{
			d.metrics.requests.WithLabelValues(crawler, channelEdge, string(d.done()), rule),
			d.metrics.identities.WithLabelValues(crawler, d.identity.String()),
		}
	})
}

func (d *Decision) countRobotsTxt() { d.countSent(&d.robots, channelRobotsTxt, decisionServed) }

func (d *Decision) countPage(headers, elements bool) {
	if headers {
		d.countSent(&d.headers, channelHeaders, decisionSent)
	}
	if elements {
		d.countSent(&d.page, channelPage, decisionSent)
	}
}

func (d *Decision) countSent(s *series, channel, decision string) {
	s.inc(func() []prometheus.Counter {
		return []prometheus.Counter{d.metrics.requests.WithLabelValues(d.metrics.crawler(d.info.Token), channel, decision, "")}
	})
}
