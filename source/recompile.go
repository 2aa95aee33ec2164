// SPDX-License-Identifier: Apache-2.0

package source

import (
	"context"
	"time"

	"go.uber.org/zap"

	"github.com/robotspolicy/caddy-robots-policy/crawlers"
)

// recompileTimeout bounds a call of Recompile: a file that cannot be read, or an event
// handler, may hold up a policy for ever.
const recompileTimeout = 30 * time.Second

// Recompile compiles once more the policies that were compiled with another catalogue of
// crawlers than the one in use. A policy that has an error with it stays as it is. What is
// not done when ctx ends, or after half a minute, is left to the next call.
func Recompile(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, recompileTimeout)
	defer cancel()
	for _, d := range allDocuments() {
		if r, _ := d.running(); r != nil {
			d.recompile(ctx, r.notifier)
		}
	}
	for _, h := range AllHosts() {
		n := h.notifier()
		for _, f := range h.loaded() {
			h.recompile(ctx, f, n)
		}
	}
}

// recompile waits for a poll of the file that is running.
func (h *Hosts) recompile(ctx context.Context, f *hostFile, n *notifier) {
	if !f.document.Status().Current.outdated() {
		return
	}
	for !f.polling.CompareAndSwap(false, true) {
		select {
		case <-ctx.Done():
			return
		case <-time.After(10 * time.Millisecond):
		}
	}
	defer f.polling.Store(false)
	f.document.recompile(ctx, n)
}

// recompile replaces the current version by one of the same text.
func (d *Document) recompile(ctx context.Context, n *notifier) {
	defer n.recoverPanic()
	if d.reading.Acquire(ctx, 1) != nil {
		return
	}
	defer d.reading.Release(1)
	before := d.Status().Current
	if !before.outdated() {
		return
	}
	used, _ := crawlers.Default()
	s, err := compileAccepted(d.Name, []byte(before.Text))
	if err != nil {
		before.catalogue.Store(used) // so that it is said once
		n.logger.Error("a policy has an error with the new catalogue of crawlers; it is served with the previous one",
			zap.String("policy", d.Name), zap.Error(err))
		return
	}
	s.Since, s.PerHost = before.Since, before.PerHost
	d.mu.Lock()
	defer d.mu.Unlock()
	d.setCurrent(s)
	for _, r := range d.subscribers {
		if r.snapshot == before {
			r.set(s)
		}
	}
}

// outdated reports whether another catalogue than that of the version is in use. The
// closed policy of a host without a usable file names no crawlers, and never is.
func (s *Snapshot) outdated() bool {
	if s == nil {
		return false
	}
	used, err := crawlers.Default()
	with := s.catalogue.Load()
	return err == nil && with != nil && used != with
}
