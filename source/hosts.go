// SPDX-License-Identifier: Apache-2.0

package source

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/caddyserver/caddy/v2"
	"go.uber.org/zap"
	"golang.org/x/sync/semaphore"
	"golang.org/x/time/rate"

	"github.com/robotspolicy/caddy-robots-policy/robotstxt"
)

// Bounds of a Hosts. A client can make up hosts, so all that it can grow is bounded.
const (
	maxFiles  = 20_000 // beyond, the file that was not used for the longest goes
	maxMisses = 20_000
	// How many files are looked up in a second, and how long a request waits for its
	// turn. After that it fails: a wrong answer could be used by a crawler for a day.
	lookupsPerSecond = 2000
	maxLookupWait    = 500 * time.Millisecond
)

// Hosts is the policies of a HostTemplate, such as
// /etc/policies/{host}.yaml. A file is loaded on the first request for a host that
// has it, and then watched. Hosts that share a file share its policy.
type Hosts struct {
	template *HostTemplate
	lookups  *rate.Limiter
	lanes    *lanes
	sweeping *semaphore.Weighted
	closed   func() *Snapshot // for files that were never good

	mu          sync.RWMutex
	files       map[string]*hostFile // by name, relative to the directory of the template
	misses      map[string]*hostMiss
	dirErr      error  // why the directory cannot be read now
	removed     Counts // of files that are no longer in the map
	subscribers []*hostSubscriber
	stop        context.CancelFunc
	woken       chan struct{}
}

// hostSubscriber is the use of a Hosts by one handler.
type hostSubscriber struct {
	watch    bool
	interval time.Duration
	notifier *notifier
	upstream func(host string) *robotstxt.File // nil: the handler merges no robots.txt
}

// closedText is the policy of a host whose file has an error and was never good:
// crawlers stay away, as they do while robots.txt is unreachable (RFC 9309 section
// 2.3.1.4).
const closedText = `version: 1
rules:
  - name: the policy file of this host has an error
    for: everyone
    disallow:
      crawl: /
    intended: true
`

// newHosts is for caddy.UsagePool.
func newHosts(t *HostTemplate) (caddy.Destructor, error) {
	return &Hosts{
		template: t, files: map[string]*hostFile{}, misses: map[string]*hostMiss{},
		lookups: rate.NewLimiter(lookupsPerSecond, lookupsPerSecond), lanes: newLanes(), sweeping: semaphore.NewWeighted(1),
		closed: sync.OnceValue(func() *Snapshot {
			s, _ := Compile(t.String(), []byte(closedText))
			s.PerHost = true
			s.catalogue.Store(nil) // it names no crawlers
			return s
		}),
	}, nil
}

// Destruct implements caddy.Destructor.
func (h *Hosts) Destruct() error {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.stop != nil {
		h.stop()
		h.stop = nil
	}
	return nil
}

// Name returns the template as it is configured, made absolute.
func (h *Hosts) Name() string { return h.template.String() }

// Merges reports whether a handler merges the upstream's robots.txt.
func (h *Hosts) Merges() bool { return len(h.upstreams()) > 0 }

// Upstream returns the robots.txt of a host's upstream as a handler fetched it last, or
// nil.
func (h *Hosts) Upstream(host string) *robotstxt.File { return h.upstreams().last(host) }

func (h *Hosts) upstreams() (all upstreams) {
	h.mu.RLock()
	defer h.mu.RUnlock()
	for _, r := range h.subscribers {
		if r.upstream != nil {
			all = append(all, r.upstream)
		}
	}
	return all
}

// leave ends what join began.
func (h *Hosts) leave(r *hostSubscriber) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.subscribers = slices.DeleteFunc(h.subscribers, func(o *hostSubscriber) bool { return o == r })
	if h.stop != nil && h.interval() == 0 {
		h.stop()
		h.stop = nil
	}
}

// interval returns the shortest interval that a handler wants, 0 if none watches. It
// is called with mu held.
func (h *Hosts) interval() time.Duration {
	var shortest time.Duration
	for _, r := range h.subscribers {
		if r.watch && (shortest == 0 || r.interval < shortest) {
			shortest = r.interval
		}
	}
	return shortest
}

