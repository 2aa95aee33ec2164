// SPDX-License-Identifier: Apache-2.0

package robotspolicy

import (
	"net/http"
	"strings"
	"time"

	"github.com/caddyserver/caddy/v2"

	"github.com/robotspolicy/caddy-robots-policy/crawlers"
	"github.com/robotspolicy/caddy-robots-policy/policy"
	"github.com/robotspolicy/caddy-robots-policy/site"
)

// visit is what is found out about a request of a crawler that the policy knows.
type visit struct {
	site    *site.Site
	query   policy.Query
	crawler policy.Crawler
	verdict site.Verdict
	action  policy.Mode // what is done where the verdict is against it: the policy's mode, capped by the server's
}

// provisionEdge prepares verification and counting. Nothing is fetched before there are requests.
func (h *Handler) provisionEdge(ctx caddy.Context) error {
	v, err := parseVerification(h.Verify, h.VerifyFrom)
	if err != nil {
		return err
	}
	if err := metrics.register(ctx.GetMetricsRegistry()); err != nil {
		return err
	}
	if h.readers, err = holdReaders(h.Policy); err != nil {
		return err
	}
	h.errorsCaught = errorsCaughtIn(ctx.Modules())
	ids := &identities{verification: v}
	h.ids = ids
	if known, err := crawlers.Default(); err == nil {
		// Held from now on, so that what is known outlives a reload.
		urls := known.AddressLists()
		ids.of(urls, strings.Join(urls, " "))
	}
	return nil
}

// visit judges a request of a crawler.
func (h *Handler) visit(l *live, r *http.Request, crawler policy.CrawlerID, path string, now time.Time) *visit {
	v := &visit{
		site:    l.site,
		query:   policy.Query{Crawler: crawler, Host: r.Host, Path: path, Now: now},
		crawler: l.site.Policy.CrawlerInfo(crawler),
	}
	v.query.Purposes = l.site.Purposes(r.Header["User-Agent"])
	if c := h.ids.of(l.site.AddressLists()); c != nil {
		v.query.Identity = c.identify(r, l.site.Verification(crawler))
	}
	v.verdict = l.site.Edge(v.query)
	if v.verdict.Refused() {
		v.action = min(v.verdict.Mode, h.most)
	}
	return v
}

// rule is the name of what decided.
func (v *visit) rule() string {
	if v.verdict.Impostor {
		return "enforcement.impostors"
	}
	return v.site.RuleName(v.verdict.Decision.Rule)
}

// edge counts a visit, and does about it what the policy asks for. The error, if
// any, is the answer to what is refused, which else has been given.
func (h *Handler) edge(w http.ResponseWriter, r *http.Request, v *visit) (refused bool, err error) {
	metrics.count(v)
	h.checkViolation(r, v)
	if v.action <= policy.ModeOff {
		return false, nil
	}
	h.logRefusal(r, v)
	if v.action != policy.ModeBlock {
		return false, nil
	}
	return true, h.refuse(w, r, v.site)
}
