// SPDX-License-Identifier: Apache-2.0

package handler

import (
	"slices"
	"sync/atomic"

	"github.com/robotspolicy/caddy-robots-policy/policy"
	"github.com/robotspolicy/caddy-robots-policy/site"
)

// limitShare is among how many servers each limit is divided, 0 for one. It is global, because the
// servers of a fleet are counted once for a process, whatever configurations it has.
var limitShare atomic.Int64

// ShareLimits divides every limit among that many servers.
func ShareLimits(servers int) { limitShare.Store(int64(servers)) }

// countedLimits says by which policy a request has been counted, so that it is counted
// once: not again in error routes, or by another handler that does no more.
type countedLimits struct {
	limiter *site.Limiter
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
	over, mode, wait := limiter.Take(q.snapshot.Site.Policy, q.query.Now, int(max(1, limitShare.Load())), maxMode, limits)
	if over == nil {
		return
	}
	q.query.Crawler, q.query.Identity = over.Crawler, over.Identity
	q.wait, q.limitPos = wait, over.Pos
	k.crawler, k.identity, k.limited, k.action, k.rule = over.Crawler, over.Identity, true, mode, over.Rule
}
