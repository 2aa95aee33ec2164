// SPDX-License-Identifier: Apache-2.0

package source

import (
	"context"
	"errors"
	"fmt"
	"math"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"go.uber.org/zap"
	"golang.org/x/sync/semaphore"
	"golang.org/x/sync/singleflight"
	"golang.org/x/time/rate"

	"github.com/robotspolicy/caddy-robots-policy/site"
)

// Limits of a Hosts. Clients can invent hosts, so everything that grows with hosts is limited.
const (
	maxFiles  = 20_000 // if there are more, the least recently used file is dropped
	maxMisses = 20_000
	// lookupsPerSecond limits how many files are looked up. A request for a host whose file is not known waits for its
	// turn, but at most for the time maxLookupWait. Then the request fails. This is better than an answer without the
	// policy, because a crawler could use such an answer for a day.
	lookupsPerSecond = 2000
	maxLookupWait    = 500 * time.Millisecond
	// maxReads limits how many files are read at the same time, because a thread is blocked while a read hangs in the
	// kernel. If this many reads are running, the next one waits for at most the time maxReadWait.
	maxReads    = 256
	maxReadWait = time.Second
)

var errBusy = errors.New("too many policies are being loaded at once")

// Hosts holds the policies of hosts that have their own files. The configuration has a file name with a placeholder,
// such as /etc/policies/{host}.yaml. The first request for a host loads the host's file, which is watched from then on.
// Several hosts can have the same file, and then share the policy.
type Hosts struct {
	template *hostTemplate
	lookups  *rate.Limiter
	loading  singleflight.Group // loads in progress, by file name
	reads    *semaphore.Weighted
	sweeping *semaphore.Weighted
	closed   func() *Snapshot // returns the policy for hosts whose file never had a valid policy
	counts   counters

	users // its mutex protects the fields below

	files  map[string]*Document    // keys are file names relative to the directory of the template
	misses map[string]*atomic.Bool // names of files that do not exist; the value is true if requested since the last sweep
	dirErr error                   // why the directory cannot be read now
}

// closedText is the policy for a host whose file has an error and never had a valid policy. It disallows the whole host
// for all crawlers. Crawlers would do the same if they could not reach the robots.txt of the host (RFC 9309 section
// 2.3.1.4).
const closedText = `version: 1
rules:
  - name: the policy file of this host has an error
    for: everyone
    disallow:
      crawl: /
    intended: true
`

func newHosts(t *hostTemplate) *Hosts {
	return &Hosts{
		template: t, files: map[string]*Document{}, misses: map[string]*atomic.Bool{},
		lookups: rate.NewLimiter(lookupsPerSecond, lookupsPerSecond),
		reads:   semaphore.NewWeighted(maxReads), sweeping: semaphore.NewWeighted(1),
		closed: sync.OnceValue(func() *Snapshot {
			s, _ := Compile(t.name, []byte(closedText))
			s.Memory = site.NewMemory(true)
			s.catalog.Store(nil) // the policy does not name crawlers, so it does not depend on the catalog
			return s
		}),
	}
}

// Name returns the template as an absolute path.
func (h *Hosts) Name() string { return h.template.name }

func (h *Hosts) join(u *user) {
	h.mu.Lock()
	h.users.join(u, h.poll)
	h.mu.Unlock()
	if !u.watch {
		// For a store that does not watch, the changed files are read only now, when its configuration is loaded.
		h.Reload(context.Background())
	}
}

// options returns the options of the newest store in a running configuration or, if none is running, of the oldest.
func (h *Hosts) options() *Options {
	if u, _ := h.active(); u != nil {
		return u.Options
	}
	h.mu.RLock()
	defer h.mu.RUnlock()
	if len(h.all) > 0 {
		return h.all[0].Options
	}
	return &Options{Logger: zap.NewNop()}
}

// checkDir returns an error unless name is a directory.
func checkDir(ctx context.Context, name string) error {
	info, err := within(ctx, readTimeout, "the directory of the policy files", func(context.Context) (os.FileInfo, error) { return os.Stat(name) })
	switch {
	case err != nil:
		return fmt.Errorf("reading the directory of the policy files: %w", err)
	case !info.IsDir():
		return fmt.Errorf("%s is not a directory", name)
	}
	return nil
}

// openDir opens the directory of the template. It logs when opening begins to fail, and when it works again.
func (h *Hosts) openDir(o *Options) (*os.Root, error) {
	root, err := os.OpenRoot(h.template.dir)
	h.mu.Lock()
	before := h.dirErr
	h.dirErr = err
	h.mu.Unlock()
	name := zap.String("policy", h.Name())
	switch {
	case err != nil && before == nil:
		o.Logger.Error("cannot read the directory of the policy files; loaded policies stay in force, and all other hosts are disallowed for all crawlers",
			name, zap.Error(err))
	case err == nil && before != nil:
		o.Logger.Info("the directory of the policy files can be read again", name)
	}
	return root, err
}

