// SPDX-License-Identifier: Apache-2.0

package handler

import (
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/robotspolicy/caddy-robots-policy/activity"
	"github.com/robotspolicy/caddy-robots-policy/policy"
	"github.com/robotspolicy/caddy-robots-policy/site"
)

// judgment is the policy's decision on a request by a crawler that the policy knows.
type judgment struct {
	decision  *Decision // nil if the request is not from a known crawler
	several   bool      // the User-Agent names several crawlers
	query     policy.Query
	anyCase   bool              // see site.Verdict
	statement *policy.Statement // the deciding statement; nil if none decided
	client    client            // the crawler that decision is about
	audit     bool              // the request is from the command "audit"
	read      site.Reading      // the robots.txt that the crawler has fetched before
	wait      time.Duration     // if limited: the time until a request is possible again
	limitPos  policy.Pos        // if limited: the limit's place in the policy file
}

// judge decides about the request if it is from a crawler that the policy knows.
func (q *request) judge() {
	var buf [4]client
	clients, purposes := q.ask(buf[:0])
	if len(clients) == 0 {
		return
	}
	s := q.snapshot.Site
	var whoBuf [4]site.Client
	who := whoBuf[:0]
	for _, c := range clients {
		if info := s.Policy.CrawlerInfo(c.Crawler); info.IsStranger() {
			c.Identity = policy.Unknown // rules that demand a verified crawler must not apply: anyone can sign as their own host
		}
		who = append(who, site.Client{Crawler: c.Crawler, Identity: c.Identity})
	}
	q.query = policy.Query{Host: q.target.Host, Path: q.target.Path, Now: time.Now(), Purposes: purposes}
	query, verdict := s.EdgeOfAll(&q.target, who, q.query)
	q.query, q.several, q.anyCase, q.statement = query, len(clients) > 1, verdict.AnyCase, verdict.Decision.Statement
	// The requests of a verified crawler are never recorded as requests of the audit command, even if the User-Agent
	// names the audit command too.
	info := s.Policy.CrawlerInfo(query.Crawler)
	q.audit = query.Identity != policy.Verified && !info.IsStranger() && strings.Contains(q.UserAgent(), activity.AuditProduct)
	kind, rule := q.classify(verdict), verdict.Decision.Rule
	if !kind.refused() {
		var buf [4]site.Limit
		if limits := s.LimitsOfAll(buf[:0], &q.target, who, q.query); len(limits) > 0 {
			if over := q.countLimits(limits, &kind); over != nil {
				rule = over
			}
		}
	}
	if info := s.Policy.CrawlerInfo(kind.crawler); info.IsStranger() {
		kind.identity = policy.Verified
	}
	q.client = clients[slices.IndexFunc(clients, func(c client) bool { return c.Crawler == kind.crawler })]
	q.decision = q.h.decisionOf(s, kind, rule)
	q.read = q.snapshot.Memory.Readings.Last(q.decision.token, q.Host, q.decision.identity == policy.Verified)
}

// limitShare is the number of servers among which each rate limit is divided. 0 means one. It is global because the
// servers of a fleet are counted once per process, even if the process has several configurations.
var limitShare atomic.Int64

// ShareLimits divides every rate limit by the given number of servers.
func ShareLimits(servers int) { limitShare.Store(int64(servers)) }

// countedLimits records the policy whose rate limits have counted a request. So error routes and later handlers with
// the same limits do not count the request again.
type countedLimits struct {
	limiter *site.Limiter
	mode    policy.Mode
}

// countLimits counts a request against limits. If the request exceeds a limit, countLimits notes this in q and in the
// request's class k, and returns the rule that sets the limit.
func (q *request) countLimits(limits []site.Limit, k *class) *policy.Rule {
	limiter, maxMode := &q.snapshot.Memory.Limiter, q.h.mode()
	vars := q.h.Server.Vars(q.Request)
	counted, _ := vars[limitedVar].([]countedLimits)
	if maxMode < policy.ModeLog || slices.ContainsFunc(counted, func(c countedLimits) bool { return c.limiter == limiter && c.mode >= maxMode }) {
		return nil
	}
	if vars != nil {
		vars[limitedVar] = append(counted, countedLimits{limiter, maxMode})
	}
	over, mode, wait := limiter.Take(q.snapshot.Site.Policy, q.query.Now, int(max(1, limitShare.Load())), maxMode, limits)
	if over == nil {
		return nil
	}
	q.query.Crawler, q.query.Identity = over.Crawler, over.Identity
	q.wait, q.limitPos = wait, over.Pos
	k.crawler, k.identity, k.limited, k.action, k.rule = over.Crawler, over.Identity, true, mode, over.Rule.Pos
	return over.Rule
}
