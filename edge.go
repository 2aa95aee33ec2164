// SPDX-License-Identifier: Apache-2.0

package robotspolicy

import (
	"net/http"
	"time"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/modules/caddyhttp"

	"github.com/robotspolicy/caddy-robots-policy/crawlers"
	"github.com/robotspolicy/caddy-robots-policy/policy"
)

// visit is a request of a crawler that the policy knows, and what is found out
// about it.
type visit struct {
	*finding
	query     policy.Query
	statement *policy.Statement // that decided; nil where none did
	server    *caddyhttp.Server // nil: unknown
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
		ids.of(urls, listsKey(urls))
	}
	return nil
}

// judge finds out about a request of a crawler.
func (v *visit) judge(h *Handler, l *live, r *http.Request, crawler policy.CrawlerID, path string) {
	v.query = policy.Query{Crawler: crawler, Host: r.Host, Path: path, Now: time.Now()}
	v.query.Purposes = l.site.Purposes(r.Header["User-Agent"])
	if c := h.ids.of(l.site.AddressLists()); c != nil {
		v.query.Identity = c.identify(r, l.site.Verification(crawler))
	}
	verdict := l.site.Edge(v.query)
	v.statement = verdict.Decision.Statement
	v.finding = l.findings.of(l.site, visitKind(v.query.Identity, verdict, h.most))
	v.server, _ = r.Context().Value(caddyhttp.ServerCtxKey).(*caddyhttp.Server)
}

// edge counts a visit, and does about it what the policy asks for. The error, if
// any, is the answer to what is refused, which else has been given.
func (h *Handler) edge(w http.ResponseWriter, r *http.Request, v *visit) (refused bool, err error) {
	v.countEdge()
	h.checkViolation(r, v)
	if v.action <= policy.ModeOff {
		return false, nil
	}
	h.logRefusal(r, v)
	if v.action != policy.ModeBlock {
		return false, nil
	}
	return true, h.refuse(w, r, v)
}
