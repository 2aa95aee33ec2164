// SPDX-License-Identifier: Apache-2.0

package robotspolicy

import (
	"net/http"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/modules/caddyhttp"
	"github.com/prometheus/client_golang/prometheus"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"

	"github.com/robotspolicy/caddy-robots-policy/internal/fetchlog"
	"github.com/robotspolicy/caddy-robots-policy/policy"
	"github.com/robotspolicy/caddy-robots-policy/site"
	"github.com/robotspolicy/caddy-robots-policy/source"
)

// visit is a request by a crawler that the policy knows, with the decision.
type visit struct {
	*outcome
	several   bool // it names more crawlers than that of query
	anyCase   bool // see site.Verdict
	query     policy.Query
	statement *policy.Statement // that decided; nil if none did
	violation bool              // of the robots.txt that the crawler has fetched
	audit     bool              // made by the command audit
	wait      time.Duration     // if limited: when a request is possible again
	limitPos  policy.Pos        // if limited: the limit's place in the policy file
}

// class is what all visits have in common that are counted and logged alike.
type class struct {
	crawler  policy.CrawlerID
	identity policy.Identity
	verdict  policy.Verdict
	impostor bool         // enforcement.impostors decided, not a rule
	limited  bool         // it is allowed, and over the limit of rule
	action   policy.Mode  // if refused: the policy's mode, limited by the handler's
	rule     *policy.Rule // that decided; nil if none did
}

// classify returns the class of a visit, on a handler that enforces at most
// maxMode.
func classify(identity policy.Identity, v site.Verdict, maxMode policy.Mode) class {
	c := class{crawler: v.Crawler, identity: identity, verdict: v.Decision.Verdict, impostor: v.Impostor, rule: v.Decision.Rule}
	if v.Refused() {
		c.action = min(v.Mode, maxMode)
	}
	return c
}

// refused reports whether the policy is against the request, enforced or not.
func (c *class) refused() bool { return c.impostor || c.verdict == policy.Disallowed }

// decision is the value of the label decision at the edge.
func (c *class) decision() string {
	switch {
	case c.limited && c.action == policy.ModeBlock:
		return decisionLimited
	case c.limited:
		return decisionWouldLimit
	case !c.refused():
		return decisionAllowed
	}
	switch c.action {
	case policy.ModeBlock:
		return decisionRefused
	case policy.ModeLog:
		return decisionWouldRefuse
	}
	return decisionDisallowed
}

// outcome is what is counted, logged and published about a class of visits. The
// visits share it: but for its counters it does not change.
type outcome struct {
	class
	site         *site.Site
	info         policy.Crawler
	fetcher      fetchlog.Crawler
	placeholders caddy.ReplacerFunc
	metrics      *visitMetrics

	robots, edge, headers, page series
}

func newOutcome(s *site.Site, c class, m *visitMetrics) *outcome {
	o := &outcome{class: c, site: s, info: s.Policy.CrawlerInfo(c.crawler), metrics: m}
	o.fetcher = fetchlog.NewCrawler(o.info.Token)
	o.placeholders = o.replace
	return o
}

// outcomes caches the outcomes of one policy, the most recent one in each slot, so
// that its size is fixed.
type outcomes [outcomeSlots]atomic.Pointer[outcome]

const outcomeSlots = 64

// outcomesOf returns the cache of a policy. It goes when the policy does.
func outcomesOf(s *source.Snapshot) *outcomes {
	return s.Attached(func() any { return new(outcomes) }).(*outcomes)
}

// get returns the outcome of a class.
func (os *outcomes) get(s *site.Site, c class, m *visitMetrics) *outcome {
	slot := &os[c.slot()]
	if o := slot.Load(); o != nil && o.class == c {
		return o
	}
	o := newOutcome(s, c, m)
	slot.Store(o)
	return o
}

// slot returns the slot of a class. Crawlers next to each other in the catalogue
// have different ones.
func (c *class) slot() uint {
	h := uint(c.crawler) + 16*uint(c.verdict) + 8*uint(c.identity)
	if c.rule != nil {
		h += 5 * uint(c.rule.Pos.Line)
	}
	return h % outcomeSlots
}

// ruleName is the name of the rule, or of the setting, that decided.
func (o *outcome) ruleName() string {
	if o.impostor {
		return "enforcement.impostors"
	}
	return o.site.RuleName(o.rule)
}

