// SPDX-License-Identifier: Apache-2.0

package robotspolicy

import (
	"fmt"
	"io"
	"net/http"
	"strconv"
	"time"

	"github.com/caddyserver/caddy/v2/modules/caddyhttp"

	"github.com/robotspolicy/caddy-robots-policy/internal/crawllimit"
	"github.com/robotspolicy/caddy-robots-policy/internal/policystore"
	"github.com/robotspolicy/caddy-robots-policy/policy"
	"github.com/robotspolicy/caddy-robots-policy/site"
)

// limitedVar is the request variable that is set once a request has been counted
// against the limits of its crawler.
const limitedVar = "robots_policy.limited"

// countLimits counts a request against the limits of its crawler, and makes k that of a
// limited request if it is over one of them. maxMode is the most that this handler does.
func countLimits(limiter *crawllimit.Limiter, maxMode policy.Mode, s *policystore.Snapshot, r *http.Request, v *visit, k *class) {
	var buf [2]site.Limit
	limits := s.Site.Limits(buf[:0], v.query)
	if len(limits) == 0 || caddyhttp.GetVar(r.Context(), limitedVar) != nil {
		return
	}
	caddyhttp.SetVar(r.Context(), limitedVar, true)
	token := s.Site.Policy.CrawlerInfo(v.query.Crawler).Token
	for i := range limits {
		l := &limits[i]
		action := min(l.Mode, maxMode)
		if action < policy.ModeLog {
			continue
		}
		wait, ok := limiter.Allow(crawllimit.Key{Crawler: token, Identity: v.query.Identity, Pos: l.Pos, Limit: l.Limit}, v.query.Now)
		if ok || action < k.action || action == k.action && wait <= v.wait {
			continue
		}
		k.limited, k.action, k.rule = true, action, l.Rule
		v.wait, v.limitPos = wait, l.Pos
	}
}

// tooMany answers a request that is over a limit (RFC 6585 section 4). It says nothing
// about indexing: the page is not gone.
func (f refusal) tooMany(w http.ResponseWriter, r *http.Request, wait time.Duration) error {
	seconds := strconv.FormatInt(int64((wait+time.Second-1)/time.Second), 10)
	message := fmt.Sprintf("Too many requests by this crawler; try again in %s seconds", seconds)
	header := w.Header()
	header.Set("Cache-Control", "no-store")
	header.Set("Retry-After", seconds)
	if f.raise {
		return caddyhttp.Error(http.StatusTooManyRequests, refusalError(message))
	}
	header.Set("Content-Type", messageType)
	w.WriteHeader(http.StatusTooManyRequests)
	if r.Method != http.MethodHead {
		_, _ = io.WriteString(w, message+"\n") // the client may have left
	}
	return nil
}
