// SPDX-License-Identifier: Apache-2.0

package robotspolicy

import (
	"net/http"
	"strings"
	"time"

	"github.com/caddyserver/caddy/v2/modules/caddyhttp"
	"go.uber.org/zap"

	"github.com/robotspolicy/caddy-robots-policy/internal/fetchlog"
	"github.com/robotspolicy/caddy-robots-policy/internal/publication"
	"github.com/robotspolicy/caddy-robots-policy/internal/recorders"
	"github.com/robotspolicy/caddy-robots-policy/internal/upstreamrobots"
	"github.com/robotspolicy/caddy-robots-policy/pathpattern"
	"github.com/robotspolicy/caddy-robots-policy/policy"
	"github.com/robotspolicy/caddy-robots-policy/rights"
	"github.com/robotspolicy/caddy-robots-policy/rights/tdmrep"
	"github.com/robotspolicy/caddy-robots-policy/robotsserve"
	"github.com/robotspolicy/caddy-robots-policy/robotstxt"
	"github.com/robotspolicy/caddy-robots-policy/source"
)

// wellKnown is a file at a place that a standard sets, merged with the upstream's file
// there if so configured.
type wellKnown[T any] struct {
	cacheControl        string
	unknownCacheControl string                   // while the upstream's file is not known, or not merged
	upstreams           *upstreamrobots.Cache[T] // nil: nothing is merged
}

func newWellKnown[T any](maxAge time.Duration, upstreams *upstreamrobots.Cache[T]) wellKnown[T] {
	return wellKnown[T]{
		cacheControl:        robotsserve.CacheControl(maxAge),
		unknownCacheControl: robotsserve.CacheControl(min(maxAge, upstreamrobots.UnknownMaxAge)),
		upstreams:           upstreams,
	}
}

// upstream returns the upstream's file, fetched through next, nil if nothing is to be
// merged; the one before it, or nil; and the Cache-Control of the answer.
func (f *wellKnown[T]) upstream(r *http.Request, next caddyhttp.Handler) (theirs, before *T, cacheControl string) {
	if f.upstreams == nil || r.Method != http.MethodGet && r.Method != http.MethodHead {
		return nil, nil, f.cacheControl
	}
	theirs, before, known := f.upstreams.Get(r, next)
	if !known {
		return theirs, before, f.unknownCacheControl
	}
	return theirs, before, f.cacheControl
}

// robotsTxt answers requests for /robots.txt.
type robotsTxt struct {
	wellKnown[robotstxt.File]
}

// lastOf returns what finds the upstream's file of a host, nil if nothing is merged.
func (t *robotsTxt) lastOf() func(host string) *robotstxt.File {
	if t == nil || t.upstreams == nil {
		return nil
	}
	return t.upstreams.Last
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

// serve answers with the robots.txt of the host. v is nil for anyone but a known crawler.
func (t *robotsTxt) serve(w http.ResponseWriter, r *http.Request, s *source.Snapshot, v *visit, next caddyhttp.Handler) {
	answer := t.answer(r, next)
	if !s.Site.ServeRobots(w, r, answer) {
		answer = robotsserve.Answer{} // nothing waits for the merge again
	}
	if v == nil || r.Method != http.MethodGet {
		return
	}
	v.countRobotsTxt()
	if v.audit {
		return
	}
	version := robotsserve.Version(w.Header().Get("Etag"))
	if version == "" || v.query.Identity == policy.Impostor {
		return
	}
	fetchesOf(s).Add(v.fetcher, v.query.Host, fetchlog.Version{ETag: version, Site: s.Site, At: v.query.Now})
	if recorders.Active() {
		publication.Robots(s, policy.NormalizeHost(r.Host), version, r, func(w http.ResponseWriter, r *http.Request) { s.Site.ServeRobots(w, r, answer) })
	}
}

func (t *robotsTxt) answer(r *http.Request, next caddyhttp.Handler) robotsserve.Answer {
	other, before, cacheControl := t.upstream(r, next)
	a := robotsserve.Answer{CacheControl: cacheControl}
	if other != nil {
		a.Other, a.Before, a.Report = other, before, t.upstreams.LogMerge(r.Host)
		a.Meanwhile = t.unknownCacheControl
	}
	return a
}

// registerFiles answers requests for the documents of rights registers:
// /.well-known/tdmrep.json and the RSL document.
type registerFiles struct {
	wellKnown[upstreamrobots.TDMRepFile]
	logger *zap.Logger
}

// serve answers if the request is for a document that the policy has, and reports
// whether it did. addHeaders adds what the policy says about the path.
func (f *registerFiles) serve(w http.ResponseWriter, r *http.Request, s *source.Snapshot, path string, addHeaders func(), next caddyhttp.Handler) bool {
	var doc *rights.Document
	cacheControl := f.cacheControl
	switch register := s.Site.RegisterPath(path); register {
	case "":
		return false
	case tdmrep.Path:
		doc, cacheControl = f.tdmrep(r, s, next)
	default:
		doc = s.Site.RSL(r.Host)
	}
	if doc == nil {
		return false
	}
	addHeaders()
	doc.Serve(w, r, cacheControl)
	return true
}

// tdmrep returns the policy's tdmrep.json; nil if the policy has none.
func (f *registerFiles) tdmrep(r *http.Request, s *source.Snapshot, next caddyhttp.Handler) (*rights.Document, string) {
	ours, doc := s.Site.TDMRep(r.Host)
	if doc == nil {
		return nil, ""
	}
	theirs, _, cacheControl := f.upstream(r, next)
	if theirs == nil {
		return doc, cacheControl
	}
	both, notes, stricter := theirs.Merged(ours)
	if len(notes) > 0 {
		f.logger.Warn("the upstream's tdmrep.json is invalid", zap.String("host", r.Host), zap.Strings("notes", notes))
	}
	if stricter {
		f.logger.Warn("locations of the upstream's tdmrep.json cross the policy's paths in too many ways; exceptions from what either reserves are left out", zap.String("host", r.Host))
	}
	return both, cacheControl
}
