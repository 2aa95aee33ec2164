// SPDX-License-Identifier: Apache-2.0

package robotspolicy

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/modules/caddyhttp"
	"go.uber.org/zap"

	"github.com/robotspolicy/caddy-robots-policy/internal/policyname"
)

// The limits of a hostSet. Past maxHosts the host that was not asked for the
// longest goes for each that comes.
const (
	maxHosts  = 20_000
	maxMisses = 20_000
	// Files are looked for so often in a second at most, as many requests wait
	// for that, and what comes on top is turned away: a wrong answer could be kept
	// by a crawler for a day.
	lookupsPerSecond = 2000
	maxWaiting       = 1000
	// So many files are read at once. Each of a network that is away holds a thread.
	maxReading = 64
	// How long a file may have to wait for others that are being read.
	maxQueueing = time.Second
)

// hostSet is the policies of a policyname.HostTemplate. They are read when they are first
// asked for, and then followed like any document.
type hostSet struct {
	template *policyname.HostTemplate
	lookups  bucket
	reading  chan struct{} // holds those that read
	sweeping turn
	closed   func() *live // for hosts whose file is wrong and was never good

	mu      sync.RWMutex
	entries map[string]*hostEntry
	misses  map[string]*hostMiss
	dirErr  error  // why the directory cannot be read now
	gone    counts // of entries that are no more
	readers []*hostReader
	stop    context.CancelFunc
	woken   chan struct{}
}

// hostReader is a handler that uses a hostSet.
type hostReader struct {
	follow   bool
	interval time.Duration
	teller   *teller
	merges   bool // robots.txt
}

// merges reports whether a site merges its upstream's robots.txt.
func (s *hostSet) merges() bool {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return slices.ContainsFunc(s.readers, func(r *hostReader) bool { return r.merges })
}

// hostMiss is a host that has no file.
type hostMiss struct {
	since time.Time
	asked atomic.Bool // for it, since its file was last looked for
}

// hostEntry is the policy of one host.
type hostEntry struct {
	host     string
	ready    chan struct{} // closed when the other fields are set
	err      error
	missing  bool
	document *document
	live     atomic.Pointer[live]
	used     atomic.Int64 // in Unix seconds
}

// Destruct implements caddy.Destructor.
func (s *hostSet) Destruct() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.stop != nil {
		s.stop()
		s.stop = nil
	}
	return nil
}

// closedText is served for a host whose file is wrong and was never good:
// crawlers come back later, as they do when robots.txt cannot be had (RFC 9309
// section 2.3.1.4).
const closedText = `version: 1
rules:
  - name: the policy file of this host has an error
    for: everyone
    disallow:
      crawl: /
    intended: true
`

// find returns the policy of a host, or nil if it has no file. Its error is the
// answer to a request.
func (s *hostSet) find(ctx context.Context, name string) (*live, error) {
	host, ok := policyname.CleanHost(name)
	if !ok {
		return nil, nil
	}
	now := time.Now()
	s.mu.RLock()
	e, miss := s.entries[host], s.misses[host]
	s.mu.RUnlock()
	if miss != nil {
		if !miss.asked.Load() {
			miss.asked.Store(true)
		}
		return nil, nil
	}
	if e == nil {
		file, ok := s.template.Expand(host)
		if !ok {
			return nil, nil
		}
		if err := s.lookups.wait(ctx); err != nil {
			return nil, caddyhttp.Error(http.StatusServiceUnavailable, err)
		}
		var first bool
		if e, first = s.add(host, now); first {
			go s.load(e, file)
		}
	}
	if err := e.wait(ctx); err != nil {
		return nil, caddyhttp.Error(http.StatusServiceUnavailable, err)
	}
	if e.err != nil {
		return nil, caddyhttp.Error(http.StatusServiceUnavailable, e.err)
	}
	if e.missing {
		return nil, nil
	}
	if sec := now.Unix(); e.used.Load() != sec {
		e.used.Store(sec)
	}
	return e.live.Load(), nil
}

// wait waits until the entry is loaded, but not as long as a file may hang.
func (e *hostEntry) wait(ctx context.Context) error {
	if e.isReady() {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, readTimeout)
	defer cancel()
	select {
	case <-e.ready:
		return nil
	case <-ctx.Done():
		return fmt.Errorf("reading the policy of this host: %w", ctx.Err())
	}
}

func (e *hostEntry) isReady() bool {
	select {
	case <-e.ready:
		return true
	default:
		return false
	}
}

// add returns the entry of a host, and whether it is new and to be loaded.
func (s *hostSet) add(host string, now time.Time) (e *hostEntry, first bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if e := s.entries[host]; e != nil {
		return e, false
	}
	if len(s.entries) >= maxHosts {
		s.evict()
	}
	e = &hostEntry{host: host, ready: make(chan struct{})}
	e.used.Store(now.Unix())
	s.entries[host] = e
	return e, true
}

