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

// recording is a ResponseWriter that counts the bytes sent to the client. When the request has been answered, it
// records the request.
type recording struct {
	http.ResponseWriter
	status   int
	bytes    int64
	began    time.Time
	unlisted string // the name of an automated client that the policy does not know
	returned bool   // the handlers returned; false if they panicked to end the connection
}

var recordings = sync.Pool{New: func() any { return new(recording) }}

// record begins to record a request. It returns nil if there are no recorders, or if the request is recorded already.
// It also returns nil if the client is not a crawler and does not look automated.
func (q *request) record() *recording {
	if !q.h.Recorders.Active() || q.h.Server.Vars(q.Request)[recordedVar] != nil {
		return nil // no recorders, or already recorded before an error route
	}
	var name string
	if q.decision == nil {
		var ok bool
		if name, ok = crawlers.AutomatedRequest(q.Header); !ok {
			return nil
		}
	}
	q.note(recordedVar)
	q.publication()
	rec := recordings.Get().(*recording)
	rec.ResponseWriter, rec.unlisted, rec.began = q.w, name, time.Now()
	return rec
}

// end calls the recorders. err is the error of the handlers.
func (rec *recording) end(q *request, err error) {
	v := rec.visit(q)
	rec.describe(&v, q, err)
	q.h.Recorders.Record(v)
	*rec = recording{}
	recordings.Put(rec)
}

// visit returns the record of the request and of the decision about it.
func (rec *recording) visit(q *request) activity.Request {
	p := q.snapshot.Publication()
	v := activity.Request{Host: policy.NormalizeHost(q.Host), Policy: p.SHA256[:12], Publication: p.ID[:12], Number: p.Number}
	if q.decision == nil {
		v.Time, v.Crawler, v.Category = rec.began, rec.unlisted, activity.CategoryUnlisted
		v.Identity, v.Decision = activity.Unverified, activity.Allowed
		v.Path, _, v.QueryOmitted = strings.Cut(pathpattern.EncodeBeyondASCII(q.target.Path), "?")
		return v
	}
	d := q.decision
	v.Time, v.Crawler, v.Category = q.query.Now, d.info.Token, d.info.Category
	v.Identity, v.Decision, v.Rule = identities[d.identity], d.done(), d.Rule()
	if q.audit && v.Identity == activity.Unverified {
		v.Identity = activity.Audit
	}
	v.Path, v.QueryOmitted = q.recordedPath()
	v.Robots, v.Violation = q.read.Version, q.violation
	return v
}

// describe adds the properties of the answer to a record.
func (rec *recording) describe(v *activity.Request, q *request, err error) {
	v.Status, v.Bytes = rec.status, rec.bytes
	if q.Method == http.MethodHead {
		v.Bytes = 0 // net/http does not send what handlers write
	}
	switch {
	case q.check.hasPassed():
		v.Status, v.Bytes = 0, 0 // only the asking server knows the status and the size
	case v.Status != 0 || !rec.returned:
	case err != nil:
		v.Status = q.h.Server.ErrorStatus(err)
	default:
		v.Status = http.StatusOK
	}
	if q.Method == http.MethodGet && v.Status < http.StatusBadRequest {
		switch version := robotsserve.Version(rec.Header().Get("Etag")); {
		case q.isRobots():
			v.RobotsTxt, v.Robots, v.Form = true, version, q.form
		case q.document != "":
			v.Document, v.DocumentVersion = q.document, version
		}
	}
	if v.Identity == activity.Verified && (v.Violation || v.RobotsTxt || v.Document != "") {
		v.Proof = q.client.Proof(q.h.Verifier, q.snapshot.Site.Verification(q.client.Crawler))
	}
}

var identities = map[policy.Identity]activity.Identity{
	policy.Unknown: activity.Unverified, policy.Verified: activity.Verified, policy.Impostor: activity.Impostor,
}

// recordedPath returns the path to record. Queries can contain private data, so the path includes the query only if the
// query affected the decision.
func (q *request) recordedPath() (recorded string, omitted bool) {
	target := pathpattern.EncodeBeyondASCII(q.target.Path)
	plain, _, ok := strings.Cut(target, "?")
	if !ok {
		return target, false
	}
	without := q.target.WithoutQuery()
	verdict := q.snapshot.Site.EdgeOf(&without, q.query)
	matters := verdict.Decision.Statement != q.statement
	if q.decision.limited { // the statement may be about a crawler other than the limited one
		matters = verdict.Blocked()
	}
	if matters {
		return target, false
	}
	return plain, true
}

// WriteHeader remembers the status.
func (rec *recording) WriteHeader(status int) {
	if rec.status == 0 && (status >= 200 || status == http.StatusSwitchingProtocols) {
		rec.status = status
	}
	rec.ResponseWriter.WriteHeader(status)
}

// Write writes to the underlying writer, and counts the bytes sent.
func (rec *recording) Write(b []byte) (int, error) {
	n, err := rec.ResponseWriter.Write(b)
	rec.bytes += int64(n)
	return n, err
}

// ReadFrom counts the bytes sent.
func (rec *recording) ReadFrom(r io.Reader) (int64, error) {
	n, err := io.Copy(rec.ResponseWriter, r)
	rec.bytes += n
	return n, err
}

// Push implements http.Pusher.
func (rec *recording) Push(target string, opts *http.PushOptions) error {
	if pusher, ok := rec.ResponseWriter.(http.Pusher); ok {
		return pusher.Push(target, opts)
	}
	return http.ErrNotSupported
}

// Hijack implements http.Hijacker. It remembers that the connection no longer carries HTTP.
func (rec *recording) Hijack() (net.Conn, *bufio.ReadWriter, error) {
	c, b, err := http.NewResponseController(rec.ResponseWriter).Hijack()
	if err == nil && rec.status == 0 {
		rec.status = http.StatusSwitchingProtocols
	}
	return c, b, err
}

// FlushError flushes the underlying writer, for http.ResponseController.
func (rec *recording) FlushError() error {
	return http.NewResponseController(rec.ResponseWriter).Flush()
}

// Flush implements http.Flusher.
func (rec *recording) Flush() { _ = rec.FlushError() }

// Unwrap returns the underlying writer, for http.ResponseController.
func (rec *recording) Unwrap() http.ResponseWriter { return rec.ResponseWriter }
