// SPDX-License-Identifier: Apache-2.0

package robotspolicy

import (
	"net/http"
	"time"

	"github.com/caddyserver/caddy/v2/modules/caddyhttp"
	"go.uber.org/zap"

	"github.com/robotspolicy/caddy-robots-policy/internal/policystore"
	"github.com/robotspolicy/caddy-robots-policy/internal/upstreamrobots"
	"github.com/robotspolicy/caddy-robots-policy/rights"
	"github.com/robotspolicy/caddy-robots-policy/rights/tdmrep"
	"github.com/robotspolicy/caddy-robots-policy/robotsserve"
)

// registerFiles answers requests for the documents of rights registers:
// /.well-known/tdmrep.json and the RSL document.
type registerFiles struct {
	logger              *zap.Logger
	cacheControl        string
	unknownCacheControl string                                           // while the upstream's file is not known
	upstreams           *upstreamrobots.Cache[upstreamrobots.TDMRepFile] // nil: nothing is merged
}

func newRegisterFiles(logger *zap.Logger, maxAge time.Duration, upstreams *upstreamrobots.Cache[upstreamrobots.TDMRepFile]) *registerFiles {
	return &registerFiles{
		logger:              logger,
		cacheControl:        robotsserve.CacheControl(maxAge),
		unknownCacheControl: robotsserve.CacheControl(min(maxAge, upstreamrobots.UnknownMaxAge)),
		upstreams:           upstreams,
	}
}

// serve answers if the request is for a document that the policy has, and reports
// whether it did. addHeaders adds what the policy says about the path.
func (f *registerFiles) serve(w http.ResponseWriter, r *http.Request, s *policystore.Snapshot, path string, addHeaders func(), next caddyhttp.Handler) bool {
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

// tdmrep returns the policy's tdmrep.json, merged with the upstream's if so
// configured; nil if the policy has none.
func (f *registerFiles) tdmrep(r *http.Request, s *policystore.Snapshot, next caddyhttp.Handler) (*rights.Document, string) {
	ours, doc := s.Site.TDMRep(r.Host)
	if doc == nil || f.upstreams == nil || r.Method != http.MethodGet && r.Method != http.MethodHead {
		return doc, f.cacheControl
	}
	theirs, known := f.upstreams.Get(r, next)
	cacheControl := f.cacheControl
	if !known {
		cacheControl = f.unknownCacheControl
	}
	if theirs == nil {
		return doc, cacheControl
	}
	both, first := theirs.Merged(ours)
	if first && len(theirs.Notes) > 0 {
		f.logger.Warn("the upstream's tdmrep.json is not as TDMRep asks for", zap.String("host", r.Host), zap.Strings("notes", theirs.Notes))
	}
	return both, cacheControl
}
