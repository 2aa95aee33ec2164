// SPDX-License-Identifier: Apache-2.0

package robotspolicy

import (
	"errors"
	"io"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/caddyserver/caddy/v2/modules/caddyhttp"

	"github.com/robotspolicy/caddy-robots-policy/activity"
	"github.com/robotspolicy/caddy-robots-policy/internal/publication"
	"github.com/robotspolicy/caddy-robots-policy/internal/recorders"
	"github.com/robotspolicy/caddy-robots-policy/policy"
	"github.com/robotspolicy/caddy-robots-policy/robotsserve"
	"github.com/robotspolicy/caddy-robots-policy/source"
)

// recording records one visit. It stands between the handler and the client to
// count what is sent.
type recording struct {
	caddyhttp.ResponseWriterWrapper
	visit    activity.Visit
	returned bool // the handlers did: they panic to end a connection
}

var recordings = sync.Pool{New: func() any { return new(recording) }}

// recordedVar is the request variable that is set once a request is being recorded,
// so that error routes do not record it again.
const recordedVar = "robots_policy.recorded"

// record begins to record a request. It returns nil unless the request is by a
// crawler, or by a client that looks automated. v is nil for anyone but a known
// crawler.
func record(w http.ResponseWriter, r *http.Request, s *source.Snapshot, v *visit, path string, robots bool) *recording {
	if caddyhttp.GetVar(r.Context(), recordedVar) != nil {
		return nil
	}
	var name string
	if v == nil {
		var ok bool
		if name, ok = automated(r, path, robots); !ok {
			return nil
		}
	}
	caddyhttp.SetVar(r.Context(), recordedVar, true)
	rec := recordings.Get().(*recording)
	rec.ResponseWriter = w
	rec.visit = activity.Visit{Host: policy.NormalizeHost(r.Host), RobotsTxt: robots && r.Method == http.MethodGet, Policy: publication.Policy(s)}
	if v == nil {
		rec.visit.Time, rec.visit.Crawler, rec.visit.Kind = time.Now(), name, activity.KindUnknown
		rec.visit.Identity, rec.visit.Decision = activity.Claimed, activity.Allowed
		rec.visit.Path, _, rec.visit.QueryOmitted = strings.Cut(path, "?")
		rec.visit.Audit = strings.Contains(r.UserAgent(), activity.AuditProduct)
		return rec
	}
	rec.visit.Time, rec.visit.Crawler, rec.visit.Kind, rec.visit.Audit = v.query.Now, v.info.Token, v.info.Kind, v.audit
	rec.visit.Identity, rec.visit.Decision, rec.visit.Rule = identities[v.identity], activity.Decision(v.decision()), v.ruleName()
	rec.visit.Path, rec.visit.QueryOmitted = recordedPath(s, v, path)
	if version, ok := fetchesOf(s).Last(v.fetcher, r.Host); ok {
		rec.visit.Robots = version.ETag
	}
	return rec
}

var identities = map[policy.Identity]activity.Identity{
	policy.Unknown: activity.Claimed, policy.Verified: activity.Verified, policy.Impostor: activity.Impostor,
}

// recordedPath leaves out a query that did not matter to the decision. Queries can
// hold what should not be stored.
func recordedPath(s *source.Snapshot, v *visit, path string) (recorded string, omitted bool) {
	plain, _, ok := strings.Cut(path, "?")
	if !ok {
		return path, false
	}
	q := v.query
	q.Path = plain
	without := s.Site.Edge(q)
	matters := without.Decision.Statement != v.statement
	if v.limited { // the statement may be about another crawler than the one that is limited
		matters = without.Refused()
	}
	if matters {
		return path, false
	}
	return plain, true
}

// end passes the visit on. err is what the handlers returned.
func (rec *recording) end(v *visit, err error) {
	rec.visit.Violation = v != nil && v.violation
	var handlerError caddyhttp.HandlerError
	switch {
	case rec.visit.Status != 0 || !rec.returned:
	case errors.As(err, &handlerError):
		rec.visit.Status = handlerError.StatusCode
	case err != nil:
		rec.visit.Status = http.StatusInternalServerError
	default:
		rec.visit.Status = http.StatusOK
	}
	if rec.visit.Status >= http.StatusBadRequest {
		rec.visit.RobotsTxt = false
	}
	if rec.visit.RobotsTxt {
		rec.visit.Robots = robotsserve.Version(rec.Header().Get("Etag"))
	}
	recorders.Record(rec.visit)
	*rec = recording{}
	recordings.Put(rec)
}

// WriteHeader notes the status.
func (rec *recording) WriteHeader(status int) {
	if rec.visit.Status == 0 && (status >= 200 || status == http.StatusSwitchingProtocols) {
		rec.visit.Status = status
	}
	rec.ResponseWriter.WriteHeader(status)
}

// Write counts what is sent.
func (rec *recording) Write(b []byte) (int, error) {
	n, err := rec.ResponseWriter.Write(b)
	rec.visit.Bytes += int64(n)
	return n, err
}

// ReadFrom counts what is sent.
func (rec *recording) ReadFrom(r io.Reader) (int64, error) {
	n, err := rec.ResponseWriterWrapper.ReadFrom(r)
	rec.visit.Bytes += n
	return n, err
}