// evict makes room. Of a few entries, the one that was not asked for the longest
// goes, but rather not one whose file is wrong now: the policy that was good is
// nowhere else.
func (s *hostSet) evict() {
	const few = 16
	var oldest *hostEntry
	var at int64
	n := 0
	for _, e := range s.entries {
		age := e.used.Load()
		if e.isReady() && e.document != nil && e.document.status().err != nil {
			age += int64(24 * time.Hour / time.Second)
		}
		if oldest == nil || age < at {
			oldest, at = e, age
		}
		if n++; n == few {
			break
		}
	}
	s.drop(oldest)
}

// drop forgets an entry. It is called with mu held.
func (s *hostSet) drop(e *hostEntry) {
	if s.entries[e.host] != e {
		return
	}
	delete(s.entries, e.host)
	if e.isReady() && e.document != nil {
		c := e.document.status().counts
		s.gone.Taken += c.Taken
		s.gone.Refused += c.Refused
	}
}

// load reads the policy of a new entry.
func (s *hostSet) load(e *hostEntry, file string) {
	t := s.teller()
	e.err = errors.New("the policy of this host could not be read")
	defer func() {
		if e.err != nil { // also after a panic: the next request tries again
			s.mu.Lock()
			s.drop(e)
			s.mu.Unlock()
		}
		close(e.ready)
	}()
	defer t.recover()
	patience := time.NewTimer(maxQueueing)
	defer patience.Stop()
	select {
	case s.reading <- struct{}{}:
		defer func() { <-s.reading }()
	case <-patience.C:
		e.err = errBusy
		return
	}
	s.open(e, file, t)
}

// open opens the document of a new entry.
func (s *hostSet) open(e *hostEntry, file string, t *teller) {
	src := &hostSource{fileSource: fileSource{path: s.template.Dir() + file}, template: s.template, file: file}
	d := &document{key: src.key(), name: src.path}
	r := &reader{src: src, follow: true, interval: fileInterval, teller: t, take: e.live.Store}
	found, err := src.read(context.Background(), nil)
	d.checked = time.Now()
	if isMissing(err) {
		e.err, e.missing = nil, true
		s.miss(e)
		return
	}
	var l *live
	if err == nil {
		l, err = newLive(src.name(), found.data)
	}
	if err != nil {
		if l = s.closed(); l == nil {
			return
		}
		d.note(err)
		if isOfDirectory(err) {
			s.directory(t, err)
		} else {
			t.logger.Error("the policy of a host is wrong; crawlers are told to stay away from it until it is mended",
				zap.String("policy", src.name()), zap.Error(err))
		}
	} else {
		d.mark = found.mark
	}
	d.current = l
	d.readers = []*reader{r}
	r.give(l)
	e.document, e.err = d, nil
}

// directory notes whether the directory can be read, and tells when that changes.
func (s *hostSet) directory(t *teller, err error) {
	s.mu.Lock()
	before := s.dirErr
	s.dirErr = err
	s.mu.Unlock()
	name := zap.String("policy", s.template.String())
	switch {
	case err != nil && before == nil:
		t.logger.Error("the directory of the policy files cannot be read; hosts keep the policies that they have, and crawlers are told to stay away from others",
			name, zap.Error(err))
	case err == nil && before != nil:
		t.logger.Info("the directory of the policy files can be read again", name)
	}
}

// miss remembers for a while that a host has no file. Past maxMisses another has
// to go, rather one that nobody asks for.
func (s *hostSet) miss(e *hostEntry) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.drop(e)
	const few = 16
	n := 0
	for host, m := range s.misses {
		if len(s.misses) < maxMisses {
			break
		}
		if n++; n >= few || !m.asked.Load() {
			delete(s.misses, host)
		}
	}
	s.misses[e.host] = &hostMiss{since: time.Now()}
}

// teller is that of the newest configuration that runs, or is about to.
func (s *hostSet) teller() *teller {
	s.mu.RLock()
	defer s.mu.RUnlock()
	for i := len(s.readers) - 1; i >= 0; i-- {
		if s.readers[i].teller.running() || i == 0 {
			return s.readers[i].teller
		}
	}
	return &teller{logger: zap.NewNop()}
}

// newHostSet is for caddy.UsagePool.
func newHostSet(t *policyname.HostTemplate) (caddy.Destructor, error) {
	return &hostSet{
		template: t, entries: map[string]*hostEntry{}, misses: map[string]*hostMiss{}, lookups: bucket{rate: lookupsPerSecond},
		reading: make(chan struct{}, maxReading),
		closed: sync.OnceValue(func() *live {
			l, _ := newLive(t.String(), []byte(closedText))
			return l
		}),
	}, nil
}
