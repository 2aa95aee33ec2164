// SPDX-License-Identifier: Apache-2.0

package robotsserve

import (
	"context"
	"crypto/sha256"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/robotspolicy/caddy-robots-policy/policy"
	"github.com/robotspolicy/caddy-robots-policy/robotstxt"
)

// A Server caches at most maxMerged merged files, with at most maxMergedBytes in total. The limits are necessary
// because an upstream decides how many different files there are. The most recent half of the files always remains in
// the cache.
const (
	maxMerged      = 4096
	maxMergedBytes = 32 << 20
)

// Merging a file with thousands of groups takes a second or two. Merges run in the background, one at a time. A request
// waits at most mergeWait for its merge, which is long enough for nearly all sites.
const (
	maxMerging = 16 // number of merges that run or wait
	mergeWait  = 3 * time.Second
)

// mergedSites caches the robots.txt files in which the policy is merged with the sites' own files.
type mergedSites struct {
	mu      sync.Mutex
	recent  map[mergedKey]*mergedSite
	earlier map[mergedKey]*mergedSite // dropped when recent is full
	bytes   int                       // size of the finished files in recent
	running int                       // number of merges that run or wait
	work    sync.Mutex                // held while a file is merged
	last    atomic.Pointer[filledMerge]
}

// filledMerge caches the last merged answer, because adding very many sitemaps takes longer than all other work.
type filledMerge struct {
	site  *site
	other *robotstxt.File
	filled
}

type mergedKey struct {
	site  *site
	other [sha256.Size]byte
}

// mergedSite is the robots.txt of a site, merged with the site's own file.
type mergedSite struct {
	done   chan struct{} // closed when served is set
	served *served       // nil if the site and the file cannot be merged
}

func (m *mergedSite) ready() bool {
	select {
	case <-m.done:
		return true
	default:
		return false
	}
}

func (m *mergedSite) wait(ctx context.Context) bool {
	if m.ready() {
		return true
	}
	ctx, cancel := context.WithTimeout(ctx, mergeWait)
	defer cancel()
	select {
	case <-m.done:
	case <-ctx.Done():
	}
	return m.ready()
}

// find returns the cached result, or nil. The caller must hold ms.mu.
func (ms *mergedSites) find(k mergedKey) *mergedSite {
	m := ms.recent[k]
	if m != nil {
		return m
	}
	if m = ms.earlier[k]; m != nil {
		ms.add(k, m)
	}
	return m
}

func (ms *mergedSites) add(k mergedKey, m *mergedSite) {
	if ms.recent == nil || len(ms.recent) >= maxMerged/2 || ms.bytes >= maxMergedBytes/2 {
		ms.earlier, ms.recent, ms.bytes = ms.recent, map[mergedKey]*mergedSite{}, 0
	}
	ms.recent[k] = m
	if m.ready() {
		ms.bytes += m.served.memory()
	}
}

// of returns the merged file for the key k, which is a site with a file. If this merge has not been started yet, it
// starts the merge. It returns nil if too many other merges run or wait.
func (ms *mergedSites) of(k mergedKey, merge func() *served) *mergedSite {
	ms.mu.Lock()
	defer ms.mu.Unlock()
	if m := ms.find(k); m != nil {
		return m
	}
	if ms.running == maxMerging {
		return nil
	}
	ms.running++
	m := &mergedSite{done: make(chan struct{})}
	ms.add(k, m)
	go func() {
		defer func() {
			close(m.done)
			ms.mu.Lock()
			ms.running--
			ms.bytes += m.served.memory()
			ms.mu.Unlock()
		}()
		ms.work.Lock()
		defer ms.work.Unlock()
		m.served = merge()
	}()
	return m
}

// before returns the finished result for other, the site's previous file, or nil if the cache does not have it.
func (ms *mergedSites) before(site *site, other *robotstxt.File) *served {
	if other == nil {
		return nil
	}
	ms.mu.Lock()
	m := ms.find(mergedKey{site, other.Sum})
	ms.mu.Unlock()
	if m == nil || !m.ready() {
		return nil
	}
	return m.served
}

// mergedContent returns the robots.txt of a host, merged with the file a.Other, or nil if they cannot be merged. While
// the merge runs, settled is false. Then c is the policy merged with the previous file, a.Before, or nil.
func (s *Server) mergedContent(ctx context.Context, site *site, host string, a Answer) (c *contents, settled bool) {
	if a.Other.Empty() {
		return nil, true
	}
	if last := s.merged.last.Load(); last != nil && last.site == site && last.other == a.Other && last.host == host && last.scheme == a.Scheme {
		return last.contents, true
	}
	m := s.merged.of(mergedKey{site, a.Other.Sum}, func() *served { return s.merge(site, host, a) })
	if m != nil && m.wait(ctx) {
		return s.fillMerged(m.served, site, host, a, a.Other), true
	}
	return s.fillMerged(s.merged.before(site, a.Before), site, host, a, a.Before), false
}

// merge merges the policy's robots.txt for the site with the site's own file, a.Other. It returns nil if they cannot be
// merged.
func (s *Server) merge(site *site, host string, a Answer) (m *served) {
	var problems []policy.Problem
	var notes []robotstxt.Note
	defer func() {
		if p := recover(); p != nil { // this goroutine has no other handler for panics
			m = nil
			problems = append(problems, policy.NewProblem(policy.Error, "not-merged", policy.Pos{}, "merging with the site's robots.txt failed: panic: %v; please report this, and attach that robots.txt", p))
		}
		if a.Report != nil {
			a.Report(problems, notes)
		}
	}()
	var d *drawing
	_, d, problems, notes = drawMerged(s.p, site.host, a.Other)
	if n := d.least(s.p); n > robotstxt.MaxSize {
		problems = append(problems, tooLarge(s.p, n))
	}
	_, more := d.vary(s.p, host, s.o.below(a.Other, ""))
	problems = append(problems, more...)
	for _, p := range problems {
		if p.Severity == policy.Error {
			return nil
		}
	}
	d.groups, d.losses = nil, nil // they take much memory, and only explanations need them
	return serve(d)
}

// fillMerged returns the merged file m, completed with the text that depends on the host. It returns nil if m is nil,
// or if the file is too large.
func (s *Server) fillMerged(m *served, site *site, host string, a Answer, other *robotstxt.File) *contents {
	if m == nil {
		return nil
	}
	v, _ := m.drawing.vary(s.p, host, s.o.below(other, a.Scheme))
	c := m.fill(v)
	if c.identity.size > robotstxt.MaxSize {
		c = nil
	}
	if isAuthority(host) {
		s.merged.last.Store(&filledMerge{site, other, filled{strings.Clone(host), a.Scheme, c}})
	}
	return c
}
