// SPDX-License-Identifier: Apache-2.0

// Package fetchlog remembers which crawler fetched which version of a host's
// robots.txt, and finds the requests that violate the version that was fetched.
package fetchlog

import (
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/robotspolicy/caddy-robots-policy/policy"
	"github.com/robotspolicy/caddy-robots-policy/site"
)

// maxHostname is the length of a DNS name. A longer one is not a host, and would
// only fill the memory.
const maxHostname = 253

// Crawler is a product token, prepared for lookups.
type Crawler struct {
	token, folded string
	bit           uint64 // one of 64, for a quick negative answer
}

// NewCrawler returns the Crawler of a product token.
func NewCrawler(token string) Crawler {
	c := Crawler{token: token, folded: strings.ToLower(token)}
	hash := uint64(0)
	for i := range len(c.folded) {
		hash = hash*31 + uint64(c.folded[i])
	}
	c.bit = 1 << (hash % 64)
	return c
}

// Version is a robots.txt as it was served.
type Version struct {
	ETag string // without quotes
	Site *site.Site
	At   time.Time
}

// fetcher is a crawler and a host, and not an address: crawlers fetch robots.txt
// from one address and pages from others.
type fetcher struct{ crawler, host string }

// Log remembers the last fetch of each crawler and host. The policies of the
// versions are few and held, as they know what each version says.
type Log struct {
	maxFetchers, maxPolicies int

	bits     atomic.Uint64 // of the crawlers in the maps
	mu       sync.RWMutex
	recent   map[fetcher]Version
	earlier  map[fetcher]Version // the previous recent
	policies []*site.Site        // oldest first
}

// New returns a log of at most so many crawlers and hosts, and so many policies.
func New(maxFetchers, maxPolicies int) *Log {
	return &Log{maxFetchers: maxFetchers, maxPolicies: maxPolicies}
}

// Add records that a crawler has fetched the robots.txt of a host.
func (l *Log) Add(c Crawler, host string, v Version) {
	who, ok := fetcherOf(c, host)
	if !ok {
		return
	}
	who.host = strings.Clone(who.host) // it may be part of a whole request line
	l.mu.Lock()
	defer l.mu.Unlock()
	l.bits.Or(c.bit)
	l.addPolicy(v.Site)
	if l.recent == nil || len(l.recent) >= l.maxFetchers/2 {
		l.earlier, l.recent = l.recent, map[fetcher]Version{}
	}
	l.recent[who] = v
}

func fetcherOf(c Crawler, host string) (fetcher, bool) {
	host = policy.NormalizeHost(host)
	return fetcher{c.folded, host}, len(host) <= maxHostname
}

// addPolicy holds a policy. If there are too many, the oldest goes, with the
// versions that were rendered from it.
func (l *Log) addPolicy(s *site.Site) {
	if slices.Contains(l.policies, s) {
		return
	}
	l.policies = append(l.policies, s)
	if len(l.policies) <= l.maxPolicies {
		return
	}
	oldest := l.policies[0]
	l.policies = slices.Clone(l.policies[1:])
	for _, m := range []map[fetcher]Version{l.recent, l.earlier} {
		for who, v := range m {
			if v.Site == oldest {
				delete(m, who)
			}
		}
	}
}

// Last returns the version that a crawler has fetched last.
func (l *Log) Last(c Crawler, host string) (Version, bool) {
	if l.bits.Load()&c.bit == 0 {
		return Version{}, false
	}
	who, ok := fetcherOf(c, host)
	if !ok {
		return Version{}, false
	}
	l.mu.RLock()
	defer l.mu.RUnlock()
	if v, ok := l.recent[who]; ok {
		return v, true
	}
	v, ok := l.earlier[who]
	return v, ok
}

// Violation reports whether a request goes against the version of robots.txt that
// the crawler has fetched, and by which decision. The query is about s. An impostor
// has not fetched anything. robots.txt addresses whoever uses the token, so rules
// that demand a verified client count, while the query's purposes do not. A path that
// is disallowed in another letter case only is another path to readers of robots.txt.
func (l *Log) Violation(c Crawler, s *site.Site, q policy.Query) (Version, policy.Decision, bool) {
	if q.Identity == policy.Impostor {
		return Version{}, policy.Decision{}, false
	}
	v, ok := l.Last(c, q.Host)
	if !ok {
		return v, policy.Decision{}, false
	}
	if v.Site != s {
		q.Crawler = v.Site.Policy.Crawler(c.token)
	}
	if q.Crawler == 0 {
		return v, policy.Decision{}, false
	}
	q.Identity, q.Purposes, q.Now = policy.Verified, nil, v.At
	verdict := v.Site.Edge(q)
	return v, verdict.Decision, verdict.Decision.Verdict == policy.Disallowed && !verdict.AnyCase
}