// notifier returns that of the newest configuration that runs, or is about to.
func (h *Hosts) notifier() *notifier {
	h.mu.RLock()
	defer h.mu.RUnlock()
	for i, r := range slices.Backward(h.subscribers) {
		if r.notifier.running() || i == 0 {
			return r.notifier
		}
	}
	return &notifier{logger: zap.NewNop()}
}

// setDirError records whether the directory can be read, and logs a change.
func (h *Hosts) setDirError(n *notifier, err error) {
	h.mu.Lock()
	before := h.dirErr
	h.dirErr = err
	h.mu.Unlock()
	name := zap.String("policy", h.template.String())
	switch {
	case err != nil && before == nil:
		n.logger.Error("cannot read the directory of the policy files; loaded policies stay, and all other hosts are closed to crawlers",
			name, zap.Error(err))
	case err == nil && before != nil:
		n.logger.Info("the directory of the policy files can be read again", name)
	}
}

// HostsStatus describes a Hosts.
type HostsStatus struct {
	Loaded, Broken, Missing int   // files; Broken ones are loaded but have an error now
	Err                     error // of the directory
	Counts                  Counts
	Interval                time.Duration // 0: nobody is watching
	Subscribers             int
}

// Status returns the present status.
func (h *Hosts) Status() HostsStatus {
	h.mu.RLock()
	defer h.mu.RUnlock()
	s := HostsStatus{
		Loaded: len(h.files), Missing: len(h.misses), Err: h.dirErr, Counts: h.removed,
		Interval: h.interval(), Subscribers: len(h.subscribers),
	}
	for _, f := range h.files {
		if !f.isReady() || f.document == nil {
			continue
		}
		d := f.document.Status()
		s.Counts.Applied += d.Counts.Applied
		s.Counts.Rejected += d.Counts.Rejected
		if d.Err != nil {
			s.Broken++
		}
	}
	return s
}

// AllHosts returns the per-host policies in use, in the order of their names.
func AllHosts() (all []*Hosts) {
	pool.Range(func(_, v any) bool {
		if h, ok := v.(*Hosts); ok {
			all = append(all, h)
		}
		return true
	})
	slices.SortFunc(all, func(a, b *Hosts) int {
		if a.Name() < b.Name() {
			return -1
		}
		return 1
	})
	return all
}

// add returns the entry of a file, and whether it is new and must be loaded.
func (h *Hosts) add(name string, now time.Time) (f *hostFile, added bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if f := h.files[name]; f != nil {
		return f, false
	}
	if len(h.files) >= maxFiles {
		h.evict()
	}
	f = &hostFile{name: name, ready: make(chan struct{})}
	f.used.Store(now.Unix())
	h.files[name] = f
	return f, true
}

// evict removes the least recently used of a few files, but rather not one that has
// an error now: its last good version is nowhere else. It is called with mu held.
func (h *Hosts) evict() {
	const few = 16
	var oldest *hostFile
	var at int64
	n := 0
	for _, f := range h.files {
		used := f.used.Load()
		if f.isReady() && f.document != nil && f.document.Status().Err != nil {
			used += int64(24 * time.Hour / time.Second)
		}
		if oldest == nil || used < at {
			oldest, at = f, used
		}
		if n++; n == few {
			break
		}
	}
	h.remove(oldest)
}

// remove forgets a file. It is called with mu held.
func (h *Hosts) remove(f *hostFile) {
	if h.files[f.name] != f {
		return
	}
	delete(h.files, f.name)
	if f.isReady() && f.document != nil {
		c := f.document.Status().Counts
		h.removed.Applied += c.Applied
		h.removed.Rejected += c.Rejected
	}
}

// miss remembers for a while that a file does not exist. If there are too many,
// others go, rather those that nobody asks for.
func (h *Hosts) miss(f *hostFile) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.remove(f)
	const few = 16
	n := 0
	for name, m := range h.misses {
		if len(h.misses) < maxMisses {
			break
		}
		if n++; n >= few || !m.used.Load() {
			delete(h.misses, name)
		}
	}
	h.misses[f.name] = &hostMiss{since: time.Now()}
}
