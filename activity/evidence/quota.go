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

// room is an amount of space in a day's file.
type room struct {
	events int
	bytes  int64
}

// defaultQuotas limits the space that the events of a day can use. Any client can send the name of a crawler. Therefore
// all unverified clients together can use at most half of the space for violations, and each name has its own smaller
// limit. Fetches of robots.txt and of rights documents have separate space. Publications have no limit, because clients
// cannot cause them.
var defaultQuotas = quotas{
	violations: room{100_000, 64 << 20},
	unverified: room{50_000, 32 << 20},
	claimed:    room{5_000, 4 << 20},
	verified:   room{40_000, 24 << 20},
	reads:      room{2_000, 1 << 20},
}

type quotas struct {
	violations room // all violations together
	unverified room // all violations by unverified crawlers together
	claimed    room // violations by one unverified crawler
	verified   room // violations by one verified crawler
	reads      room // reads by one crawler
}

type party struct {
	crawler  string
	identity activity.Identity
}

// share identifies a part of the space: the type of its events, and the crawler that may use it.
type share struct {
	kind string // type of event
	party
}

// usage holds the space that was already used today, by share.
type usage map[share]room

// shares calls the function each for every share of the day's space that the event e uses, with the limit of that
// share. Events that clients cannot cause use no share, so they have no limit.
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

// add records the space that an event used. bytes is the length of its line.
func (u usage) add(q *quotas, e *Event, bytes int) {
	q.shares(e, func(s share, _ room) {
		used := u[s]
		u[s] = room{used.events + 1, used.bytes + int64(bytes)}
	})
}

// omission identifies omitted events of the same type, crawler and reason.
type omission struct {
	share
	reason string
}

// Omissions counts omitted events. The zero value is ready to use. It is safe for concurrent use.
type Omissions struct {
	total atomic.Uint64
	some  atomic.Bool // reports whether by has entries
	mu    sync.Mutex
	by    map[omission]int64
}

// Add counts a request, if it would have caused an event.
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

// Total returns the number of all omitted events, including the events whose counts were removed by the method take.
func (o *Omissions) Total() uint64 { return o.total.Load() }

// maxOmitted limits how many events of the type TypeOmitted the log writes in a minute. Each of them reports how many
// events of one crawler were left out. A limit is needed because clients can use the names of many crawlers. The
// remaining numbers are written in the next minutes.
const maxOmitted = 50

// take returns events that report the counts of omitted events, the largest counts first, and removes these counts from
// o. It returns at most limit events; a limit of 0 means all.
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

// merge moves the counts of from to o. from.Total still includes the moved counts.
func (o *Omissions) merge(from *Omissions) {
	for _, e := range from.take(time.Time{}, 0) {
		o.add(omission{share{e.What, party{e.Crawler, e.Identity}}, e.Reason}, e.Count)
	}
}
