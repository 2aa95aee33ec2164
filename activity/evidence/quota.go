// SPDX-License-Identifier: Apache-2.0

package evidence

import (
	"cmp"
	"maps"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/robotspolicy/caddy-robots-policy/activity"
)

// room is the space of a day's file for some events.
type room struct {
	events int
	bytes  int64
}

// The quotas of a day. Any client can send the name of a crawler. Such clients share a half of
// the room for violations, and each name has a part of it. Reads have separate room.
// Publications are never left out, however many there are, because clients cannot cause them.
var defaultQuotas = quotas{
	violations: room{100_000, 64 << 20},
	unverified: room{50_000, 32 << 20},
	claimed:    room{5_000, 4 << 20},
	verified:   room{40_000, 24 << 20},
	reads:      room{2_000, 1 << 20},
}

type quotas struct {
	violations room // of all
	unverified room // of all that are not verified
	claimed    room // of one crawler that is not verified
	verified   room // of one that is
	reads      room // of one
}

type party struct {
	crawler  string
	identity activity.Identity
}

// share is a part of the room, and who may use it.
type share struct {
	kind string // of events
	party
}

// usage is the used part of a day's room.
type usage map[share]room

// shares calls each with what an event takes a share of: what no client causes, of nothing.
func (q *quotas) shares(e *Event, each func(share, room)) {
	kind, p := e.Type, party{e.Crawler, e.Identity}
	switch {
	case kind == TypeRead:
		each(share{kind, p}, q.reads)
	case kind != TypeViolation:
	case p.identity == activity.Verified:
		each(share{kind, party{}}, q.violations)
		each(share{kind, p}, q.verified)
	default:
		each(share{kind, party{}}, q.violations)
		each(share{kind, party{"", activity.Unverified}}, q.unverified)
		each(share{kind, p}, q.claimed)
	}
}

func (u usage) admit(q *quotas, e *Event) bool {
	free := true
	q.shares(e, func(s share, limit room) {
		used := u[s]
		free = free && used.events < limit.events && used.bytes < limit.bytes
	})
	return free
}

// add counts an event that is written as a line of the given number of bytes.
func (u usage) add(q *quotas, e *Event, bytes int) {
	q.shares(e, func(s share, _ room) {
		used := u[s]
		u[s] = room{used.events + 1, used.bytes + int64(bytes)}
	})
}

// omission is a kind of events that were left out.
type omission struct {
	share
	reason string
}

// Omissions count the events that were left out. The zero value is ready to use, and safe for concurrent use.
type Omissions struct {
	total atomic.Uint64
	some  atomic.Bool // there is something in by
	mu    sync.Mutex
	by    map[omission]int64
}

// Add counts a request, if it is an event.
func (o *Omissions) Add(v *activity.Request, reason string) {
	if kind := typeOf(v); kind != "" {
		o.add(omission{share{kind, party{v.Crawler, v.Identity}}, reason}, 1)
	}
}

func (o *Omissions) add(k omission, n int64) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.by == nil {
		o.by = map[omission]int64{}
	}
	o.by[k] += n
	o.total.Add(uint64(n))
	o.some.Store(true)
}

// Total returns the number of events ever counted.
func (o *Omissions) Total() uint64 { return o.total.Load() }

// maxOmitted is the number of events about omissions that are written in a minute, because
// crawlers have many names. The remaining counts wait for the next minute.
const maxOmitted = 50

// take returns events that say what was left out, at most limit, the most frequent first,
// and takes them out of the counts; of a limit of 0 all.
func (o *Omissions) take(now time.Time, limit int) (all []*Event) {
	if !o.some.Load() {
		return nil
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	keys := slices.SortedFunc(maps.Keys(o.by), func(a, b omission) int {
		return cmp.Or(cmp.Compare(o.by[b], o.by[a]), cmp.Compare(a.crawler, b.crawler), cmp.Compare(a.identity, b.identity), cmp.Compare(a.kind, b.kind), cmp.Compare(a.reason, b.reason))
	})
	if limit > 0 {
		keys = keys[:min(limit, len(keys))]
	}
	for _, k := range keys {
		all = append(all, &Event{Time: now, Type: TypeOmitted, Crawler: k.crawler, Identity: k.identity, What: k.kind, Reason: k.reason, Count: o.by[k]})
		delete(o.by, k)
	}
	o.some.Store(len(o.by) > 0)
	return all
}

// merge adds other counts and empties them. Their total stays with them.
func (o *Omissions) merge(from *Omissions) {
	for _, e := range from.take(time.Time{}, 0) {
		o.add(omission{share{e.What, party{e.Crawler, e.Identity}}, e.Reason}, e.Count)
	}
}