// Get returns the policy of a host, or nil if the host has no file. It returns an error if the policy cannot be
// determined now.
func (h *Hosts) Get(ctx context.Context, host string) (*Snapshot, error) {
	host, ok := cleanHost(host)
	if !ok {
		return nil, nil
	}
	var buf [128]byte
	name, ok := h.template.appendFile(buf[:0], host)
	if !ok {
		return nil, nil
	}
	h.mu.RLock()
	d, miss := h.files[string(name)], h.misses[string(name)]
	h.mu.RUnlock()
	if miss != nil {
		miss.Store(true)
		return nil, nil
	}
	if d == nil {
		var err error
		if d, err = h.load(ctx, string(name)); d == nil {
			return nil, err
		}
	}
	if now := time.Now().Unix(); d.used.Load() != now {
		d.used.Store(now)
	}
	return d.Current(), nil
}

// load loads a file for the first request that needs it. Requests that arrive at the same time share the result. It
// returns nil if the file does not exist.
func (h *Hosts) load(ctx context.Context, name string) (*Document, error) {
	ctx, cancel := context.WithTimeout(ctx, readTimeout)
	defer cancel()
	select {
	case r := <-h.loading.DoChan(name, func() (any, error) {
		var d *Document
		// load returns this error if loading panics.
		o, err := h.options(), errors.New("the policy of this host could not be loaded")
		func() {
			defer o.recoverPanic()
			d, err = h.lookUp(o, name)
		}()
		return d, err
	}):
		return r.Val.(*Document), r.Err
	case <-ctx.Done():
		return nil, fmt.Errorf("loading the policy of this host: %w", ctx.Err())
	}
}

// lookUp reads a file for the first time. If the file exists, lookUp keeps its document in h.files; if not, it keeps
// the name in h.misses. If the file has an error, the hosts with this file get the policy of closedText.
func (h *Hosts) lookUp(o *Options, name string) (*Document, error) {
	h.mu.RLock()
	known, miss := h.files[name], h.misses[name]
	h.mu.RUnlock()
	if known != nil || miss != nil {
		return known, nil // another lookup has just finished
	}
	if !h.waitForTurn() {
		return nil, errBusy
	}
	defer h.reads.Release(1)
	f := newHostDocument(h, name)
	root, err := h.openDir(o)
	if err != nil {
		f.setError(err, false)
		f.current.Store(h.closed())
		h.add(name, f)
		return f, nil
	}
	defer root.Close()
	found, err := f.read(context.WithValue(context.Background(), rootKey{}, root), f.file, nil)
	if isMissing(err) {
		h.miss(name)
		return nil, nil
	}
	if out := f.apply(o, f.file, found, err, true); out.Err != nil {
		f.current.Store(h.closed())
		o.Logger.Error("the policy of a host has an error; the host is disallowed for crawlers until the policy is fixed",
			zap.String("policy", f.Name), zap.Error(out.Err))
	}
	h.add(name, f)
	return f, nil
}

// waitForTurn waits until a file may be looked up, and acquires the semaphore h.reads. It returns false if that takes
// too long.
func (h *Hosts) waitForTurn() bool {
	limited, cancel := context.WithTimeout(context.Background(), maxLookupWait)
	defer cancel()
	if h.lookups.Wait(limited) != nil {
		return false
	}
	ctx, cancel := context.WithTimeout(context.Background(), maxReadWait)
	defer cancel()
	return h.reads.Acquire(ctx, 1) == nil
}

func (h *Hosts) add(name string, d *Document) {
	d.used.Store(time.Now().Unix()) // so that the document is not dropped at once
	h.mu.Lock()
	defer h.mu.Unlock()
	if len(h.files) >= maxFiles {
		h.evict()
	}
	h.files[name] = d
}

// few is the number of cache entries to compare when one of them must be dropped.
const few = 16

// evict examines a few files, and drops the one that has not been used for the longest time. A file with an error is
// dropped only if it was unused for a day longer than the others, because its last good version exists only in memory.
// The caller must hold mu.
func (h *Hosts) evict() {
	var oldest string
	at := int64(math.MaxInt64)
	n := 0
	for name, d := range h.files {
		used := d.used.Load()
		if d.broken() {
			used += int64(24 * time.Hour / time.Second)
		}
		if used < at {
			oldest, at = name, used
		}
		if n++; n == few {
			break
		}
	}
	delete(h.files, oldest)
}

// miss adds the file name to h.misses, because the file does not exist. If h.misses is full, miss first removes some
// names, preferably names without a second request.
func (h *Hosts) miss(name string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	n := 0
	for other, used := range h.misses {
		if len(h.misses) < maxMisses {
			break
		}
		if n++; n >= few || !used.Load() {
			delete(h.misses, other)
		}
	}
	h.misses[name] = new(atomic.Bool)
}
