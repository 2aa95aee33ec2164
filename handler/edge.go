// SPDX-License-Identifier: Apache-2.0

package handler

import (
	"net/http"
	"slices"
	"strings"
	"time"

	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"

	"github.com/robotspolicy/caddy-robots-policy/activity"
	"github.com/robotspolicy/caddy-robots-policy/crawlers"
	"github.com/robotspolicy/caddy-robots-policy/crawlers/identity"
	"github.com/robotspolicy/caddy-robots-policy/crawlers/webbotauth"
	"github.com/robotspolicy/caddy-robots-policy/policy"
	"github.com/robotspolicy/caddy-robots-policy/site"
	"github.com/robotspolicy/caddy-robots-policy/source"
)

// evaluate fills in the request, unless the request is by anyone but a crawler that the
// policy knows.
func (q *request) evaluate() {
	var buf [4]policy.CrawlerID
	all, card := q.recognize(buf[:0])
	if len(all) == 0 {
		return
	}
	s := q.snapshot.Site
	identify := func(id policy.CrawlerID) policy.Identity {
		if info := s.Policy.CrawlerInfo(id); info.IsStranger() {
			return policy.Unknown // to all rules but its own
		}
		return q.h.Verifier.Identify(q.h.Server, q.Request, s.Identities(), s.Verification(id))
	}
	says := q.Header["User-Agent"]
	if card.Purpose != "" {
		says = append(slices.Clip(says), card.Purpose)
	}
	query, verdict := s.EdgeOfAll(all, policy.Query{
		Host: q.Host, Path: q.target, Now: time.Now(),
		Purposes: s.Purposes(says),
	}, identify)
	q.query, q.several, q.anyCase = query, len(all) > 1, verdict.AnyCase
	// A crawler that proves who it is does not escape by naming our audit.
	info := s.Policy.CrawlerInfo(query.Crawler)
	q.audit = query.Identity != policy.Verified && !info.IsStranger() && strings.Contains(q.UserAgent(), activity.AuditProduct)
	q.statement = verdict.Decision.Statement
	kind := classify(query.Identity, verdict, q.h.mode())
	if !kind.refused() {
		var buf [4]site.Limit
		if limits := s.LimitsOfAll(buf[:0], all, query, identify); len(limits) > 0 {
			q.countLimits(limits, &kind)
		}
	}
	if info := s.Policy.CrawlerInfo(kind.crawler); info.IsStranger() {
		kind.identity = policy.Verified
	}
	q.decision = q.h.decisionOf(q.snapshot, kind)
}

// recognize appends to ids the crawlers that the request is from, see [identity.Judged]. It
// returns them with the card of the signer.
func (q *request) recognize(ids []policy.CrawlerID) ([]policy.CrawlerID, webbotauth.Card) {
	s := q.snapshot.Site
	named := s.RecognizeAll(ids, q.Header["User-Agent"])
	proof := q.h.Verifier.Recognize(q.h.Server, q.Request, s.Identities(), len(named) > 0, func(c *crawlers.Crawler) bool {
		return slices.Contains(named, s.Policy.Crawler(c.Token))
	})
	if proof == (identity.Proof{}) {
		return named, proof.Card
	}
	return identity.Judged(proof, named, func(c *crawlers.Crawler) (policy.CrawlerID, bool) {
		id := s.Policy.Crawler(c.Token)
		return id, id != 0
	}), proof.Card
}

// enforce counts a request and does what the policy demands. If the request is blocked,
// it is answered, or err is the answer.
func (q *request) enforce() (refused bool, err error) {
	d := q.decision
	d.countEdge()
	q.checkViolation()
	if d.action <= policy.ModeOff {
		return false, nil
	}
	q.logRefusal()
	if d.action != policy.ModeBlock {
		return false, nil
	}
	if d.limited {
		return true, q.tooMany()
	}
	enforcement := d.site.File.Spec.Enforcement
	if enforcement.Status == http.StatusPaymentRequired {
		terms := q.paymentRequired()
		if !q.h.RaiseRefusals { // an error page has its own words
			enforcement.Message = strings.TrimSpace(enforcement.Message + "\n" + terms)
		}
	}
	return true, q.refuse(&enforcement)
}

