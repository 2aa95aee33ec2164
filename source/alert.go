// SPDX-License-Identifier: Apache-2.0

package source

import (
	"context"
	"strings"
	"time"

	"go.uber.org/zap"

	"github.com/robotspolicy/caddy-robots-policy/activity/replay"
)

// alert does nothing if out is not an undo. An undo is served even if search engines lose something, or a test of the
// policy fails now. In these cases, alert writes a log line, emits an event, and sets the alert that Status shows until
// the next version is served.
func (d *Document) alert(o *Options, src *source, out Outcome) {
	if !out.undo || out.Before == nil || out.Now == nil || out.Err != nil {
		return
	}
	defer o.recoverPanic()
	cost := d.costOf(o, src, out.Before, out.Now)
	if cost == "" {
		return
	}
	d.mu.Lock()
	current := d.Current() == out.Now
	if current {
		d.cost, d.costSince = cost, time.Now()
	}
	d.mu.Unlock()
	if current {
		o.Logger.Error("an undo restored an earlier version of the policy; with this version, search engines lose something, or a test of the policy fails", zap.String("policy", src.name), zap.String("sha256", out.Now.SHA256), zap.String("cost", cost))
		o.emit("robots_policy.undo_cost", map[string]any{"policy": src.name, "sha256": out.Now.SHA256, "cost": cost})
	}
}

// costOf describes what search engines lose because an undo replaced before with now, and which tests of the policy
// fail in now. It returns "" if nothing is lost and no test fails.
func (d *Document) costOf(o *Options, src *source, before, now *Snapshot) string {
	var all []string
	if err := d.allows(o, src, before, now, nil); err != nil {
		all = append(all, err.Error())
	}
	if c := replay.Keeps(before.Site, now.Site, d.below(o), nil); !c.Holds() {
		all = append(all, c.Lines()...)
	}
	for _, w := range now.Warnings {
		if w.IsFailedTest() {
			all = append(all, w.Message)
		}
	}
	return strings.Join(all, "; ")
}

// markTries is the number of attempts to record in the storage that a version is served.
const markTries = 10

// markServed records in the storage, next to the policy, that this server serves the present text, so that a later
// undo can return to it.
func (d *Document) markServed(ctx context.Context, o *Options, src *source) {
	if src.stored == nil || o.ReadOnly || d.loading.Acquire(ctx, 1) != nil {
		return
	}
	now, tries := d.Current(), d.unmarked
	d.loading.Release(1)
	if now == nil || tries == 0 {
		return
	}
	if err := src.stored.markServed(ctx, now.SHA256); err != nil {
		if tries--; tries == 0 {
			o.Logger.Warn("this server could not record in Caddy's storage which version of the policy it serves; the command \"publish --undo\" may not find this version",
				zap.String("policy", src.name), zap.Error(err))
		}
	} else {
		tries = 0
	}
	if d.loading.Acquire(ctx, 1) == nil {
		if d.Current() == now {
			d.unmarked = tries
		}
		d.loading.Release(1)
	}
}
