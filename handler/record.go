// SPDX-License-Identifier: Apache-2.0

package handler

import (
	"bufio"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/robotspolicy/caddy-robots-policy/activity"
	"github.com/robotspolicy/caddy-robots-policy/crawlers"
	"github.com/robotspolicy/caddy-robots-policy/pathpattern"
	"github.com/robotspolicy/caddy-robots-policy/policy"
	"github.com/robotspolicy/caddy-robots-policy/robotsserve"
)

// recording records one request. It stands between the handler and the client to
// count what is sent.
type recording struct {
	http.ResponseWriter
	visit    activity.Request
	returned bool // the handlers did: they panic to end a connection
}

var recordings = sync.Pool{New: func() any { return new(recording) }}

// record begins to record a request. It returns nil unless the request is by a
// crawler, or by a client that looks automated.
func (q *request) record() *recording {
	if q.h.Server.Vars(q.Request)[recordedVar] != nil {
		return nil // error routes do not record it again
	}
	var name string
	if q.decision == nil {
		var ok bool
		if name, ok = crawlers.AutomatedRequest(q.Header); !ok {
			return nil
		}
	}
	q.note(recordedVar)
	rec := recordings.Get().(*recording)
	rec.ResponseWriter = q.w
	p := q.publication()
	rec.visit = activity.Request{
		Host: policy.NormalizeHost(q.Host), RobotsTxt: q.robots && q.Method == http.MethodGet,
		Policy: p.SHA256[:12], Publication: p.ID[:12], Number: p.Number,
	}
	v := &rec.visit
	if q.decision == nil {
		v.Time, v.Crawler, v.Category = time.Now(), name, activity.CategoryUnlisted
		v.Identity, v.Decision = activity.Unverified, activity.Allowed
		v.Path, _, v.QueryOmitted = strings.Cut(pathpattern.EncodeBeyondASCII(q.target), "?")
		return rec
	}
	d := q.decision
	v.Time, v.Crawler, v.Category = q.query.Now, d.info.Token, d.info.Category
	v.Identity, v.Decision, v.Rule = identities[d.identity], d.done(), d.Rule()
	if q.audit && v.Identity == activity.Unverified {
		v.Identity = activity.Audit
	}
	v.Path, v.QueryOmitted = q.recordedPath()
	if version, ok := sharedOf(q.snapshot).fetches.last(d.fetcher, q.Host); ok {
		v.Robots = version.ETag
	}
	return rec
}

var identities = map[policy.Identity]activity.Identity{
	policy.Unknown: activity.Unverified, policy.Verified: activity.Verified, policy.Impostor: activity.Impostor,
}

// recordedPath leaves out a query that did not matter to the decision. Queries can
// hold what should not be stored.
func (q *request) recordedPath() (recorded string, omitted bool) {
	target := pathpattern.EncodeBeyondASCII(q.target)
	plain, _, ok := strings.Cut(target, "?")
	if !ok {
		return target, false
	}
	query := q.query
	query.Path = plain
	without := q.snapshot.Site.Edge(query)
	matters := without.Decision.Statement != q.statement
	if q.decision.limited { // the statement may be about another crawler than the one that is limited
		matters = without.Blocked()
	}
	if matters {
		return target, false
	}
	return plain, true
}

// end passes the request on. err is what the handlers returned.
func (rec *recording) end(q *request, err error) {
	rec.visit.Violation = q.violation
	if q.Method == http.MethodHead {
		rec.visit.Bytes = 0 // what handlers write is not sent
	}
	a, _ := rec.ResponseWriter.(*checkAnswer)
	switch {
	case a != nil && a.passed:
		rec.visit.Status, rec.visit.Bytes = 0, 0 // only the server that asked knows
	case rec.visit.Status != 0 || !rec.returned:
	case err != nil:
		rec.visit.Status = q.h.Server.ErrorStatus(err)
	default:
		rec.visit.Status = http.StatusOK
	}
	version := robotsserve.Version(rec.Header().Get("Etag"))
	switch {
	case rec.visit.Status >= http.StatusBadRequest:
		rec.visit.RobotsTxt = false
	case rec.visit.RobotsTxt:
		rec.visit.Robots = version
	case q.document != "" && q.Method == http.MethodGet:
		rec.visit.Document, rec.visit.DocumentVersion = q.document, version
	}
	if v := &rec.visit; v.Identity == activity.Verified && (v.Violation || v.RobotsTxt || v.Document != "") {
		v.Proof = q.h.Verifier.Proof(q.h.Server, q.Request, q.snapshot.Site.Verification(q.decision.crawler))
	}
	q.h.Recorders.Record(rec.visit)
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
	n, err := io.Copy(rec.ResponseWriter, r)
	rec.visit.Bytes += n
	return n, err
}

// Push implements http.Pusher.
func (rec *recording) Push(target string, opts *http.PushOptions) error {
	if pusher, ok := rec.ResponseWriter.(http.Pusher); ok {
		return pusher.Push(target, opts)
	}
	return http.ErrNotSupported
}

// Hijack implements http.Hijacker, and notes that the connection has another protocol.
func (rec *recording) Hijack() (net.Conn, *bufio.ReadWriter, error) {
	c, b, err := http.NewResponseController(rec.ResponseWriter).Hijack()
	if err == nil && rec.visit.Status == 0 {
		rec.visit.Status = http.StatusSwitchingProtocols
	}
	return c, b, err
}

// FlushError is for http.ResponseController.
func (rec *recording) FlushError() error {
	return http.NewResponseController(rec.ResponseWriter).Flush()
}

// Flush implements http.Flusher.
func (rec *recording) Flush() { _ = rec.FlushError() }

// Unwrap is for http.ResponseController.
func (rec *recording) Unwrap() http.ResponseWriter { return rec.ResponseWriter }
