// SPDX-License-Identifier: Apache-2.0

package source

import (
	"context"
	"errors"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"go.uber.org/zap"
)

// poll sweeps once and returns when to sweep again.
func (h *Hosts) poll(ctx context.Context) time.Duration {
	h.mu.RLock()
	wait := max(h.interval(), startupPoll)
	h.mu.RUnlock()
	if h.sweep(ctx, false) {
		wait = min(wait, fileSettle)
	}
	return wait
}

// Reload applies what is new in all files, without waiting for it to settle. It
// returns false if that takes too long; files that were read by then are applied.
func (h *Hosts) Reload(ctx context.Context) bool {
	ctx, cancel := context.WithTimeout(ctx, readTimeout)
	defer cancel()
	return within(ctx, "the directory", func() error {
		h.sweep(ctx, true)
		return ctx.Err()
	}) == nil
}

// sweep polls all files that are loaded, many at once, and looks up those that were
// missing. Files that take long are left to finish on their own. It reports whether
// a new state has yet to settle. With all set, new states are applied at once, and
// the sweep waits for every file until ctx ends.
func (h *Hosts) sweep(ctx context.Context, all bool) (soon bool) {
	if h.sweeping.Acquire(ctx, 1) != nil {
		return false
	}
	defer h.sweeping.Release(1)
	n := h.notifier()
	defer n.recoverPanic()
	root, err := os.OpenRoot(h.template.Dir())
	h.setDirError(n, err)
	if err != nil {
		return false
	}
	p := &sweepPass{hosts: h, notifier: n, ctx: context.WithValue(ctx, rootKey{}, root), all: all}
	h.sweepMisses(ctx, root, all)
	for _, f := range h.loaded() {
		p.start(f)
	}
	finished := make(chan struct{})
	go func() {
		p.polls.Wait()
		_ = root.Close() // it was only read
		close(finished)
	}()
	var timeout <-chan time.Time
	if !all {
		timeout = time.After(slowAfter)
	}
	select {
	case <-finished:
	case <-timeout:
	case <-ctx.Done():
	}
	return p.soon.Load()
}

// loaded returns the files that are loaded.
func (h *Hosts) loaded() []*hostFile {
	h.mu.RLock()
	defer h.mu.RUnlock()
	files := make([]*hostFile, 0, len(h.files))
	for _, f := range h.files {
		if f.isReady() && f.document != nil {
			files = append(files, f)
		}
	}
	return files
}

// sweepPass is one sweep.
type sweepPass struct {
	hosts    *Hosts
	notifier *notifier
	ctx      context.Context
	all      bool
	polls    sync.WaitGroup
	soon     atomic.Bool
}

// start polls a file, unless an earlier poll still runs.
func (p *sweepPass) start(f *hostFile) {
	if !f.polling.CompareAndSwap(false, true) {
		return
	}
	began := time.Now()
	if !p.all && began.Before(f.notBefore) {
		f.polling.Store(false)
		return
	}
	lane, err := p.hosts.lanes.enter(p.ctx)
	if err != nil {
		f.polling.Store(false)
		return
	}
	p.polls.Go(func() {
		defer f.polling.Store(false)
		defer lane.leave()
		defer p.notifier.recoverPanic()
		p.poll(f)
		// A slow file gets at most a tenth of the time.
		if took := time.Since(began); took > slowAfter {
			f.notBefore = time.Now().Add(10 * took)
		}
	})
}

// poll polls the file of a document and applies what has changed.
func (p *sweepPass) poll(f *hostFile) {
	d := f.document
	r := d.subscribers[0]
	found, err := r.src.read(p.ctx, d.validator)
	d.mu.Lock()
	d.checked = time.Now()
	current := d.current
	d.mu.Unlock()
	if errors.Is(err, errUnchanged) || p.ctx.Err() != nil {
		return
	}
	if !p.all && d.settling(r, found, err) > 0 {
		p.soon.Store(true)
		return
	}
	if isMissing(err) {
		p.hosts.mu.Lock()
		p.hosts.remove(f)
		p.hosts.mu.Unlock()
		if current != p.hosts.closed() {
			p.notifier.logger.Info("the policy file of a host was removed", zap.String("policy", d.Name))
		}
		return
	}
	r.notifier = p.notifier
	d.apply(r, found, err, p.all).Notify()
}

// sweepMisses forgets missing files, so that the next request looks them up again.
// Those that are asked for all the time are looked up here, so that their requests
// do not have to wait.
func (h *Hosts) sweepMisses(ctx context.Context, root *os.Root, all bool) {
	var inUse []string
	h.mu.Lock()
	for name, m := range h.misses {
		switch {
		case m.used.Swap(false):
			inUse = append(inUse, name)
		case all || time.Since(m.since) >= h.interval()/2:
			delete(h.misses, name)
		}
	}
	h.mu.Unlock()
	for _, name := range inUse {
		if ctx.Err() != nil {
			return
		}
		if _, err := root.Stat(name); !isMissing(err) {
			h.mu.Lock()
			delete(h.misses, name)
			h.mu.Unlock()
		}
	}
}
