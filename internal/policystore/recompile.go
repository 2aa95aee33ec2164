// SPDX-License-Identifier: Apache-2.0

package policystore

import (
	"context"
	"time"

	"go.uber.org/zap"
)

// Recompile compiles the policies that are served once more, after the catalogue of
// crawlers has changed. A policy that has an error with the new catalogue stays as it is.
func Recompile(ctx context.Context) {
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
	if before == nil {
		return
	}
	s, err := compileAccepted(d.Name, []byte(before.Text))
	if err != nil {
		n.logger.Error("a policy has an error with the new catalogue of crawlers; it is served with the one before",
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
