// SPDX-License-Identifier: Apache-2.0

package robotspolicy

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"os"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/modules/caddyhttp"
	"go.uber.org/zap"
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
)

// hostSet is the policies of a hostTemplate. They are read when they are first
// asked for, and then followed like any document.
type hostSet struct {
	template *hostTemplate
	lookups  bucket

	mu      sync.RWMutex
	entries map[string]*hostEntry
	misses  map[string]time.Time
	gone    counts // of entries that are no more
	readers []*hostReader
	stop    context.CancelFunc
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

// hostSource is the file of a host.
type hostSource struct {
	fileSource
	template *hostTemplate
	file     string // below the directory of the template
}

func (h *hostSource) keeps() keepPlace { return keepNowhere }

type rootKey struct{}

// read reads the file without leaving the directory of the template, whatever
// symbolic links there are in it.
func (h *hostSource) read(ctx context.Context, last any) (reading, error) {
	root, ok := ctx.Value(rootKey{}).(*os.Root)
	if !ok {
		var err error
		if root, err = os.OpenRoot(h.template.dir); err != nil {
			return reading{}, fmt.Errorf("the directory of the policy files: %w", notMissing{err})
		}
		defer root.Close()
	}
	info, err := root.Stat(h.file)
	if err != nil {
		return reading{}, err
	}
	if err := plain(h.path, info); err != nil {
		return reading{}, err
	}
	if m, ok := last.(fileMark); ok && m.same(info) {
		return reading{}, errUnchanged
	}
	file, err := root.Open(h.file)
	if err != nil {
		return reading{}, err
	}
	defer file.Close()
	return readOpen(file)
}

// notMissing is an error that does not mean that a host has no file.
type notMissing struct{ error }

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
	host, ok := fileHost(name)
	if !ok {
		return nil, nil
	}
	now := time.Now()
	s.mu.RLock()
	e := s.entries[host]
	_, missing := s.misses[host]
	s.mu.RUnlock()
	if missing {
		return nil, nil
	}
	if e == nil {
		file, ok := s.template.expand(host)
		if !ok {
			return nil, nil
		}
		if err := s.lookups.wait(ctx); err != nil {
			return nil, caddyhttp.Error(http.StatusServiceUnavailable, err)
		}
		var first bool
		if e, first = s.add(host, now); first {
			s.load(e, file)
		}
	}
	select {
	case <-e.ready:
	case <-ctx.Done():
		return nil, caddyhttp.Error(http.StatusServiceUnavailable, ctx.Err())
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
		if e.document != nil && e.document.status().err != nil {
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
	if e.document != nil {
		c := e.document.status().counts
		s.gone.Taken += c.Taken
		s.gone.Refused += c.Refused
	}
}

// load reads the policy of a new entry.
func (s *hostSet) load(e *hostEntry, file string) {
	e.err = errors.New("the policy of this host could not be read")
	defer func() {
		if e.err != nil { // after a panic: the next request tries again
			s.mu.Lock()
			s.drop(e)
			s.mu.Unlock()
		}
		close(e.ready)
	}()
	t := s.teller()
	src := &hostSource{fileSource: fileSource{path: s.template.dir + file}, template: s.template, file: file}
	d := &document{key: src.key(), name: src.path}
	r := &reader{src: src, follow: true, interval: fileInterval, teller: t, take: e.live.Store}
	found, err := d.read(context.Background(), r, nil)
	if _, not := errors.AsType[notMissing](err); errors.Is(err, fs.ErrNotExist) && !not {
		e.err, e.missing = nil, true
		s.miss(e)
		return
	}
	var l *live
	if err == nil {
		l, err = newLive(src.name(), found.data)
	}
	if err != nil {
		if l, _ = newLive(src.name(), []byte(closedText)); l == nil {
			return
		}
		d.note(err)
		t.logger.Error("the policy of a host is wrong; crawlers are told to stay away from it until it is mended",
			zap.String("policy", src.name()), zap.Error(err))
	} else {
		d.mark = found.mark
	}
	d.current = l
	d.readers = []*reader{r}
	r.give(l)
	e.document, e.err = d, nil
}

// miss remembers for a while that a host has no file.
func (s *hostSet) miss(e *hostEntry) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.drop(e)
	for host := range s.misses {
		if len(s.misses) < maxMisses {
			break
		}
		delete(s.misses, host)
	}
	s.misses[e.host] = time.Now()
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
func newHostSet(t *hostTemplate) (caddy.Destructor, error) {
	return &hostSet{
		template: t, entries: map[string]*hostEntry{}, misses: map[string]time.Time{},
		lookups: bucket{rate: lookupsPerSecond},
	}, nil
}
