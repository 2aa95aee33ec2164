// SPDX-License-Identifier: Apache-2.0

package verify

import (
	"net/netip"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/gaissmai/bart"
)

// These constants limit how often the index over all lists is rebuilt. After a change of a list, the index is rebuilt
// if its age is at least indexMinAge. If its age is at least indexMaxAge, it is rebuilt even without a change, because
// lists become too old.
const (
	indexMinAge = time.Second
	indexMaxAge = time.Hour
)

// addressIndex finds the lists that contain an address.
type addressIndex struct {
	current  atomic.Pointer[listsByPrefix]
	building sync.Mutex
}

// listsByPrefix holds the URLs of the lists that have a prefix.
type listsByPrefix struct {
	version uint64
	built   time.Time
	urls    bart.Table[[]string]
}

// Find returns the URLs of the lists that contain an address, in no particular order. Find uses only lists that are
// fresh and complete. After a change of the lists, it rebuilds the index in the background and does not wait for the
// new index.
func (l *Lists) Find(a netip.Addr) (found []string) {
	s, now := l.index.current.Load(), l.options.Now()
	if s == nil || s.version != l.version.Load() && now.Sub(s.built) >= indexMinAge || now.Sub(s.built) >= indexMaxAge {
		if l.index.building.TryLock() {
			go func() {
				defer l.index.building.Unlock()
				l.index.current.Store(l.buildIndex())
			}()
		}
	}
	a = a.Unmap().WithZone("")
	if s == nil || !s.urls.Contains(a) { // Contains is faster, and most addresses are not on any list
		return nil
	}
	for _, urls := range s.urls.Supernets(netip.PrefixFrom(a, a.BitLen())) {
		for _, url := range urls {
			if !slices.Contains(found, url) {
				found = append(found, url)
			}
		}
	}
	return found
}

func (l *Lists) buildIndex() *listsByPrefix {
	s := &listsByPrefix{version: l.version.Load(), built: l.options.Now()}
	for _, source := range l.all() {
		if c := source.current.Load(); c.Incomplete == "" && c.isFresh(s.built) {
			s.add(source.url, c.prefixes)
		}
	}
	return s
}

func (s *listsByPrefix) add(url string, list *bart.Lite) {
	for p := range list.All() {
		s.urls.Modify(p, func(urls []string, _ bool) ([]string, bool) { return append(urls, url), false })
	}
}
