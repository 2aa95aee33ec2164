// SPDX-License-Identifier: Apache-2.0

package handler

import (
	"net/http"
	"time"

	"go.uber.org/zap"

	"github.com/robotspolicy/caddy-robots-policy/activity"
	"github.com/robotspolicy/caddy-robots-policy/channels"
	"github.com/robotspolicy/caddy-robots-policy/crawlers/identity"
	"github.com/robotspolicy/caddy-robots-policy/handler/upstream"
	"github.com/robotspolicy/caddy-robots-policy/policy"
	"github.com/robotspolicy/caddy-robots-policy/rights"
	"github.com/robotspolicy/caddy-robots-policy/robotsserve"
	"github.com/robotspolicy/caddy-robots-policy/robotstxt"
	"github.com/robotspolicy/caddy-robots-policy/site"
)

// wellKnown is a file whose path is defined by a standard. The next handler may serve its own file at this path, which
// is called the upstream's file. If the site is configured so, both files are merged.
type wellKnown[T any] struct {
	cacheControl        string
	unknownCacheControl string             // Cache-Control while the upstream's file is not known, or not merged
	upstreams           *upstream.Cache[T] // nil if upstream files are not merged
}

func newWellKnown[T any](maxAge time.Duration, upstreams *upstream.Cache[T]) wellKnown[T] {
	return wellKnown[T]{
		cacheControl:        robotsserve.CacheControl(maxAge),
		unknownCacheControl: robotsserve.CacheControl(min(maxAge, upstream.UnknownMaxAge)),
		upstreams:           upstreams,
	}
}

// theirs returns the upstream's file. It returns nil if this file is unknown or does not exist, or if upstream files
// are not merged. before is the file that the upstream had before its last change, or nil (see upstream.Cache.Get).
// cacheControl is the Cache-Control value for the response.
func (f *wellKnown[T]) theirs(q *request) (theirs, before *T, cacheControl string) {
	if f.upstreams == nil || q.Method != http.MethodGet && q.Method != http.MethodHead {
		return nil, nil, f.cacheControl
	}
	theirs, before, known := f.upstreams.Get(q.Request, q.next)
	if !known {
		return theirs, before, f.unknownCacheControl
	}
	return theirs, before, f.cacheControl
}

// provisionWellKnown prepares robots.txt and the documents of channels.
func (h *Handler) provisionWellKnown() {
	var robots *upstream.Cache[robotstxt.File]
	if h.RobotsTxt == RobotsTxtMerge {
		robots = upstream.New(upstream.RobotsTxt, h.Server, h.Logger)
	}
	h.documents = map[*channels.Channel]wellKnown[upstream.Document]{}
	for _, ch := range channels.Documents() {
		var theirs *upstream.Cache[upstream.Document]
		if h.RobotsTxt == RobotsTxtMerge && ch.File.Site != nil {
			theirs = upstream.New(upstream.KindOf(ch.File), h.Server, h.Logger)
		}
		h.documents[ch] = newWellKnown(h.MaxAge, theirs)
	}
	if h.RobotsTxt != RobotsTxtOff {
		f := newWellKnown(h.MaxAge, robots)
		h.robots = &f
	}
}

func (q *request) serveRobots() {
	answer := q.robotsAnswer()
	merged, settled := q.snapshot.Site.Robots.Serve(q.w, q.Request, answer)
	if q.form = activity.Form(answer.Scheme, merged); !settled {
		answer = robotsserve.Answer{Scheme: answer.Scheme} // so publishRobots does not wait for this merge
	}
	if q.decision == nil || q.Method != http.MethodGet {
		return
	}
	q.h.countRobotsTxt(q.decision)
	if q.audit {
		return
	}
	version := robotsserve.Version(q.w.Header().Get("Etag"))
	if version == "" || q.decision.identity == policy.Impostor {
		return
	}
	q.snapshot.Memory.Readings.Add(q.decision.token, q.Host, site.Reading{
		Version: version, Policy: q.snapshot.SHA256, At: q.query.Now.Unix(), Verified: q.decision.identity == policy.Verified, Site: q.snapshot.Site,
	})
	if q.h.Recorders.Active() {
		q.publishRobots(version, answer)
	}
}

func (q *request) robotsAnswer() robotsserve.Answer {
	f := q.h.robots
	other, before, cacheControl := f.theirs(q)
	a := robotsserve.Answer{CacheControl: cacheControl, Scheme: identity.ClientScheme(q.h.Server, q.Request)}
	if other != nil {
		a.Other, a.Before, a.Report = other, before, f.upstreams.LogMerge(q.Host)
		a.Meanwhile = f.unknownCacheControl
	}
	return a
}

// serveDocument answers a request for a rights document of the policy, and reports whether it did.
func (q *request) serveDocument() bool {
	ch := q.snapshot.Site.ChannelAt(&q.target)
	if ch == nil {
		return false
	}
	doc, cacheControl := q.documentOf(ch)
	if doc == nil {
		return false
	}
	if q.check != nil { // the other server fetches documents from here
		_ = q.next.ServeHTTP(q.w, q.Request)
		return true
	}
	q.document = q.target.Name()
	q.addHeaders()
	doc.Serve(q.w, q.Request, cacheControl)
	return true
}

// documentOf returns the policy's document for a channel, merged with the upstream's document. It returns nil if
// the policy has none.
func (q *request) documentOf(ch *channels.Channel) (*rights.Document, string) {
	doc := q.snapshot.Site.Document(ch, q.Host)
	if doc == nil {
		return nil, ""
	}
	file := q.h.documents[ch]
	theirs, _, cacheControl := file.theirs(q)
	if theirs == nil {
		return doc, cacheControl
	}
	both, notes, stricter := theirs.Merged(doc)
	if len(notes) > 0 {
		q.h.Logger.Warn("the upstream's "+ch.File.Name+" is invalid", zap.String("host", q.Host), zap.Strings("notes", notes))
	}
	if stricter {
		q.h.Logger.Warn("locations of the upstream's "+ch.File.Name+" overlap the policy's paths in too many ways, so the merged file is stricter than the two files", zap.String("host", q.Host))
	}
	return both, cacheControl
}