type lineKind struct {
	crawler   policy.CrawlerID
	rule      *policy.Rule
	action    policy.Mode
	impostor  bool
	limited   bool
	violation bool
}

// log writes a line about the request, unless there are too many of its kind.
func (q *request) log(message string, kind lineKind, fields func() []zap.Field) {
	c := q.h.Logger.Check(zapcore.InfoLevel, message)
	if c == nil {
		return
	}
	ok, skipped := q.h.samples.Sample(kind, q.query.Now)
	if !ok {
		return
	}
	info := &q.decision.info
	who := []zap.Field{
		zap.String("crawler", info.Token), zap.String("category", info.Category), zap.String("operator", info.Operator),
		zap.String("identity", q.decision.identity.String()), zap.String("client_ip", q.h.Server.ClientIP(q.Request)),
		zap.String("host", q.query.Host), zap.String("uri", q.query.Path),
	}
	c.Write(slices.Concat(who, fields(), []zap.Field{zap.Int("skipped", skipped)})...)
}

// logRefusal logs a block or, in mode log, what would be one.
func (q *request) logRefusal() {
	d := q.decision
	kind := lineKind{crawler: d.crawler, rule: d.rule, action: d.action, impostor: d.impostor, limited: d.limited}
	q.log(refusalMessage(d), kind, func() []zap.Field {
		reason, place := "disallowed", d.site.File.Name
		switch {
		case d.impostor:
			reason = "impostor"
		case d.limited:
			reason, place = "limited", d.site.Place(q.limitPos)
		case q.anyCase:
			reason, place = "disallowed in another letter case", d.site.Place(q.statement.Pos)
		default:
			place = d.site.Place(q.statement.Pos)
		}
		return []zap.Field{zap.String("reason", reason), zap.String("rule", d.Rule()), zap.String("policy", place)}
	})
}

// refusalMessage returns a constant: most requests pay for it without being logged.
func refusalMessage(d *Decision) string {
	switch {
	case d.action == policy.ModeBlock && d.limited:
		return "crawler limited"
	case d.action == policy.ModeBlock:
		return "crawler blocked"
	case d.limited:
		return "crawler would be limited"
	}
	return "crawler would be blocked"
}

// checkViolation counts and logs a request that violates the robots.txt that the
// crawler has fetched.
func (q *request) checkViolation() {
	if q.decision.info.Signer {
		return // no robots.txt speaks to it
	}
	version, decision, ok := sharedOf(q.snapshot).fetches.violation(q.decision.fetcher, q.decision.site, q.query)
	if !ok {
		return
	}
	q.violation = true
	if q.audit {
		return
	}
	m := q.h.Metrics
	m.violations.WithLabelValues(m.crawler(q.decision.info.Token), m.rule(version.Site, decision.Rule)).Inc()
	kind := lineKind{crawler: q.decision.crawler, rule: decision.Rule, violation: true}
	q.log("crawler violates robots.txt", kind, func() []zap.Field {
		return []zap.Field{
			zap.String("robots_txt", version.ETag), zap.Time("fetched", version.At),
			zap.String("rule", version.Site.RuleName(decision.Rule)), zap.String("policy", version.Site.Place(decision.Statement.Pos)),
		}
	})
}

// Bounds of the fetch log of one policy. The policy of one host needs little, and
// there can be thousands of them.
const (
	maxFetchers, maxFetchedPolicies         = 4096, 32
	maxFetchersPerHost, maxFetchedOfOneHost = 64, 8
)

// shared is what all versions of a policy share.
type shared struct {
	fetches *fetchLog // who has fetched the robots.txt of the policy
	limiter site.Limiter
}

func sharedOf(s *source.Snapshot) *shared {
	return s.Shared(func() any {
		if s.PerHost {
			return &shared{fetches: newFetchLog(maxFetchersPerHost, maxFetchedOfOneHost)}
		}
		return &shared{fetches: newFetchLog(maxFetchers, maxFetchedPolicies)}
	}).(*shared)
}
