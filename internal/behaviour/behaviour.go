// SPDX-License-Identifier: Apache-2.0

// Package behaviour finds automated clients that call themselves browsers, by what they
// do: they read robots.txt, which browsers do not by themselves, and then many pages.
//
// It is a guess, good enough for counting: a person who looks at robots.txt and then at
// many pages is taken for one too.
package behaviour

import (
	"hash/maphash"
	"net/netip"
	"path"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

// Name is what the clients are counted by that are found here. Their User-Agent is that
// of some browser.
const Name = "(browser that read robots.txt)"

const (
	// manyPages is how many pages, within period of reading robots.txt, are more than a
	// person reads.
	manyPages = 30
	period    = time.Hour
	// maxReaders bounds how many readers of robots.txt are remembered.
	maxReaders = 4096
)

// Watch remembers which clients read robots.txt, and counts their pages. The zero value
// is ready for use.
type Watch struct {
	any     atomic.Bool // there are readers
	mu      sync.Mutex
	recent  map[client]*reader
	earlier map[client]*reader // the previous recent
}

// client is an address, or for IPv6 the network of a subscriber, with a User-Agent.
type client struct {
	network netip.Prefix
	agent   uint64
}

// reader is a client that read robots.txt.
type reader struct {
	since, last time.Time
	pages       int
}

var seed = maphash.MakeSeed()

func newClient(address, agent string) (client, bool) {
	a, err := netip.ParseAddr(address)
	if err != nil {
		return client{}, false
	}
	a = a.Unmap().WithZone("")
	bits := 32
	if a.Is6() {
		bits = 64
	}
	p, err := a.Prefix(bits)
	return client{p, maphash.String(seed, agent)}, err == nil
}

// ReadsRobots notes that a client read robots.txt.
func (w *Watch) ReadsRobots(address, agent string, now time.Time) {
	c, ok := newClient(address, agent)
	if !ok {
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.reader(c, now) != nil {
		return
	}
	if w.recent == nil || len(w.recent) >= maxReaders/2 {
		w.earlier, w.recent = w.recent, map[client]*reader{}
	}
	w.recent[c] = &reader{since: now, last: now}
	w.any.Store(true)
}

// reader returns a client that read robots.txt, unless that is too long ago. One that
// has been found to crawl stays so until it has been quiet for as long.
func (w *Watch) reader(c client, now time.Time) *reader {
	for _, m := range [...]map[client]*reader{w.recent, w.earlier} {
		if r := m[c]; r != nil {
			if now.Sub(r.since) < period || r.pages > manyPages && now.Sub(r.last) < period {
				return r
			}
			delete(m, c)
		}
	}
	return nil
}

// Counts counts a request, and reports whether its client crawls.
func (w *Watch) Counts(address, agent string, page bool, now time.Time) bool {
	if !w.any.Load() {
		return false
	}
	c, ok := newClient(address, agent)
	if !ok {
		return false
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	r := w.reader(c, now)
	if r == nil {
		w.any.Store(len(w.recent)+len(w.earlier) > 0)
		return false
	}
	r.last = now
	if page {
		r.pages++
	}
	return r.pages > manyPages
}

// Crawls reports whether a client has been found to crawl.
func (w *Watch) Crawls(address, agent string, now time.Time) bool {
	return w.Counts(address, agent, false, now)
}

// IsPage reports whether a request is for a page, as far as its path and the field
// Sec-Fetch-Dest say, and not for what a browser fetches for a page, such as images.
func IsPage(requestPath, secFetchDest string) bool {
	if secFetchDest != "" {
		return secFetchDest == "document"
	}
	plain, _, _ := strings.Cut(requestPath, "?")
	switch strings.ToLower(path.Ext(plain)) {
	case "", ".html", ".htm", ".xhtml", ".shtml", ".php", ".asp", ".aspx", ".jsp":
		return true
	}
	return false
}
