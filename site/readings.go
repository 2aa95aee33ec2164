// SPDX-License-Identifier: Apache-2.0

package site

import (
	"maps"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/robotspolicy/caddy-robots-policy/policy"
)

// Reading records that a crawler fetched a host's robots.txt. The servers of a fleet exchange Readings.
type Reading struct {
	Crawler  string `json:"c"` // in lower case
	Host     string `json:"h"`
	Version  string `json:"v"` // of robots.txt: its entity tag without quotes
	Policy   string `json:"p"` // the SHA-256 of the text from which it was rendered
	At       int64  `json:"t"` // in seconds since 1970
	Verified bool   `json:"i,omitempty"`

	Site *Site `json:"-"` // what the version says
}

// Token is a product token, prepared for lookups in Readings.
type Token struct {
	name, folded string
	bit          uint64 // one of 64, for a quick negative answer
}

// NewToken prepares a product token.
func NewToken(name string) Token {
	c := Token{name: name, folded: strings.ToLower(name)}
	hash := uint64(0)
	for i := range len(c.folded) {
		hash = hash*31 + uint64(c.folded[i])
	}
	c.bit = 1 << (hash % 64)
	return c
}

// maxHostname is the length of a DNS name. A longer one is not a host, and would
// only fill the memory.
const maxHostname = 253

// Bounds of the readings of one policy. The policy of one host needs little, and
// there can be thousands of them.
const (
	maxReaders, maxReadSites               = 4096, 32
	maxReadersOfOneHost, maxSitesOfOneHost = 64, 8
)

// readerOf is a crawler, a host, and whether it was verified. It is not an address: crawlers fetch robots.txt from one
// address and pages from others. What an unverified client fetched under a name tells nothing about the verified crawler.
type readerOf struct {
	crawler, host string
	verified      bool
}

// Readings remembers the last reading of each crawler, identity and host. The policies of the
// versions are few and held, because they know the text of each version.
type Readings struct {
	maxReaders, maxSites int

	bits    atomic.Uint64 // of the crawlers in the maps
	mu      sync.RWMutex
	recent  map[readerOf]Reading
	earlier map[readerOf]Reading // the previous recent
	sites   []*Site              // oldest first

	// elsewhere holds readings from other servers, and from this one before a restart.
	elsewhere atomic.Pointer[map[readerOf]Reading]
}

// Add records that a crawler has fetched the robots.txt of a host.
func (l *Readings) Add(c Token, host string, r Reading) {
	who, ok := readerAt(c, host, r.Verified)
	if !ok {
		return
	}
	who.host = strings.Clone(who.host) // it may be part of a whole request line
	r.Crawler, r.Host = who.crawler, who.host
	l.mu.Lock()
	defer l.mu.Unlock()
	l.bits.Or(c.bit)
	l.hold(r.Site)
	if l.recent == nil || len(l.recent) >= l.maxReaders/2 {
		l.earlier, l.recent = l.recent, map[readerOf]Reading{}
	}
	l.recent[who] = r
}

func readerAt(c Token, host string, verified bool) (readerOf, bool) {
	host = policy.NormalizeHost(host)
	return readerOf{c.folded, host, verified}, len(host) <= maxHostname
}

// hold holds a policy. If there are too many, the oldest goes, with the
// versions that were rendered from it.
func (l *Readings) hold(s *Site) {
	if slices.Contains(l.sites, s) {
		return
	}
	l.sites = append(l.sites, s)
	if len(l.sites) <= l.maxSites {
		return
	}
	oldest := l.sites[0]
	l.sites = slices.Clone(l.sites[1:])
	for _, m := range []map[readerOf]Reading{l.recent, l.earlier} {
		maps.DeleteFunc(m, func(_ readerOf, v Reading) bool { return v.Site == oldest })
	}
}

// Last returns the version that a crawler has fetched last, verified or not; its Site is nil if none is known.
func (l *Readings) Last(c Token, host string, verified bool) (last Reading) {
	if l.bits.Load()&c.bit == 0 {
		return last
	}
	who, ok := readerAt(c, host, verified)
	if !ok {
		return last
	}
	last = l.lastHere(who)
	if m := l.elsewhere.Load(); m != nil {
		if other, there := (*m)[who]; there && (last.Site == nil || other.At > last.At) {
			return other
		}
	}
	return last
}

func (l *Readings) lastHere(who readerOf) Reading {
	l.mu.RLock()
	defer l.mu.RUnlock()
	if v, ok := l.recent[who]; ok {
		return v
	}
	return l.earlier[who]
}

// Violation reports whether a request goes against the version of robots.txt that a crawler has fetched, and by which
// decision. q is about the crawler in the policy s. An impostor has not fetched anything. robots.txt addresses every
// user of the token, so rules that demand a verified client count, while the query's purposes do not. A path that is
// disallowed in another letter case only is another path to readers of robots.txt, and a crawler that the version
// leaves out was asked nothing.
func (r *Reading) Violation(c Token, s *Site, t *Target, q policy.Query) (policy.Decision, bool) {
	if r.Site == nil || q.Identity == policy.Impostor {
		return policy.Decision{}, false
	}
	if r.Site != s {
		q.Crawler = r.Site.Policy.Crawler(c.name)
	}
	if q.Crawler == 0 {
		return policy.Decision{}, false
	}
	q.Identity, q.Purposes, q.Now = policy.Verified, nil, time.Unix(r.At, 0)
	verdict := r.Site.EdgeOf(t, q)
	found := verdict.Decision.Verdict == policy.Disallowed && !verdict.AnyCase
	return verdict.Decision, found && (!r.Site.Policy.CrawlerInfo(q.Crawler).Rare || !leavesOpen(r.Site.Robots.Explain(q)))
}

// All returns what crawlers have fetched from this server: the last reading of each crawler, identity and host.
func (l *Readings) All() []Reading {
	l.mu.RLock()
	defer l.mu.RUnlock()
	all := slices.Collect(maps.Values(l.recent))
	for who, v := range l.earlier {
		if _, newer := l.recent[who]; !newer {
			all = append(all, v)
		}
	}
	return all
}

// Sites returns the versions of the policy that have been read, by the SHA-256 of their texts.
func (l *Readings) Sites() map[string]*Site {
	sites := map[string]*Site{}
	for _, r := range l.All() {
		sites[r.Policy] = r.Site
	}
	return sites
}

// SetElsewhere replaces the readings from other servers, under the versions in sites. Excess readings are dropped.
func (l *Readings) SetElsewhere(all []Reading, sites map[string]*Site) {
	if len(all) == 0 {
		l.elsewhere.Store(nil)
		return
	}
	elsewhere := map[readerOf]Reading{}
	for _, r := range all {
		c := NewToken(r.Crawler)
		who, ok := readerAt(c, r.Host, r.Verified)
		before, known := elsewhere[who]
		if r.Site = sites[r.Policy]; !ok || r.Site == nil || known && before.At >= r.At || !known && len(elsewhere) >= l.maxReaders {
			continue
		}
		l.bits.Or(c.bit)
		elsewhere[who] = r
	}
	l.elsewhere.Store(&elsewhere)
}
