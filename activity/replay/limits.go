// SPDX-License-Identifier: Apache-2.0

package replay

import (
	"cmp"
	"slices"
	"strings"
	"time"

	"github.com/robotspolicy/caddy-robots-policy/activity"
	"github.com/robotspolicy/caddy-robots-policy/policy"
	"github.com/robotspolicy/caddy-robots-policy/site"
)

// queued is a request under a limit. Whether it is over the limit is only known after all earlier requests are known, and
// workers read logs in no order.
type queued struct {
	at     time.Time
	bytes  int64
	path   string
	key    key
	limits [2][]site.Limit // of the new policy, and of the old one
}

// maxQueued bounds the memory of the requests that all workers keep. A request takes queuedSize at most, besides its path
// and its limits, which take limitSize each.
const (
	maxQueued  = 1 << 30
	queuedSize = 320
	limitSize  = 64
)

type queue struct {
	requests []*queued
	room     int // bytes
	dropped  int64
}

// add reports whether there is room for a request.
func (q *queue) add(r *queued) bool {
	if q.room -= queuedSize + len(r.path) + limitSize*(len(r.limits[0])+len(r.limits[1])); q.room < 0 {
		q.room = 0 // for good: what follows would be limited without these
		q.dropped++
		return false
	}
	r.path = strings.Clone(r.path) // it may be a part of a target
	q.requests = append(q.requests, r)
	return true
}

// limitAll decides about the requests that were queued, in the order of their times, as one server does.
func (w *worker) limitAll() {
	w.tally.limited += w.queue.dropped
	slices.SortStableFunc(w.queue.requests, func(a, b *queued) int {
		return cmp.Or(a.at.Compare(b.at), strings.Compare(a.path, b.path))
	})
	var limiters [2]site.Limiter
	for _, r := range w.queue.requests {
		before := r.key
		for i, v := range []*verdict{&r.key.new, &r.key.old} {
			if r.limits[i] == nil {
				continue
			}
			of := []*decider{w.new, w.old}[i].site.Policy
			if over, mode, _ := limiters[i].Take(of, r.at, 1, policy.ModeBlock, r.limits[i]); over != nil {
				v.rule, v.decision = over.Rule, activity.WouldLimit
				if mode == policy.ModeBlock {
					v.decision = activity.Limited
				}
			}
		}
		if r.key != before {
			r.path, _, _ = strings.Cut(r.path, "?")
		}
		w.tally.add(r.at, 1, r.bytes, r.key, r.path)
	}
}
