// SPDX-License-Identifier: Apache-2.0

package verify

import (
	"encoding/binary"
	"net/netip"
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

// These constants limit how often the index over all lists is rebuilt. The index is rebuilt after a change of a list,
// and also without a change, because lists become too old.
const (
	indexMinAge = time.Second
	indexMaxAge = time.Hour
)

// addressIndex finds the lists that contain an address.
type addressIndex struct {
	current  atomic.Pointer[segments]
	building sync.Mutex
}

// segments holds sorted ranges of addresses that do not overlap. Each range has the lists that contain the range.
type segments struct {
	version uint64
	built   time.Time
	all     []segment
	// filter is a set of the keys of all addresses in lists. For most visitors, the key is not in the filter, so a
	// search is not necessary.
	filter [1 << 10]uint64
}

// filterKey returns a hash of the first 16 bits of an IPv4 address, or of the first 32 bits of an IPv6 address.
func filterKey(a netip.Addr) uint16 {
	if a.Is4() {
		b := a.As4()
		return binary.BigEndian.Uint16(b[:])
	}
	b := a.As16()
	return binary.BigEndian.Uint16(b[:]) ^ binary.BigEndian.Uint16(b[2:])
}

func (s *segments) mayContain(a netip.Addr) bool {
	key := filterKey(a)
	return s.filter[key>>6]>>(key&63)&1 != 0
}

func newSegments(version uint64, built time.Time, all []segment) *segments {
	s := &segments{version: version, built: built, all: all}
	for _, segment := range all {
		bits := 16
		if segment.from.Is6() {
			bits = 32
		}
		for a := segment.from; a.IsValid() && !segment.to.Less(a); {
			key := filterKey(a)
			s.filter[key>>6] |= 1 << (key & 63)
			block, _ := a.Prefix(bits)
			a = lastAddr(block).Next()
		}
	}
	return s
}

type segment struct {
	addrRange
	urls []string
}

// Find returns the URLs of the lists that contain an address, in no particular order. Find uses only lists that are
// fresh and complete. After a change of the lists, it rebuilds the index in the background and does not wait for the
// new index. The returned slice must not be changed.
func (l *Lists) Find(a netip.Addr) []string {
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
	if s == nil || !a.IsValid() || !s.mayContain(a) {
		return nil
	}
	i, found := slices.BinarySearchFunc(s.all, a, func(s segment, a netip.Addr) int { return s.from.Compare(a) })
	if !found {
		i--
	}
	if i < 0 || s.all[i].to.Less(a) {
		return nil
	}
	return s.all[i].urls
}

type listRange struct {
	addrRange
	url string
}

func (l *Lists) buildIndex() *segments {
	version, now := l.version.Load(), l.options.Now()
	var all []listRange
	for _, source := range l.all() {
		c := source.current.Load()
		if c.Incomplete != "" || !c.isFresh(now) {
			continue
		}
		for _, r := range c.ranges {
			all = append(all, listRange{r, source.url})
		}
	}
	return newSegments(version, now, flatten(all))
}

func flatten(all []listRange) []segment {
	slices.SortFunc(all, func(a, b listRange) int { return a.from.Compare(b.from) })
	var starts []netip.Addr // the first addresses of ranges, and the addresses that follow the end of a range
	for _, r := range all {
		starts = append(starts, r.from)
		if next := r.to.Next(); next.IsValid() {
			starts = append(starts, next)
		}
	}
	slices.SortFunc(starts, netip.Addr.Compare)
	starts = slices.Compact(starts)
	var out []segment
	var active []listRange
	next := 0
	for i, from := range starts {
		active = slices.DeleteFunc(active, func(r listRange) bool { return r.to.Less(from) })
		for ; next < len(all) && all[next].from == from; next++ {
			active = append(active, all[next])
		}
		if len(active) == 0 {
			continue
		}
		s := segment{addrRange: addrRange{from: from, to: active[0].to}}
		for _, r := range active {
			s.urls = append(s.urls, r.url)
			if r.to.Less(s.to) {
				s.to = r.to
			}
		}
		if i+1 < len(starts) {
			if last := starts[i+1].Prev(); last.Less(s.to) && last.Is4() == from.Is4() {
				s.to = last
			}
		}
		out = append(out, s)
	}
	return out
}
