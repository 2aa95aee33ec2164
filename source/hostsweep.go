// SPDX-License-Identifier: Apache-2.0

package source

import (
	"context"
	"maps"
	"os"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"go.uber.org/zap"
)

// slowAfter limits how long a sweep waits for slow files.
const slowAfter = 100 * time.Millisecond

func (h *Hosts) poll(ctx context.Context) time.Duration {
	_, interval := h.active()
	wait := max(interval, startupPoll)
	if h.sweep(ctx, false) {
		wait = min(wait, fileSettle)
	}
	return wait
}

// Reload applies all changed files at once, even if a program may still be writing them. If ctx ends before all files
// are read, Reload returns false. In that case, it has applied only the changes in the files that it has read until
// then.
func (h *Hosts) Reload(ctx context.Context) bool {
	_, err := within(ctx, readTimeout, "the directory", func(ctx context.Context) (any, error) {
		h.sweep(ctx, true)
		return nil, ctx.Err()
	})
	return err == nil
}

// sweep polls all loaded files, many at the same time, and checks whether files exist now that were missing before. It
// does not wait long for slow files, which are then read in the background. soon reports whether a changed file must be
// polled again soon, because a program may still be writing it. If all is set, sweep applies changes at once, and waits
// for every file until ctx ends.
func (h *Hosts) sweep(ctx context.Context, all bool) (soon bool) {
	if h.sweeping.Acquire(ctx, 1) != nil {
		return false
	}
	defer h.sweeping.Release(1)
	o := h.options()
	defer o.recoverPanic()
	root, err := h.openDir(o)
	if err != nil {
		return false
	}
	h.sweepMisses(ctx, root)
	ctx = context.WithValue(ctx, rootKey{}, root)
	var polls sync.WaitGroup
	var settling atomic.Bool
	for name, d := range h.loaded() {
		if !d.loading.TryAcquire(1) {
			continue // an earlier poll still runs
		}
		if h.reads.Acquire(ctx, 1) != nil {
			d.loading.Release(1)
			break
		}
		polls.Go(func() {
			defer h.reads.Release(1)
			defer o.recoverPanic()
			if h.pollFile(ctx, o, name, d, all) {
				settling.Store(true)
			}
		})
	}
	finished := make(chan struct{})
	go func() {
		polls.Wait()
		_ = root.Close() // an error does not matter, because nothing was written
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
	return settling.Load()
}

// loaded returns the loaded files by name.
func (h *Hosts) loaded() map[string]*Document {
	h.mu.RLock()
	defer h.mu.RUnlock()
	return maps.Clone(h.files)
}

// pollFile reads a file and applies a change. soon has the same meaning as in sweep.
func (h *Hosts) pollFile(ctx context.Context, o *Options, name string, d *Document, all bool) (soon bool) {
	out := d.update(ctx, o, d.file, all)
	if out.missing {
		h.mu.Lock()
		if h.files[name] == d {
			delete(h.files, name)
		}
		h.mu.Unlock()
		if out.Before != h.closed() {
			o.Logger.Info("the policy file of a host was removed", zap.String("policy", d.Name))
		}
	}
	return out.settle > 0
}

// sweepMisses goes through h.misses, the list of files that do not exist. It removes each file that clients have not
// requested since the last sweep. For the other files, it checks whether they exist now, so that requests do not have
// to wait for this check. If a file exists now, sweepMisses removes it, so that the next request loads it.
func (h *Hosts) sweepMisses(ctx context.Context, root *os.Root) {
	h.mu.Lock()
	maps.DeleteFunc(h.misses, func(_ string, used *atomic.Bool) bool { return !used.Swap(false) })
	inUse := slices.Collect(maps.Keys(h.misses))
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
