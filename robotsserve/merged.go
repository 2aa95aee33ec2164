// SPDX-License-Identifier: Apache-2.0

package robotsserve

import (
	"crypto/sha256"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/robotspolicy/caddy-robots-policy/policy"
)

// maxMerged is how many merged files a Server keeps, at least the half of them
// the latest. An upstream decides how many there are to make.
const maxMerged = 32

// mergedSites keeps merged files: what a site and another file come to.
type mergedSites struct {
	mu      sync.Mutex
	recent  map[mergedKey]*mergedSite
	earlier map[mergedKey]*mergedSite // dropped when recent is full
	last    atomic.Pointer[filledMerge]
}

// filledMerge is what was served to a host, of which only the last is kept, as
// with filled: of a file with very many sitemaps it costs more than all the rest.
type filledMerge struct {
	site  *site
	other *Other
	filled
}

type mergedKey struct {
	site  *site
	other [sha256.Size]byte
}

// mergedSite is what a site serves with another file below.
type mergedSite struct {
	once   sync.Once
	served *served // nil: the two cannot be merged
}

func (ms *mergedSites) of(k mergedKey) *mergedSite {
	ms.mu.Lock()
	defer ms.mu.Unlock()
	m := ms.recent[k]
	if m != nil {
		return m
	}
	if m = ms.earlier[k]; m == nil {
		m = &mergedSite{}
	}
	if ms.recent == nil || len(ms.recent) >= maxMerged/2 {
		ms.earlier, ms.recent = ms.recent, map[mergedKey]*mergedSite{}
	}
	ms.recent[k] = m
	return m
}

// mergedContent is what to serve to a host with another file merged; nil where
// that cannot be.
func (s *Server) mergedContent(site *site, host string, a Answer) *contents {
	if a.Other.SaysNothing() {
		return nil
	}
	if last := s.merged.last.Load(); last != nil && last.site == site && last.other == a.Other && last.host == host {
		return last.contents
	}
	m := s.merged.of(mergedKey{site, a.Other.sum})
	m.once.Do(func() {
		d, problems, told := newLayout(s.p).drawMerged(site.host, a.Other)
		if len(d.head)+len(d.tail) > MaxFile {
			problems = append(problems, tooLarge(s.p, len(d.head)+len(d.tail)))
		}
		v := d.vary(s.p, host, s.o.Options)
		problems = append(problems, a.Other.addSitemaps(d, &v)...)
		m.served = serve(d)
		for _, p := range problems {
			if p.Severity == policy.Error {
				m.served = nil
			}
		}
		if a.Tell != nil {
			a.Tell(problems, told)
		}
	})
	if m.served == nil {
		return nil
	}
	d := m.served.drawing
	v := d.vary(s.p, host, s.o.Options)
	a.Other.addSitemaps(d, &v)
	c := m.served.fill(v)
	if c.identity.size > MaxFile {
		c = nil
	}
	if isAuthority(host) {
		s.merged.last.Store(&filledMerge{site, a.Other, filled{strings.Clone(host), c}})
	}
	return c
}
