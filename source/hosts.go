// SPDX-License-Identifier: Apache-2.0

package source

import (
	"context"
	"errors"
	"fmt"
	"os"
	"sync"
	"time"

	"go.uber.org/zap"
	"golang.org/x/sync/semaphore"
	"golang.org/x/time/rate"
)

// Bounds of a Hosts. A client can make up hosts, so all that it can grow is bounded.
const (
	maxFiles  = 20_000 // beyond, the file that was not used for the longest goes
	maxMisses = 20_000
	// How many files are looked up in a second, and how long a request waits for its
	// turn. After that it fails: a wrong answer could be used by a crawler for a day.
	lookupsPerSecond = 2000
	maxLookupWait    = 500 * time.Millisecond
	// How many files are read at once, as each read that hangs in the kernel holds a
	// thread, and how long loading a file waits for its turn.
	maxReads    = 256
	maxReadWait = time.Second
)

var errBusy = errors.New("too many policies are being loaded at once")

// Hosts is the policies of a hostTemplate, such as /etc/policies/{host}.yaml. A file is loaded on the first request
// for a host that has it, and then watched. Hosts that share a file share its policy.
type Hosts struct {
	template *hostTemplate
	lookups  *rate.Limiter
	reads    *semaphore.Weighted
	sweeping *semaphore.Weighted
	closed   func() *Snapshot // for files that were never good
	counts   counters

	users // its mutex guards what follows

	files  map[string]*hostFile // by name, relative to the directory of the template
	misses map[string]*hostMiss
	dirErr error // why the directory cannot be read now
}

// closedText is the policy of a host whose file has an error and was never good: crawlers stay away, as they do while
// robots.txt is unreachable (RFC 9309 section 2.3.1.4).
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
		template: t, files: map[string]*hostFile{}, misses: map[string]*hostMiss{},
		lookups: rate.NewLimiter(lookupsPerSecond, lookupsPerSecond),
		reads:   semaphore.NewWeighted(maxReads), sweeping: semaphore.NewWeighted(1),
		closed: sync.OnceValue(func() *Snapshot {
			s, _ := Compile(t.name, []byte(closedText))
			s.PerHost = true
			s.catalogue.Store(nil) // it names no crawlers
			return s
		}),
	}
}

// Name returns the template as it is configured, made absolute.
func (h *Hosts) Name() string { return h.template.name }

func (h *Hosts) join(u *user) {
	h.mu.Lock()
	h.users.join(u, h.poll)
	h.mu.Unlock()
	if !u.watch {
		// Without watching, files are read when a configuration is loaded.
		h.Reload(context.Background())
	}
}

// options returns those of the newest store that runs, or is about to.
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
	info, err := soon(ctx, "the directory of the policy files", func(context.Context) (os.FileInfo, error) { return os.Stat(name) })
	switch {
	case err != nil:
		return fmt.Errorf("the directory of the policy files: %w", err)
	case !info.IsDir():
		return fmt.Errorf("%s is not a directory", name)
	}
	return nil
}

// setDirError records whether the directory can be read, and logs a change.
func (h *Hosts) setDirError(o *Options, err error) {
	h.mu.Lock()
	before := h.dirErr
	h.dirErr = err
	h.mu.Unlock()
	name := zap.String("policy", h.Name())
	switch {
	case err != nil && before == nil:
		o.Logger.Error("cannot read the directory of the policy files; loaded policies stay, and all other hosts are closed to crawlers",
			name, zap.Error(err))
	case err == nil && before != nil:
		o.Logger.Info("the directory of the policy files can be read again", name)
	}
}

// Get returns the policy of a host, as a request names it, nil if it has no file. An
// error means that the policy is not known now.
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
	f, miss := h.files[string(name)], h.misses[string(name)]
	h.mu.RUnlock()
	if miss != nil {
		miss.use()
		return nil, nil
	}
	now := time.Now()
	if f == nil {
		if err := h.waitForLookup(ctx); err != nil {
			return nil, err
		}
		var added bool
		if f, added = h.add(string(name), now); added {
			go h.load(f)
		}
	}
	if err := f.wait(ctx); err != nil {
		return nil, err
	}
	f.use(now)
	return f.Current(), nil
}

func (h *Hosts) waitForLookup(ctx context.Context) error {
	limited, cancel := context.WithTimeout(ctx, maxLookupWait)
	defer cancel()
	if err := h.lookups.Wait(limited); err != nil {
		if ctx.Err() != nil {
			return ctx.Err()
		}
		return errBusy
	}
	return nil
}

func (h *Hosts) add(name string, now time.Time) (f *hostFile, added bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if f := h.files[name]; f != nil {
		return f, false
	}
	if len(h.files) >= maxFiles {
		h.evict()
	}
	f = newHostFile(h, name)
	f.used.Store(now.Unix())
	h.files[name] = f
	delete(h.misses, name) // it may be out of date
	return f, true
}

func (h *Hosts) load(f *hostFile) {
	o := h.options()
	f.loadErr = errors.New("the policy of this host could not be loaded")
	defer func() {
		if f.loadErr != nil { // also after a panic: the next request tries again
			h.remove(f)
		}
		close(f.ready)
	}()
	defer o.recoverPanic()
	ctx, cancel := context.WithTimeout(context.Background(), maxReadWait)
	defer cancel()
	if h.reads.Acquire(ctx, 1) != nil {
		f.loadErr = errBusy
		return
	}
	defer h.reads.Release(1)
	h.open(o, f)
	f.loadErr = nil
}

// open reads a file for the first time. An error closes its hosts.
func (h *Hosts) open(o *Options, f *hostFile) {
	found, err := f.read(context.Background(), f.src, nil)
	if isMissing(err) {
		h.miss(f)
		return
	}
	out := f.apply(o, f.src, found, err, true)
	if out.Err == nil {
		return
	}
	f.current.Store(h.closed())
	if _, ok := errors.AsType[dirError](err); ok {
		h.setDirError(o, err)
	} else {
		o.Logger.Error("the policy of a host has an error; the host is closed to crawlers until it is fixed",
			zap.String("policy", f.Name), zap.Error(out.Err))
	}
}

// few is how many entries are looked at to find one that can go.
const few = 16

// evict removes the least recently used of a few files, but rather not one that has
// an error now: its last good version is nowhere else. It is called with mu held.
func (h *Hosts) evict() {
	var oldest *hostFile
	var at int64
	n := 0
	for _, f := range h.files {
		used := f.used.Load()
		if f.broken() {
			used += int64(24 * time.Hour / time.Second)
		}
		if oldest == nil || used < at {
			oldest, at = f, used
		}
		if n++; n == few {
			break
		}
	}
	delete(h.files, oldest.file)
}

func (h *Hosts) remove(f *hostFile) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.files[f.file] == f {
		delete(h.files, f.file)
	}
}

// miss remembers for a while that a file does not exist, unless it is being looked up
// again. If there are too many, others go, rather those that nobody asks for.
func (h *Hosts) miss(f *hostFile) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if now := h.files[f.file]; now != nil && now != f {
		return
	}
	delete(h.files, f.file)
	n := 0
	for name, m := range h.misses {
		if len(h.misses) < maxMisses {
			break
		}
		if n++; n >= few || !m.used.Load() {
			delete(h.misses, name)
		}
	}
	h.misses[f.file] = &hostMiss{since: time.Now()}
}
