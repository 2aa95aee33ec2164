// SPDX-License-Identifier: Apache-2.0

package handler

import (
	"time"

	"github.com/robotspolicy/caddy-robots-policy/site"
	"github.com/robotspolicy/caddy-robots-policy/source"
)

// Reading is that a crawler fetched the robots.txt of a host, as servers tell each other.
type Reading struct {
	Crawler  string `json:"c"` // in lower case
	Host     string `json:"h"`
	Version  string `json:"v"` // of robots.txt
	Policy   string `json:"p"` // the SHA-256 of the text from which it was rendered
	At       int64  `json:"t"` // in seconds since 1970
	Verified bool   `json:"i,omitempty"`
	Short    bool   `json:"s,omitempty"`
}

// Readings returns what crawlers have fetched from this server under the versions of a
// policy: the last fetch of each crawler and host.
func Readings(s *source.Snapshot) []Reading {
	l := sharedOf(s).fetches
	l.mu.RLock()
	defer l.mu.RUnlock()
	all := make([]Reading, 0, len(l.recent)+len(l.earlier))
	l.each(func(who fetcher, v fetchedVersion) {
		all = append(all, Reading{who.crawler, who.host, v.ETag, v.policy, v.At.Unix(), v.verified, v.Short})
	})
	return all
}

// each calls request with the last fetch of each crawler and host. The caller holds mu.
func (l *fetchLog) each(visit func(fetcher, fetchedVersion)) {
	for who, v := range l.earlier {
		if _, newer := l.recent[who]; !newer {
			visit(who, v)
		}
	}
	for who, v := range l.recent {
		visit(who, v)
	}
}

// KnownPolicies returns the versions of a policy that this server serves or served, by the
// SHA-256 of their texts.
func KnownPolicies(s *source.Snapshot) map[string]*site.Site {
	sites := map[string]*site.Site{}
	l := sharedOf(s).fetches
	l.mu.RLock()
	defer l.mu.RUnlock()
	l.each(func(_ fetcher, v fetchedVersion) { sites[v.policy] = v.Site })
	sites[s.SHA256] = s.Site
	return sites
}

// SetElsewhere replaces what is known of fetches from other servers under versions of a
// policy. Of what is too much, the first is taken.
func SetElsewhere(s *source.Snapshot, all []Reading, sites map[string]*site.Site) {
	l := sharedOf(s).fetches
	if len(all) == 0 {
		l.elsewhere.Store(nil)
		return
	}
	elsewhere := map[fetcher]fetchedVersion{}
	for _, r := range all {
		c := newFetchingCrawler(r.Crawler)
		who, ok := fetcherOf(c, r.Host)
		at := time.Unix(r.At, 0)
		if before, known := elsewhere[who]; !ok || sites[r.Policy] == nil || known && !before.At.Before(at) || !known && len(elsewhere) >= l.maxFetchers {
			continue
		}
		l.bits.Or(c.bit)
		elsewhere[who] = fetchedVersion{ETag: r.Version, Site: sites[r.Policy], At: at, Short: r.Short, policy: r.Policy, verified: r.Verified}
	}
	l.elsewhere.Store(&elsewhere)
}
