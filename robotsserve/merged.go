// SPDX-License-Identifier: Apache-2.0

package robotsserve

import (
	"context"
	"crypto/sha256"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/robotspolicy/caddy-robots-policy/policy"
	"github.com/robotspolicy/caddy-robots-policy/robotstxt"
)

// maxMerged is how many merged files a Server caches, at least half of them the latest,
// and maxMergedBytes how much memory they take. An upstream decides how many there are.
const (
	maxMerged      = 4096
	maxMergedBytes = 32 << 20
)

// Merging with a file of thousands of groups takes a second or two. It goes on in the
// background, for one file at a time while others wait, and a request waits for it for
// mergeWait: a file like those of nearly all sites is merged by then. Until it is,
// crawlers would learn less than the site's file says.
const (
	maxMerging = 16 // with those that wait
	mergeWait  = 3 * time.Second
)

// mergedSites caches merged files: what a site and another file come to.
type mergedSites struct {
	mu      sync.Mutex
	recent  map[mergedKey]*mergedSite
	earlier map[mergedKey]*mergedSite // dropped when recent is full
	bytes   int                       // of recent, as far as they are merged
	running int                       // files that are being merged, or wait for that
	work    sync.Mutex                // held while one is merged
	last    atomic.Pointer[filledMerge]
}

// filledMerge is what was served to a host, of which only the last is cached, as
// with filled: of a file with very many sitemaps it costs more than all the rest.
type filledMerge struct {
	site  *site
	other *robotstxt.File
	filled
}

type mergedKey struct {
	site  *site
	other [sha256.Size]byte
}

// mergedSite is what a site serves with another file below.
type mergedSite struct {
	done   chan struct{} // closed when served is set
	served *served       // nil: the two cannot be merged
}

func (m *mergedSite) ready() bool {
	select {
	case <-m.done:
		return true
	default:
		return false
	}
}

// wait reports whether it is merged, now or within mergeWait.
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

// find returns what a site and a file come to, nil if that is not known. ms.mu is held.
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

// of returns what a site and a file come to, and begins to merge them where nobody has.
// It is nil while too many others are being merged.
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

// before returns what a site and an earlier file came to, nil if that is not known.
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

// mergedContent is what to serve to a host with another file merged; nil where that
// cannot be. It is not settled while the two are being merged: then it is what the
// policy and the file before came to, or nil.
func (s *Server) mergedContent(ctx context.Context, site *site, host string, a Answer) (c *contents, settled bool) {
	if a.Other.Empty() {
		return nil, true
	}
	if last := s.merged.last.Load(); last != nil && last.site == site && last.other == a.Other && last.host == host {
		return last.contents, true
	}
	m := s.merged.of(mergedKey{site, a.Other.Sum}, func() *served { return s.merge(site, host, a) })
	if m != nil && m.wait(ctx) {
		return s.fillMerged(m.served, site, host, a.Other), true
	}
	return s.fillMerged(s.merged.before(site, a.Before), site, host, a.Before), false
}

// merge merges a site and another file, nil where that cannot be.
func (s *Server) merge(site *site, host string, a Answer) (m *served) {
	var problems []policy.Problem
	var notes []robotstxt.Note
	defer func() {
		if p := recover(); p != nil { // nothing else would catch it
			m = nil
			problems = append(problems, policy.Problem{Severity: policy.Error, Code: "not-merged", Message: fmt.Sprintf("merging failed: panic: %v; please report it with the file", p)})
		}
		if a.Report != nil {
			a.Report(problems, notes)
		}
	}()
	var d *drawing
	d, problems, notes = newLayout(s.p).drawMerged(site.host, site.short, a.Other)
	if n := d.least(s.p); n > robotstxt.MaxSize {
		problems = append(problems, tooLarge(s.p, n))
	}
	v := d.vary(s.p, host, s.o.Options)
	problems = append(problems, addSitemaps(a.Other, d, &v)...)
	for _, p := range problems {
		if p.Severity == policy.Error {
			return nil
		}
	}
	d.groups, d.losses = nil, nil // larger than the file, and nothing explains it by them
	return serve(d)
}

// fillMerged completes what is served for a host; nil if m is, or if it is too large.
func (s *Server) fillMerged(m *served, site *site, host string, other *robotstxt.File) *contents {
	if m == nil {
		return nil
	}
	d := m.drawing
	v := d.vary(s.p, host, s.o.Options)
	addSitemaps(other, d, &v)
	c := m.fill(v)
	if c.identity.size > robotstxt.MaxSize {
		c = nil
	}
	if isAuthority(host) {
		s.merged.last.Store(&filledMerge{site, other, filled{strings.Clone(host), c}})
	}
	return c
}
