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

// queued is a request that a rate limit applies to. Workers do not read the logs in the order of time. So whether the
// request exceeds the limit is only decided after all requests have been read.
type queued struct {
	at     time.Time
	bytes  int64
	path   string
	key    key
	limits [2][]site.Limit // limits of the new policy, and of the old one
}

// These constants limit the memory for the queued requests of all workers. A request needs at most queuedSize bytes,
// plus its path, plus limitSize bytes for each of its limits.
const (
	maxQueued  = 1 << 30
	queuedSize = 320
	limitSize  = 64
)

type queue struct {
	requests []*queued
	room     int // remaining bytes
	dropped  int64
}

// add queues a request, and reports whether there was room for it.
func (q *queue) add(r *queued) bool {
	if q.room -= queuedSize + len(r.path) + limitSize*(len(r.limits[0])+len(r.limits[1])); q.room < 0 {
		q.room = 0 // accept no more requests: because this request is not counted, later requests would be limited too rarely
		q.dropped++
		return false
	}
	r.path = strings.Clone(r.path) // the path may share memory with a longer string
	q.requests = append(q.requests, r)
	return true
}

// limitAll decides about the queued requests in the order of their times, as a single server would do.
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
