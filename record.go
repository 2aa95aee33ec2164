// SPDX-License-Identifier: Apache-2.0

package robotspolicy

import (
	"bytes"
	"errors"
	"io"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/caddyserver/caddy/v2/modules/caddyhttp"

	"github.com/robotspolicy/caddy-robots-policy/activity"
	"github.com/robotspolicy/caddy-robots-policy/crawlers"
	"github.com/robotspolicy/caddy-robots-policy/internal/policystore"
	"github.com/robotspolicy/caddy-robots-policy/internal/recorders"
	"github.com/robotspolicy/caddy-robots-policy/policy"
)

// recording records one visit. It stands between the handler and the client to
// count what is sent.
type recording struct {
	caddyhttp.ResponseWriterWrapper
	visit activity.Visit
}

var recordings = sync.Pool{New: func() any { return new(recording) }}

// recordedVar is the request variable that is set once a request is being recorded,
// so that error routes do not record it again.
const recordedVar = "robots_policy.recorded"

// record begins to record a request. It returns nil unless the request is by a
// crawler, or by a client that looks automated. v is nil for anyone but a known
// crawler.
func record(w http.ResponseWriter, r *http.Request, s *policystore.Snapshot, v *visit, path string, robots bool) *recording {
	var name string
	if v == nil {
		var ok bool
		if name, ok = crawlers.Automated(r.UserAgent()); !ok {
			return nil
		}
	}
	if caddyhttp.GetVar(r.Context(), recordedVar) != nil {
		return nil
	}
	caddyhttp.SetVar(r.Context(), recordedVar, true)
	rec := recordings.Get().(*recording)
	rec.ResponseWriter = w
	rec.visit = activity.Visit{Host: policy.NormalizeHost(r.Host), RobotsTxt: robots, Policy: publishedPolicy(s)}
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
func recordedPath(s *policystore.Snapshot, v *visit, path string) (recorded string, omitted bool) {
	plain, _, ok := strings.Cut(path, "?")
	if !ok {
		return path, false
	}
	q := v.query
	q.Path = plain
	if s.Site.Edge(q).Decision.Statement != v.statement {
		return path, false
	}
	return plain, true
}

// end passes the visit on. err is what the handlers returned.
func (rec *recording) end(v *visit, err error) {
	rec.visit.Violation = v != nil && v.violation
	var handlerError caddyhttp.HandlerError
	switch {
	case rec.visit.Status != 0:
	case errors.As(err, &handlerError):
		rec.visit.Status = handlerError.StatusCode
	case err != nil:
		rec.visit.Status = http.StatusInternalServerError
	default:
		rec.visit.Status = http.StatusOK
	}
	if rec.visit.RobotsTxt && err == nil && rec.visit.Status < http.StatusBadRequest {
		rec.visit.Robots = strings.Trim(rec.Header().Get("Etag"), `W/"`)
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

// published is what the recorders were given of a version of a policy.
type published struct {
	recorders atomic.Uint64 // recorders.Generation that has the policy
	mu        sync.Mutex
	robots    map[string]bool // hosts and entity tags
}

// maxPublished bounds how many robots.txt of one policy are remembered as published.
const maxPublished = 1000

func publishedOf(s *policystore.Snapshot) *published {
	return s.Recorded(func() any { return new(published) }).(*published)
}

// policyVersion is what visits call a version of a policy.
func policyVersion(s *policystore.Snapshot) string { return s.SHA256[:12] }

// publishedPolicy is the version of a policy, which the recorders get with the first
// visit under it.
func publishedPolicy(s *policystore.Snapshot) string {
	version := policyVersion(s)
	p := publishedOf(s)
	if g := recorders.Generation(); p.recorders.Load() != g && p.recorders.Swap(g) != g {
		p.mu.Lock()
		clear(p.robots)
		p.mu.Unlock()
		recorders.Publish(recorders.Publication{Kind: "policy", Version: version, Name: s.Site.File.Name, Time: s.Since, Text: s.Text})
	}
	return version
}

// publishRobots gives the recorders a robots.txt that a crawler gets for the first
// time. serve answers a request with it.
func publishRobots(s *policystore.Snapshot, host, version string, r *http.Request, serve func(http.ResponseWriter, *http.Request)) {
	p := publishedOf(s)
	p.mu.Lock()
	known := p.robots[host+" "+version]
	if !known {
		if p.robots == nil || len(p.robots) >= maxPublished {
			p.robots = map[string]bool{}
		}
		p.robots[host+" "+version] = true
	}
	p.mu.Unlock()
	if known {
		return
	}
	plain := r.Clone(r.Context())
	plain.Header = http.Header{}
	text := textWriter{header: http.Header{}}
	serve(&text, plain)
	recorders.Publish(recorders.Publication{Kind: "robots", Version: version, Host: host, Name: s.Site.File.Name, Time: time.Now(), Text: text.body.String()})
}

// textWriter is a response in memory.
type textWriter struct {
	header http.Header
	body   bytes.Buffer
}

func (t *textWriter) Header() http.Header         { return t.header }
func (t *textWriter) WriteHeader(int)             {}
func (t *textWriter) Write(b []byte) (int, error) { return t.body.Write(b) }
