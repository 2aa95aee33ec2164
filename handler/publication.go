// SPDX-License-Identifier: Apache-2.0

package handler

import (
	"bytes"
	"net/http"
	"time"

	"github.com/robotspolicy/caddy-robots-policy/activity"
	"github.com/robotspolicy/caddy-robots-policy/policy"
	"github.com/robotspolicy/caddy-robots-policy/robotsserve"
	"github.com/robotspolicy/caddy-robots-policy/site"
)

// publication returns the version of the policy that decides about the request, with all documents made from this
// version. It passes them to the recorders that do not have them yet.
func (q *request) publication() *activity.Publication {
	all := q.snapshot.Publication()
	q.snapshot.Given.To(q.h.Recorders).Publish(q.h.Recorders, all)
	return all
}

// publishRobots gives the recorders the robots.txt that the handler served to the crawler, unless they already have
// this file. answer is the Answer that served the file.
func (q *request) publishRobots(version string, answer robotsserve.Answer) {
	given, host := q.snapshot.Given.To(q.h.Recorders), policy.NormalizeHost(q.Host)
	if !given.Robots(host+" "+version, time.Now().Unix()/86400) {
		return
	}
	plain := q.Clone(q.Context())
	plain.Header = http.Header{}
	text := textWriter{header: http.Header{}}
	q.snapshot.Site.Robots.Serve(&text, plain, answer)
	if robotsserve.Version(text.header.Get("Etag")) != version {
		given.Forget(host + " " + version) // the upstream's file changed after the answer was served, so the next request tries again
		return
	}
	q.h.Recorders.Serve(q.snapshot.Publication(), site.Document{Name: site.RobotsTxt, Host: host, Version: version, Text: text.body.String()})
}

// textWriter is a ResponseWriter that keeps the response in memory.
type textWriter struct {
	header http.Header
	body   bytes.Buffer
}

func (t *textWriter) Header() http.Header         { return t.header }
func (t *textWriter) WriteHeader(int)             {}
func (t *textWriter) Write(b []byte) (int, error) { return t.body.Write(b) }
