// SPDX-License-Identifier: Apache-2.0

package robotspolicy

import (
	"errors"
	"math/rand/v2"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/modules/caddyhttp"

	"github.com/robotspolicy/caddy-robots-policy/crawlers"
	"github.com/robotspolicy/caddy-robots-policy/policy"
	"github.com/robotspolicy/caddy-robots-policy/robotsrule"
	"github.com/robotspolicy/caddy-robots-policy/robotstag"
	"github.com/robotspolicy/caddy-robots-policy/site"
)

// refusalTag is what a refusal itself is marked with.
var refusalTag, _ = robotstag.Build(
	[]robotstag.Member{{Token: robotstag.Everyone, Rules: robotsrule.Of("noindex")}}, robotstag.Usage{}, time.Time{})

var errRefused = errors.New("the site's policy does not allow this crawler here")

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
	h.readers = new(readers)
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
// any, is the answer.
func (h *Handler) edge(w http.ResponseWriter, r *http.Request, v *visit) error {
	metrics.count(v)
	h.checkViolation(r, v)
	if v.action <= policy.ModeOff {
		return nil
	}
	h.logRefusal(r, v)
	if v.action != policy.ModeBlock {
		return nil
	}
	return h.refuse(w, v.site)
}

// refuse is the answer to a crawler that is refused. An error answer goes through
// the site's error routes, where nothing is refused a second time.
func (h *Handler) refuse(w http.ResponseWriter, s *site.Site) error {
	e := s.File.Spec.Enforcement
	if e.Close {
		panic(http.ErrAbortHandler)
	}
	header := w.Header()
	header.Set("Cache-Control", "no-store")
	if e.RetryAfter > 0 {
		header.Set("Retry-After", strconv.Itoa(int((e.RetryAfter+time.Second-1)/time.Second)))
	}
	robotstag.Apply(header, refusalTag, robotstag.Options{Channels: h.channels &^ robotstag.ContentUsage})
	status := e.Status
	if status == 0 {
		status = http.StatusForbidden
	}
	reason := errRefused
	if e.Message != "" {
		reason = errors.New(e.Message)
	}
	// Not caddyhttp.Error, whose stack trace costs as much as all the rest and always
	// says that it was here.
	return caddyhttp.HandlerError{Err: reason, StatusCode: status, ID: errorID()}
}

// errorID makes an identifier such as Caddy gives its errors ({err.id}).
func errorID() string {
	const letters = "abcdefghijkmnpqrstuvwxyz0123456789"
	var id [9]byte
	for i, n := 0, rand.Uint64(); i < len(id); i, n = i+1, n/uint64(len(letters)) {
		id[i] = letters[n%uint64(len(letters))]
	}
	return string(id[:])
}