// countEdge counts the decision of the edge.
func (o *outcome) countEdge() {
	o.edge.inc(func() []prometheus.Counter {
		crawler, rule := o.metrics.crawler(o.info.Token), o.ruleName()
		if !o.impostor {
			rule = o.metrics.rule(o.site, o.rule)
		}
		return []prometheus.Counter{
			o.metrics.requests.WithLabelValues(crawler, channelEdge, o.decision(), rule),
			o.metrics.identities.WithLabelValues(crawler, o.identity.String()),
		}
	})
}

// countRobotsTxt counts a robots.txt that was served.
func (o *outcome) countRobotsTxt() { o.countSent(&o.robots, channelRobotsTxt, decisionServed) }

// countPage counts what a response carries.
func (o *outcome) countPage(headers, elements bool) {
	if headers {
		o.countSent(&o.headers, channelHeaders, decisionSent)
	}
	if elements {
		o.countSent(&o.page, channelPage, decisionSent)
	}
}

func (o *outcome) countSent(s *series, channel, decision string) {
	s.inc(func() []prometheus.Counter {
		return []prometheus.Counter{o.metrics.requests.WithLabelValues(o.metrics.crawler(o.info.Token), channel, decision, "")}
	})
}

// publish sets the placeholders {http.robots_policy.*} and the access log field
// robots_policy. A nil visit is a request by anyone but a known crawler.
func (v *visit) publish(r *http.Request) {
	ctx := r.Context()
	repl, ok := ctx.Value(caddy.ReplacerCtxKey).(*caddy.Replacer)
	if v == nil {
		if ok {
			repl.Map(emptyPlaceholders)
		}
		return
	}
	if ok {
		repl.Map(v.placeholders)
	}
	if server, _ := ctx.Value(caddyhttp.ServerCtxKey).(*caddyhttp.Server); server != nil && server.Logs == nil {
		return // no access log
	}
	if extra, ok := ctx.Value(caddyhttp.ExtraLogFieldsCtxKey).(*caddyhttp.ExtraLogFields); ok {
		extra.Set(zap.Object("robots_policy", v.outcome))
	}
}

const placeholderPrefix = "http.robots_policy."

var placeholderNames = []string{"crawler", "operator", "kind", "verified", "decision", "action", "rule"}

// placeholder returns the value of one of placeholderNames.
func (o *outcome) placeholder(name string) (value string, ok bool) {
	switch name {
	case "crawler":
		return o.info.Token, true
	case "operator":
		return o.info.Operator, true
	case "kind":
		return o.info.Kind, true
	case "verified":
		return o.identity.String(), true
	case "decision":
		if o.limited {
			return o.class.decision(), true
		}
		return o.verdict.String(), true
	case "action":
		if !o.refused() && !o.limited {
			return "", true
		}
		return o.action.String(), true
	case "rule":
		return o.ruleName(), true
	}
	return "", false
}

// replace is a caddy.ReplacerFunc.
func (o *outcome) replace(key string) (any, bool) {
	name, ok := strings.CutPrefix(key, placeholderPrefix)
	if !ok {
		return nil, false
	}
	value, ok := o.placeholder(name)
	return value, ok
}

// emptyPlaceholders is a caddy.ReplacerFunc for requests by anyone but a known
// crawler. It is one function for all of them, so that it costs nothing.
func emptyPlaceholders(key string) (any, bool) {
	name, ok := strings.CutPrefix(key, placeholderPrefix)
	if !ok {
		return nil, false
	}
	if slices.Contains(placeholderNames[:], name) {
		return "", true
	}
	return nil, false
}

// MarshalLogObject writes the fields of an access log line.
func (o *outcome) MarshalLogObject(e zapcore.ObjectEncoder) error {
	for _, name := range placeholderNames {
		if value, _ := o.placeholder(name); value != "" {
			e.AddString(name, value)
		}
	}
	return nil
}

// logFields are the log fields of who asked for what.
func (v *visit) logFields(r *http.Request) []zap.Field {
	client, _ := caddyhttp.GetVar(r.Context(), caddyhttp.ClientIPVarKey).(string)
	return append(make([]zap.Field, 0, 12),
		zap.String("crawler", v.info.Token), zap.String("kind", v.info.Kind), zap.String("operator", v.info.Operator),
		zap.String("verified", v.identity.String()), zap.String("client_ip", client),
		zap.String("host", v.query.Host), zap.String("uri", v.query.Path))
}
