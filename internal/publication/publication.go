// SPDX-License-Identifier: Apache-2.0

// Package publication gives the recorders each version of a policy, and each robots.txt
// of it, the first time that a crawler meets it.
package publication

import (
	"bytes"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"github.com/robotspolicy/caddy-robots-policy/internal/recorders"
	"github.com/robotspolicy/caddy-robots-policy/robotsserve"
	"github.com/robotspolicy/caddy-robots-policy/source"
)

// published is what the recorders were given of a version of a policy.
type published struct {
	recorders atomic.Uint64 // recorders.Generation that has the policy
	mu        sync.Mutex
	day       int64           // in which the recorders were given what is in robots
	robots    map[string]bool // hosts and versions
}

// maxRobots bounds how many robots.txt of one policy the recorders are given in a day:
// clients can make up hosts.
const maxRobots = 10_000

func of(s *source.Snapshot) *published {
	return s.Recorded(func() any { return new(published) }).(*published)
}

// Policy returns what visits call a version of a policy, which the recorders get with the first
// visit under it.
func Policy(s *source.Snapshot) string {
	version := s.SHA256[:12]
	p := of(s)
	if g := recorders.Generation(); p.recorders.Load() != g && p.recorders.Swap(g) != g {
		p.mu.Lock()
		clear(p.robots)
		p.mu.Unlock()
		recorders.Publish(recorders.Publication{Kind: "policy", Version: version, Name: s.Site.File.Name, Time: s.Since, Text: s.Text})
	}
	return version
}

// Robots gives the recorders a robots.txt that a crawler gets for the first
// time. serve answers a request with it.
func Robots(s *source.Snapshot, host, version string, r *http.Request, serve func(http.ResponseWriter, *http.Request)) {
	p := of(s)
	if !p.first(host+" "+version, time.Now().Unix()/86400) {
		return
	}
	plain := r.Clone(r.Context())
	plain.Header = http.Header{}
	text := textWriter{header: http.Header{}}
	serve(&text, plain)
	if robotsserve.Version(text.header.Get("Etag")) != version {
		p.mu.Lock() // the upstream's file was merged in between: the next crawler gets this version, or another
		delete(p.robots, host+" "+version)
		p.mu.Unlock()
		return
	}
	recorders.Publish(recorders.Publication{Kind: "robots", Version: version, Host: host, Name: s.Site.File.Name, Time: time.Now(), Text: text.body.String()})
}

// first reports whether a robots.txt has to be given to the recorders.
func (p *published) first(robots string, day int64) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.day != day || p.robots == nil {
		p.day, p.robots = day, map[string]bool{}
	}
	if p.robots[robots] || len(p.robots) >= maxRobots {
		return false
	}
	p.robots[robots] = true
	return true
}

// textWriter is a response in memory.
type textWriter struct {
	header http.Header
	body   bytes.Buffer
}

func (t *textWriter) Header() http.Header         { return t.header }
func (t *textWriter) WriteHeader(int)             {}
func (t *textWriter) Write(b []byte) (int, error) { return t.body.Write(b) }
