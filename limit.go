// SPDX-License-Identifier: Apache-2.0

package robotspolicy

import (
	"net/http"
	"slices"
	"strconv"
	"time"

	"github.com/caddyserver/caddy/v2/modules/caddyhttp"

	"github.com/robotspolicy/caddy-robots-policy/internal/crawllimit"
	"github.com/robotspolicy/caddy-robots-policy/internal/leaf/english"
	"github.com/robotspolicy/caddy-robots-policy/policy"
	"github.com/robotspolicy/caddy-robots-policy/site"
	"github.com/robotspolicy/caddy-robots-policy/source"
)

// limitedVar is the request variable that says how a request has been counted, by each
// policy, so that it is counted once: not again in error routes, or by another handler
// that does no more.
const limitedVar = "robots_policy.limited"

// countedLimits is one of the values of limitedVar.
type countedLimits struct {
	limiter *crawllimit.Limiter
	mode    policy.Mode
}

// countLimits counts a request against limits, and makes k and v those of a limited
// request if it is over one of them. maxMode is the most that this handler does.
func countLimits(limiter *crawllimit.Limiter, maxMode policy.Mode, limits []site.Limit, s *source.Snapshot, r *http.Request, v *visit, k *class) {
	counted, _ := caddyhttp.GetVar(r.Context(), limitedVar).([]countedLimits)
	if maxMode < policy.ModeLog || slices.ContainsFunc(counted, func(c countedLimits) bool { return c.limiter == limiter && c.mode >= maxMode }) {
		return
	}
	caddyhttp.SetVar(r.Context(), limitedVar, append(counted, countedLimits{limiter, maxMode}))
	for _, mode := range [...]policy.Mode{policy.ModeBlock, policy.ModeLog} {
		over, wait, ok := countAgainst(limiter, mode, maxMode, limits, s, v.query.Now)
		if ok {
			continue
		}
		v.query.Crawler, v.query.Identity = over.Crawler, over.Identity
		v.wait, v.limitPos = wait, over.Pos
		k.crawler, k.identity, k.limited, k.action, k.rule = over.Crawler, over.Identity, true, mode, over.Rule
		return
	}
}

// countAgainst counts a request against all limits that are enforced in a mode, or, if it
// is over one of them, against none.
func countAgainst(limiter *crawllimit.Limiter, mode, maxMode policy.Mode, limits []site.Limit, s *source.Snapshot, now time.Time) (over *site.Limit, wait time.Duration, ok bool) {
	var keyBuf [4]crawllimit.Key
	var limitBuf [4]*site.Limit
	keys, of := keyBuf[:0], limitBuf[:0]
	for i := range limits {
		if l := &limits[i]; min(l.Mode, maxMode) == mode {
			keys = append(keys, crawllimit.Key{
				Crawler: s.Site.Policy.CrawlerInfo(l.Crawler).Token, Identity: l.Identity, Pos: l.Pos, Limit: l.Limit, DryRun: mode == policy.ModeLog,
			})
			of = append(of, l)
		}
	}
	if len(keys) == 0 {
		return nil, 0, true
	}
	i, wait, ok := limiter.Allow(now, keys...)
	return of[i], wait, ok
}

// tooMany answers a request that is over a limit (RFC 6585 section 4). It says nothing
// about indexing: the page is not gone.
func (f refusal) tooMany(w http.ResponseWriter, r *http.Request, wait time.Duration) error {
	seconds := wholeSeconds(wait)
	w.Header().Set("Retry-After", strconv.Itoa(seconds))
	return f.write(w, r, http.StatusTooManyRequests, "Too many requests by this crawler; try again in "+english.Count(seconds, "second"))
}
