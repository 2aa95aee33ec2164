// SPDX-License-Identifier: Apache-2.0

package handler

import (
	"maps"
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

// fetchingCrawler is a product token, prepared for lookups.
type fetchingCrawler struct {
	token, folded string
	bit           uint64 // one of 64, for a quick negative answer
}

func newFetchingCrawler(token string) fetchingCrawler {
	c := fetchingCrawler{token: token, folded: strings.ToLower(token)}
	hash := uint64(0)
	for i := range len(c.folded) {
		hash = hash*31 + uint64(c.folded[i])
	}
	c.bit = 1 << (hash % 64)
	return c
}

// fetchedVersion is a robots.txt as it was served.
type fetchedVersion struct {
	ETag string // without quotes
	Site *site.Site
	At   time.Time
	// Short: it may leave out crawlers that the server blocks.
	Short bool

	policy   string // the SHA-256 of the policy's text
	verified bool
}

// fetcher is a crawler and a host, and not an address: crawlers fetch robots.txt
// from one address and pages from others.
type fetcher struct{ crawler, host string }

// fetchLog remembers the last fetch of each crawler and host. The policies of the
// versions are few and held, as they know what each version says.
type fetchLog struct {
	maxFetchers, maxPolicies int

	bits     atomic.Uint64 // of the crawlers in the maps
	mu       sync.RWMutex
	recent   map[fetcher]fetchedVersion
	earlier  map[fetcher]fetchedVersion // the previous recent
	policies []*site.Site               // oldest first

	// elsewhere is what crawlers fetched from other servers, and here before a restart.
	elsewhere atomic.Pointer[map[fetcher]fetchedVersion]
}

// newFetchLog returns a log of at most so many crawlers and hosts, and so many policies.
func newFetchLog(maxFetchers, maxPolicies int) *fetchLog {
	return &fetchLog{maxFetchers: maxFetchers, maxPolicies: maxPolicies}
}

// add records that a crawler has fetched the robots.txt of a host.
func (l *fetchLog) add(c fetchingCrawler, host string, v fetchedVersion) {
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
		l.earlier, l.recent = l.recent, map[fetcher]fetchedVersion{}
	}
	l.recent[who] = v
}

func fetcherOf(c fetchingCrawler, host string) (fetcher, bool) {
	host = policy.NormalizeHost(host)
	return fetcher{c.folded, host}, len(host) <= maxHostname
}

// addPolicy holds a policy. If there are too many, the oldest goes, with the
// versions that were rendered from it.
func (l *fetchLog) addPolicy(s *site.Site) {
	if slices.Contains(l.policies, s) {
		return
	}
	l.policies = append(l.policies, s)
	if len(l.policies) <= l.maxPolicies {
		return
	}
	oldest := l.policies[0]
	l.policies = slices.Clone(l.policies[1:])
	for _, m := range []map[fetcher]fetchedVersion{l.recent, l.earlier} {
		maps.DeleteFunc(m, func(_ fetcher, v fetchedVersion) bool { return v.Site == oldest })
	}
}

// last returns the version that a crawler has fetched last.
func (l *fetchLog) last(c fetchingCrawler, host string) (fetchedVersion, bool) {
	if l.bits.Load()&c.bit == 0 {
		return fetchedVersion{}, false
	}
	who, ok := fetcherOf(c, host)
	if !ok {
		return fetchedVersion{}, false
	}
	v, ok := l.lastHere(who)
	if m := l.elsewhere.Load(); m != nil {
		if other, there := (*m)[who]; there && (!ok || other.At.After(v.At)) {
			return other, true
		}
	}
	return v, ok
}

func (l *fetchLog) lastHere(who fetcher) (fetchedVersion, bool) {
	l.mu.RLock()
	defer l.mu.RUnlock()
	if v, ok := l.recent[who]; ok {
		return v, true
	}
	v, ok := l.earlier[who]
	return v, ok
}

// violation reports whether a request goes against the version of robots.txt that
// the crawler has fetched, and by which decision. The query is about s. An impostor
// has not fetched anything. robots.txt addresses whoever uses the token, so rules
// that demand a verified client count, while the query's purposes do not. A path that
// is disallowed in another letter case only is another path to readers of robots.txt, and
// a crawler that the version leaves out was asked nothing.
func (l *fetchLog) violation(c fetchingCrawler, s *site.Site, q policy.Query) (fetchedVersion, policy.Decision, bool) {
	if q.Identity == policy.Impostor {
		return fetchedVersion{}, policy.Decision{}, false
	}
	v, ok := l.last(c, q.Host)
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
	found := verdict.Decision.Verdict == policy.Disallowed && !verdict.AnyCase
	return v, verdict.Decision, found && (!v.Short || !v.Site.LeftOut(q))
}
