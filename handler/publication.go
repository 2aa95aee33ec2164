// SPDX-License-Identifier: Apache-2.0

package handler

import (
	"bytes"
	"net/http"
	"sync"
	"sync/atomic"
	"time"
	"weak"

	"github.com/robotspolicy/caddy-robots-policy/activity"
	"github.com/robotspolicy/caddy-robots-policy/policy"
	"github.com/robotspolicy/caddy-robots-policy/robotsserve"
	"github.com/robotspolicy/caddy-robots-policy/site"
	"github.com/robotspolicy/caddy-robots-policy/source"
)

// publications are what was published of a version of a policy, to each of the Recorders
// of the handlers that it is served by. Mostly there is one.
type publications struct {
	mu  sync.Mutex // of changes
	all atomic.Pointer[[]*published]
}

// published is what the recorders were given of a version of a policy.
type published struct {
	to        weak.Pointer[activity.Recorders]
	recorders atomic.Uint64 // Generation of those that have the policy
	mu        sync.Mutex
	day       int64           // in which the recorders were given what is in robots
	robots    map[string]bool // hosts and versions
}

func publishedOf(s *source.Snapshot, to *activity.Recorders) *published {
	ps := s.Recorded(func() any { return new(publications) }).(*publications)
	if p := ps.find(to); p != nil {
		return p
	}
	ps.mu.Lock()
	defer ps.mu.Unlock()
	if p := ps.find(to); p != nil {
		return p
	}
	all := []*published{{to: weak.Make(to)}}
	for _, p := range ps.list() {
		if p.to.Value() != nil { // else its handlers are gone
			all = append(all, p)
		}
	}
	ps.all.Store(&all)
	return all[0]
}

func (ps *publications) list() []*published {
	if all := ps.all.Load(); all != nil {
		return *all
	}
	return nil
}

// find returns what these recorders were given, nil if it is nothing yet.
func (ps *publications) find(to *activity.Recorders) *published {
	for _, p := range ps.list() {
		if p.to.Value() == to {
			return p
		}
	}
	return nil
}

// maxRobots bounds how many robots.txt of one policy the recorders are given in a day:
// clients can make up hosts.
const maxRobots = 10_000

// publication returns what is published under the policy. The recorders get it with the
// first request under it, if not before.
func (q *request) publication() *activity.Publication {
	s, recorders := q.snapshot, q.h.Recorders
	all := s.Publication()
	p := publishedOf(s, recorders)
	if g := recorders.Generation(); p.recorders.Load() != g && p.recorders.Swap(g) != g {
		p.mu.Lock()
		clear(p.robots)
		p.mu.Unlock()
		recorders.Publish(all)
	}
	return all
}

// publishRobots gives the recorders the robots.txt that the crawler gets, if none got it
// before. answer is what it was served with.
func (q *request) publishRobots(version string, answer robotsserve.Answer) {
	p, host := publishedOf(q.snapshot, q.h.Recorders), policy.NormalizeHost(q.Host)
	if !p.first(host+" "+version, time.Now().Unix()/86400) {
		return
	}
	plain := q.Clone(q.Context())
	plain.Header = http.Header{}
	text := textWriter{header: http.Header{}}
	q.snapshot.Site.ServeRobots(&text, plain, answer)
	if robotsserve.Version(text.header.Get("Etag")) != version {
		p.mu.Lock() // the upstream's file was merged in between: the next crawler gets this version, or another
		delete(p.robots, host+" "+version)
		p.mu.Unlock()
		return
	}
	q.h.Recorders.Serve(q.snapshot.Publication(), site.Document{Name: site.RobotsTxt, Host: host, Version: version, Text: text.body.String()})
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
