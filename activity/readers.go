// SPDX-License-Identifier: Apache-2.0

package activity

import (
	"hash/maphash"
	"net/netip"
	"path"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

// ReaderName is what the clients are counted by that [Readers] finds. Their User-Agent
// is that of some browser.
const ReaderName = "(browser that read robots.txt)"

const (
	// manyPages is how many pages, within period of reading robots.txt, are more than a
	// person reads.
	manyPages = 30
	period    = time.Hour
	// maxReaders bounds how many readers of robots.txt are remembered.
	maxReaders = 4096
)

// Readers finds automated clients that call themselves browsers, by what they do: they
// read robots.txt, which browsers do not by themselves, and then many pages. It is a
// guess, good enough for counting: a person who does the same is taken for one too. The
// zero value is ready for use.
type Readers struct {
	any     atomic.Bool // there are readers
	mu      sync.Mutex
	rotated time.Time
	recent  map[client]*reader // seen since then
	earlier map[client]*reader // seen in the period before
}

// Any reports whether any reader of robots.txt is remembered. While there is none, no
// request needs to be counted.
func (w *Readers) Any() bool { return w.any.Load() }

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
func (w *Readers) ReadsRobots(address, agent string, now time.Time) {
	c, ok := newClient(address, agent)
	if !ok {
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.rotate(now)
	if w.find(c, now) == nil {
		w.recent[c] = &reader{since: now, last: now}
		w.any.Store(true)
	}
}

// rotate forgets the clients that were not seen for a period, or the earlier half of
// them when there are too many.
func (w *Readers) rotate(now time.Time) {
	if now.Sub(w.rotated) < period && len(w.recent) < maxReaders/2 {
		return
	}
	w.earlier, w.recent, w.rotated = w.recent, map[client]*reader{}, now
	w.any.Store(len(w.earlier) > 0)
}

// find returns a client that read robots.txt, unless that is too long ago. One that
// has been found to crawl stays so until it has been quiet for as long.
func (w *Readers) find(c client, now time.Time) *reader {
	r := w.recent[c]
	if r == nil {
		r = w.earlier[c]
		delete(w.earlier, c)
	}
	if r == nil {
		return nil
	}
	if now.Sub(r.since) >= period && (r.pages <= manyPages || now.Sub(r.last) >= period) {
		delete(w.recent, c)
		return nil
	}
	w.recent[c] = r
	return r
}

// Counts counts a request, and reports whether its client crawls.
func (w *Readers) Counts(address, agent string, page bool, now time.Time) bool {
	c, ok := newClient(address, agent)
	if !ok {
		return false
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.rotate(now)
	r := w.find(c, now)
	if r == nil {
		return false
	}
	r.last = now
	if page {
		r.pages++
	}
	return r.pages > manyPages
}

// Crawls reports whether a client has been found to crawl.
func (w *Readers) Crawls(address, agent string, now time.Time) bool {
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
