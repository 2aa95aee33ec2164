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
	Crawler  string `json:"c"` // the token in lower case
	Host     string `json:"h"`
	Version  string `json:"v"` // the version of robots.txt: its entity tag without quotes
	Policy   string `json:"p"` // the SHA-256 of the policy file that it was rendered from
	At       int64  `json:"t"` // the time of the request, in seconds since 1970
	Verified bool   `json:"i,omitempty"`

	Site *Site `json:"-"` // the policy that Version was rendered from
}

// maxHostname is the maximum length of a DNS name. A longer name is not a host, so it is not remembered.
const maxHostname = 253

// For each policy, the server remembers the crawlers that have fetched robots.txt, and the versions of the policy that
// they have read. These constants limit the number of these crawlers and versions. The limits are lower for a policy
// for one host, because there can be thousands of such policies.
const (
	maxReaders, maxReadSites               = 4096, 32
	maxReadersOfOneHost, maxSitesOfOneHost = 64, 8
)

// readerOf identifies a crawler on a host. It does not contain an address, because crawlers fetch robots.txt from one
// address and pages from others. Verified and unverified clients are separate readers, because an unverified client
// that fetches robots.txt may not be the real crawler.
type readerOf struct {
	crawler, host string
	verified      bool
}

// Readings remembers which version of robots.txt each crawler fetched last on each host, separately for verified and
// unverified clients. It also keeps the policies that these versions were rendered from, because Reading.Violation
// needs them. Only a few policies are needed, because many crawlers have read versions of the same policy.
type Readings struct {
	maxReaders, maxSites int

	mu      sync.RWMutex
	recent  map[readerOf]Reading
	earlier map[readerOf]Reading // the previous value of recent
	sites   []*Site              // oldest first

	// elsewhere holds readings from other servers, and from this one before a restart.
	elsewhere atomic.Pointer[map[readerOf]Reading]
}

// Add records that a crawler has fetched the robots.txt of a host. token is the crawler's token in lower case.
func (l *Readings) Add(token, host string, r Reading) {
	who, ok := readerAt(token, host, r.Verified)
	if !ok {
		return
	}
	who.host = strings.Clone(who.host) // do not keep a whole request line in memory
	r.Crawler, r.Host = who.crawler, who.host
	l.mu.Lock()
	defer l.mu.Unlock()
	l.hold(r.Site)
	if l.recent == nil || len(l.recent) >= l.maxReaders/2 {
		l.earlier, l.recent = l.recent, map[readerOf]Reading{}
	}
	l.recent[who] = r
}

func readerAt(token, host string, verified bool) (readerOf, bool) {
	host = policy.NormalizeHost(host)
	return readerOf{token, host, verified}, len(host) <= maxHostname
}

// hold keeps the policy s. If l then has too many policies, hold drops the oldest one, and the readings of its
// robots.txt.
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

// Last returns the last reading of a crawler and host, for verified or unverified clients. If there is none, it returns
// a Reading whose Site is nil. token is the crawler's token in lower case.
func (l *Readings) Last(token, host string, verified bool) (last Reading) {
	who, ok := readerAt(token, host, verified)
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

// Violation reports whether a request violates the version of robots.txt that the crawler last fetched, and returns the
// decision of that version. q is a query about the crawler in the policy s. For an impostor, the result is false,
// because it is not the crawler that fetched the file. robots.txt cannot distinguish clients with the same token, so
// Violation decides as for a verified client, and ignores the query's purposes. It is not a violation if the policy
// disallows the path only in another letter case, because robots.txt distinguishes letter case. It is not a violation,
// either, if robots.txt does not name the crawler because it is rare.
func (r *Reading) Violation(token string, s *Site, t *Target, q policy.Query) (policy.Decision, bool) {
	if r.Site == nil || q.Identity == policy.Impostor {
		return policy.Decision{}, false
	}
	if r.Site != s {
		q.Crawler = r.Site.Policy.Crawler(token)
	}
	if q.Crawler == 0 {
		return policy.Decision{}, false
	}
	q.Identity, q.Purposes, q.Now = policy.Verified, nil, time.Unix(r.At, 0)
	verdict := r.Site.EdgeOf(t, q)
	found := verdict.Decision.Verdict == policy.Disallowed && !verdict.AnyCase
	return verdict.Decision, found && (!r.Site.Policy.CrawlerInfo(q.Crawler).Rare || !leavesOpen(r.Site.Robots.Explain(q)))
}

// All returns the last reading of each crawler, identity and host on this server.
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

// Sites returns the policies of the readings on this server, by the SHA-256 of their files.
func (l *Readings) Sites() map[string]*Site {
	sites := map[string]*Site{}
	for _, r := range l.All() {
		sites[r.Policy] = r.Site
	}
	return sites
}

// SetElsewhere replaces the readings that other servers have sent with the ones in the list all. sites holds the
// policies that this server knows, by the SHA-256 of their files. SetElsewhere drops readings of policies that are not
// in sites, and the last readings if there are too many.
func (l *Readings) SetElsewhere(all []Reading, sites map[string]*Site) {
	if len(all) == 0 {
		l.elsewhere.Store(nil)
		return
	}
	elsewhere := map[readerOf]Reading{}
	for _, r := range all {
		who, ok := readerAt(strings.ToLower(r.Crawler), r.Host, r.Verified)
		before, known := elsewhere[who]
		if r.Site = sites[r.Policy]; !ok || r.Site == nil || known && before.At >= r.At || !known && len(elsewhere) >= l.maxReaders {
			continue
		}
		elsewhere[who] = r
	}
	l.elsewhere.Store(&elsewhere)
}
