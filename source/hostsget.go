// SPDX-License-Identifier: Apache-2.0

package source

import (
	"context"
	"time"
)

// Get returns the policy of a host, as a request names it, nil if it has no file. An
// error means that the policy is not known now.
func (h *Hosts) Get(ctx context.Context, host string) (*Snapshot, error) {
	host, ok := CleanHost(host)
	if !ok {
		return nil, nil
	}
	var buf [128]byte
	name, ok := h.template.AppendFile(buf[:0], host)
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
	if err := f.wait(ctx); err != nil || f.err != nil || f.missing {
		if err == nil {
			err = f.err
		}
		return nil, err
	}
	f.use(now)
	return f.snapshot.Load(), nil
}

// waitForLookup waits until another file may be looked up.
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

// join makes a handler a user of the policies.
func (h *Hosts) join(r *hostSubscriber) {
	h.mu.Lock()
	h.subscribers = append(h.subscribers, r)
	switch {
	case !r.watch:
	case h.stop == nil:
		ctx, cancel := context.WithCancel(context.Background())
		h.stop, h.woken = cancel, make(chan struct{}, 1)
		go watch(ctx, h.woken, h.poll)
	default:
		wake(h.woken)
	}
	h.mu.Unlock()
	if !r.watch {
		// Without watching, files are read when a configuration is loaded.
		h.Reload(context.Background())
	}
}
