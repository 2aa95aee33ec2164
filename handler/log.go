// SPDX-License-Identifier: Apache-2.0

package handler

import (
	"slices"
	"time"

	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"

	"github.com/robotspolicy/caddy-robots-policy/policy"
)

// lineKind identifies similar log lines. Only samples of them are logged.
type lineKind struct {
	class
	violation bool
}

// log logs a line about the request, unless many similar lines were logged recently.
func (q *request) log(message string, kind lineKind, fields func() []zap.Field) {
	c := q.h.Logger.Check(zapcore.InfoLevel, message)
	if c == nil {
		return
	}
	kind.identity = policy.Unknown
	ok, skipped := q.h.samples.Sample(kind, q.query.Now)
	if !ok {
		return
	}
	info := &q.decision.info
	who := []zap.Field{
		zap.String("crawler", info.Token), zap.String("category", info.Category), zap.String("operator", info.Operator),
		zap.String("identity", q.decision.identity.String()), zap.String("client_ip", q.h.Server.ClientIP(q.Request)),
		zap.String("host", q.target.Host), zap.String("uri", q.target.Path),
	}
	c.Write(slices.Concat(who, fields(), []zap.Field{zap.Int("skipped", skipped)})...)
}

// logRefusal logs a blocked request. In the mode "log", it logs a request that would have been blocked.
func (q *request) logRefusal() {
	d, s := q.decision, q.snapshot.Site
	q.log(refusalMessage(d), lineKind{class: d.class}, func() []zap.Field {
		reason, place := "disallowed", s.File.Name
		switch {
		case d.impostor:
			reason = "impostor"
		case d.limited:
			reason, place = "limited", s.Place(q.limitPos)
		case q.anyCase:
			reason, place = "disallowed in another letter case", s.Place(q.statement.Pos)
		default:
			place = s.Place(q.statement.Pos)
		}
		return []zap.Field{zap.String("reason", reason), zap.String("rule", d.Rule()), zap.String("policy", place)}
	})
}

// refusalMessage returns the message of a log line. All messages are constants, because building them would take time,
// and refusalMessage is called for many more requests than are logged.
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

// checkViolation counts and logs a request that violates the robots.txt that the crawler fetched before.
func (q *request) checkViolation() {
	if q.decision.info.Signer {
		return // robots.txt cannot address this crawler
	}
	decision, found := q.read.Violation(q.decision.token, q.snapshot.Site, &q.target, q.query)
	if q.violation = found; !found || q.audit {
		return
	}
	m, told := q.h.Metrics, q.read.Site
	m.violations.WithLabelValues(m.crawler(q.decision.info.Token), q.decision.identity.String(), m.rule(told.RuleName(decision.Rule))).Inc()
	kind := lineKind{class: class{crawler: q.decision.crawler, rule: decision.Rule.Pos}, violation: true}
	q.log("crawler violates robots.txt", kind, func() []zap.Field {
		return []zap.Field{
			zap.String("robots_txt", q.read.Version), zap.Time("fetched", time.Unix(q.read.At, 0)),
			zap.String("rule", told.RuleName(decision.Rule)), zap.String("policy", told.Place(decision.Statement.Pos)),
		}
	})
}
