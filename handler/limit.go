// SPDX-License-Identifier: Apache-2.0

package handler

import (
	"slices"
	"time"

	"github.com/robotspolicy/caddy-robots-policy/policy"
	"github.com/robotspolicy/caddy-robots-policy/site"
)

// countedLimits says by which policy a request has been counted, so that it is counted
// once: not again in error routes, or by another handler that does no more.
type countedLimits struct {
	limiter *limiter
	mode    policy.Mode
}

// countLimits counts a request against limits, and makes it and k those of a limited
// request if it is over one of them.
func (q *request) countLimits(limits []site.Limit, k *class) {
	limiter, maxMode := &sharedOf(q.snapshot).limiter, q.h.mode()
	vars := q.h.Server.Vars(q.Request)
	counted, _ := vars[limitedVar].([]countedLimits)
	if maxMode < policy.ModeLog || slices.ContainsFunc(counted, func(c countedLimits) bool { return c.limiter == limiter && c.mode >= maxMode }) {
		return
	}
	if vars != nil {
		vars[limitedVar] = append(counted, countedLimits{limiter, maxMode})
	}
	for _, mode := range [...]policy.Mode{policy.ModeBlock, policy.ModeLog} {
		over, wait, ok := q.countAgainst(limiter, mode, maxMode, limits)
		if ok {
			continue
		}
		q.query.Crawler, q.query.Identity = over.Crawler, over.Identity
		q.wait, q.limitPos = wait, over.Pos
		k.crawler, k.identity, k.limited, k.action, k.rule = over.Crawler, over.Identity, true, mode, over.Rule
		return
	}
}

// countAgainst counts a request against all limits that are enforced in a mode, or, if it
// is over one of them, against none.
func (q *request) countAgainst(l *limiter, mode, maxMode policy.Mode, limits []site.Limit) (over *site.Limit, wait time.Duration, ok bool) {
	var keyBuf [4]limitKey
	var limitBuf [4]*site.Limit
	keys, of := keyBuf[:0], limitBuf[:0]
	for i := range limits {
		if limit := &limits[i]; min(limit.Mode, maxMode) == mode {
			keys = append(keys, limitKey{
				Crawler:  q.snapshot.Site.Policy.CrawlerInfo(limit.Crawler).Token,
				Identity: limit.Identity, Pos: limit.Pos, Limit: limit.Limit, DryRun: mode == policy.ModeLog,
			})
			of = append(of, limit)
		}
	}
	if len(keys) == 0 {
		return nil, 0, true
	}
	i, wait, ok := l.allow(q.query.Now, keys...)
	return of[i], wait, ok
}
