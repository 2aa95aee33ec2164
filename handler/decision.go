// SPDX-License-Identifier: Apache-2.0

package handler

import (
	"net/http"
	"strings"
	"sync/atomic"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/robotspolicy/caddy-robots-policy/activity"
	"github.com/robotspolicy/caddy-robots-policy/policy"
	"github.com/robotspolicy/caddy-robots-policy/site"
)

// class holds the properties that a group of requests has in common. These requests share counters, and similar log
// lines about them are logged only once in a while.
type class struct {
	version  uint64 // the Serial of the policy's Snapshot
	crawler  policy.CrawlerID
	identity policy.Identity
	verdict  policy.Verdict
	impostor bool        // the setting enforcement.impostors decided, not a rule
	limited  bool        // the request is allowed, but exceeds the rate limit of rule
	action   policy.Mode // if disallowed: the mode of the policy, or the handler's mode if that is less strict
	rule     policy.Pos  // the deciding rule; zero if no rule decided
}

// classify returns the class of a request that does not exceed a rate limit.
func (q *request) classify(v site.Verdict) class {
	c := class{version: q.snapshot.Serial, crawler: v.Crawler, identity: q.query.Identity, verdict: v.Decision.Verdict, impostor: v.Impostor}
	if v.Decision.Rule != nil {
		c.rule = v.Decision.Rule.Pos
	}
	if v.Blocked() {
		c.action = min(v.Mode, q.h.mode())
	}
	return c
}

// refused reports whether the policy disallows the request, even if the server does not block it.
func (c *class) refused() bool { return c.impostor || c.verdict == policy.Disallowed }

// done returns the decision to record for the requests of the class. Unlike the verdict, this decision says whether the
// requests were really blocked or limited.
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

// Decision is the decision on a class of requests by a known crawler. It is used for metrics, logs and placeholders.
// All requests of the class share it, and only its counters change. It does not refer to the policy, so that the memory
// of an old policy can be freed.
type Decision struct {
	class
	ruleName string
	info     policy.Crawler
	token    string // the crawler's token in lower case
	publish  func(*http.Request)

	robots, edge, headers, page series
}

// Crawler returns the crawler whose rules decided about the request.
func (d *Decision) Crawler() policy.Crawler { return d.info }

// Identity returns what verification found about the client.
func (d *Decision) Identity() policy.Identity { return d.identity }

// Rule returns the name of the rule or setting that decided, or "" if none did.
func (d *Decision) Rule() string { return d.ruleName }

// Verdict returns "allowed", "disallowed" or "unstated". For a request that exceeds a rate limit, it returns
// "limited" or "would_limit".
func (d *Decision) Verdict() string {
	if d.limited {
		return string(d.done())
	}
	return d.verdict.String()
}

// Action returns the reaction to a request that the policy disallows or that exceeds a rate limit: "off", "log" or
// "block". For other requests it returns "".
func (d *Decision) Action() string {
	if !d.refused() && !d.limited {
		return ""
	}
	return d.action.String()
}

// decisions caches the decisions of a handler. It has a fixed number of slots. Several classes share a slot, which
// holds the decision that was used last.
type decisions [decisionSlots]atomic.Pointer[Decision]

const decisionSlots = 256

// decisionOf returns the decision about a class of requests under a policy. rule is the rule that decided, or nil.
func (h *Handler) decisionOf(s *site.Site, c class, rule *policy.Rule) *Decision {
	slot := &h.decisions[c.slot()]
	if d := slot.Load(); d != nil && d.class == c {
		return d
	}
	d := &Decision{class: c, ruleName: s.RuleName(rule), info: s.Policy.CrawlerInfo(c.crawler)}
	if c.impostor {
		d.ruleName = "enforcement.impostors"
	}
	d.token = strings.ToLower(d.info.Token)
	d.publish = h.Server.Publisher(d)
	slot.Store(d)
	return d
}

// slot returns the number of the slot for a class. Crawlers that are neighbors in the catalog have different slots.
func (c *class) slot() uint {
	return (uint(c.crawler) + 16*uint(c.verdict) + 8*uint(c.identity) + 5*uint(c.rule.Line) + 31*uint(c.version)) % decisionSlots
}

func (h *Handler) countEdge(d *Decision) {
	d.edge.inc(func() []prometheus.Counter {
		crawler, rule := h.Metrics.crawler(d.info.Token), d.ruleName
		if !d.impostor {
			rule = h.Metrics.rule(rule)
		}
		return []prometheus.Counter{
			h.Metrics.requests.WithLabelValues(crawler, channelEdge, string(d.done()), rule),
			h.Metrics.identities.WithLabelValues(crawler, d.identity.String()),
		}
	})
}

func (h *Handler) countRobotsTxt(d *Decision) {
	h.countSent(d, &d.robots, channelRobotsTxt, decisionServed)
}

func (h *Handler) countPage(d *Decision, headers, elements bool) {
	if headers {
		h.countSent(d, &d.headers, channelHeaders, decisionSent)
	}
	if elements {
		h.countSent(d, &d.page, channelPage, decisionSent)
	}
}

func (h *Handler) countSent(d *Decision, s *series, channel, decision string) {
	s.inc(func() []prometheus.Counter {
		return []prometheus.Counter{h.Metrics.requests.WithLabelValues(h.Metrics.crawler(d.info.Token), channel, decision, "")}
	})
}
