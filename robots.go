// SPDX-License-Identifier: Apache-2.0

package robotspolicy

import (
	"net/http"
	"strings"
	"time"

	"github.com/caddyserver/caddy/v2/modules/caddyhttp"

	"github.com/robotspolicy/caddy-robots-policy/internal/fetchlog"
	"github.com/robotspolicy/caddy-robots-policy/internal/policystore"
	"github.com/robotspolicy/caddy-robots-policy/internal/publication"
	"github.com/robotspolicy/caddy-robots-policy/internal/recorders"
	"github.com/robotspolicy/caddy-robots-policy/internal/upstreamrobots"
	"github.com/robotspolicy/caddy-robots-policy/pathpattern"
	"github.com/robotspolicy/caddy-robots-policy/policy"
	"github.com/robotspolicy/caddy-robots-policy/robotsserve"
)

// robotsTxt answers requests for /robots.txt.
type robotsTxt struct {
	cacheControl        string
	unknownCacheControl string                                   // while the upstream's file is not known
	upstreams           *upstreamrobots.Cache[robotsserve.Other] // nil: nothing is merged
}

func newRobotsTxt(maxAge time.Duration, upstreams *upstreamrobots.Cache[robotsserve.Other]) *robotsTxt {
	return &robotsTxt{
		cacheControl:        robotsserve.CacheControl(maxAge),
		unknownCacheControl: robotsserve.CacheControl(min(maxAge, upstreamrobots.UnknownMaxAge)),
		upstreams:           upstreams,
	}
}

// isRobotsTxt reports whether a request target is that of robots.txt, however it is
// encoded.
func isRobotsTxt(path string) bool {
	if strings.IndexByte(path, '%') >= 0 {
		path = pathpattern.NormalizePath(path)
	}
	rest, ok := strings.CutPrefix(path, "/robots.txt")
	return ok && (rest == "" || rest[0] == '?')
}

// serve answers with the robots.txt of the host, merged with the upstream's if so
// configured, which is fetched through next. v is nil for anyone but a known crawler.
func (t *robotsTxt) serve(w http.ResponseWriter, r *http.Request, s *policystore.Snapshot, v *visit, next caddyhttp.Handler) {
	answer := t.answer(r, next)
	s.Site.ServeRobots(w, r, answer)
	if v == nil || r.Method != http.MethodGet {
		return
	}
	v.countRobotsTxt()
	if v.audit {
		return
	}
	etag := strings.Trim(w.Header().Get("Etag"), `W/"`)
	if etag == "" || v.query.Identity == policy.Impostor {
		return
	}
	fetchesOf(s).Add(v.fetcher, v.query.Host, fetchlog.Version{ETag: etag, Site: s.Site, At: v.query.Now})
	if recorders.Active() {
		publication.Robots(s, policy.NormalizeHost(r.Host), etag, r, func(w http.ResponseWriter, r *http.Request) { s.Site.ServeRobots(w, r, answer) })
	}
}

func (t *robotsTxt) answer(r *http.Request, next caddyhttp.Handler) robotsserve.Answer {
	a := robotsserve.Answer{CacheControl: t.cacheControl}
	if t.upstreams == nil || r.Method != http.MethodGet && r.Method != http.MethodHead {
		return a
	}
	other, known := t.upstreams.Get(r, next)
	if !known {
		a.CacheControl = t.unknownCacheControl
	}
	if other != nil {
		a.Other, a.Tell = other, t.upstreams.LogMerge(r.Host)
	}
	return a
}
