// SPDX-License-Identifier: Apache-2.0

package replay

import (
	"cmp"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/robotspolicy/caddy-robots-policy/activity"
	"github.com/robotspolicy/caddy-robots-policy/claim"
	"github.com/robotspolicy/caddy-robots-policy/effect"
	"github.com/robotspolicy/caddy-robots-policy/policy"
	"github.com/robotspolicy/caddy-robots-policy/site"
)

// key groups the requests of a crawler for counting.
type key struct {
	site     *site.Site // that knows the crawler
	crawler  policy.CrawlerID
	identity policy.Identity
	old, new verdict
	lost     effect.Lost
	unproven bool // of what is lost, see identity
}

// tally counts for one worker, without locks.
type tally struct {
	requests, opaque         int64
	hostless, liveOnly       int64
	stored                   claim.Coverage
	limited                  int64 // allowed, and a limit applies that is not replayed
	other, queries, purposes int64 // of a store: what its rows do not say
	first, last              time.Time
	seen                     map[int64]bool // half days since 1970 that have requests
	unsaid                   map[unsaid]int64
	hosts                    map[string]bool // of the logs, as they are written
	samples                  map[sample]bool
	sampled                  map[int]int // the number of samples of each log
	repeats                  []claim.Gap // of the logs and a store
	unknown                  map[string]*UnknownCount
	counts                   map[key]*count
	days                     map[dayKey]int64
}

type dayKey struct {
	day      int64 // since 1970, UTC
	decision activity.Decision
}

type count struct {
	requests, bytes int64
	paths           map[string]int64
	dropped         int64 // requests of paths that were forgotten for want of room
}

func newTally() *tally {
	return &tally{counts: map[key]*count{}, days: map[dayKey]int64{}, unknown: map[string]*UnknownCount{}, unsaid: map[unsaid]int64{}, seen: map[int64]bool{}, hosts: map[string]bool{}, samples: map[sample]bool{}, sampled: map[int]int{}}
}

// maxUnknown bounds the names of unlisted clients; the rest counts under otherClients.
const (
	maxUnknown   = 10_000
	otherClients = "(others)"
)

func (t *tally) addUnknown(name string, requests, bytes int64) {
	c := t.unknown[name]
	if c == nil {
		if len(t.unknown) >= maxUnknown {
			name = otherClients
		}
		if c = t.unknown[name]; c == nil {
			c = &UnknownCount{Name: strings.Clone(name)}
			t.unknown[c.Name] = c
		}
	}
	c.Requests += requests
	c.Bytes += bytes
}

func (t *tally) span(at time.Time) {
	if t.first.IsZero() || at.Before(t.first) {
		t.first = at
	}
	if at.After(t.last) {
		t.last = at
	}
	t.seen[at.Unix()/halfDay] = true
}

const halfDay = 12 * 60 * 60

// gap is the longest time without requests, in half days, if it is longer than maxGap.
func (t *tally) gap() (from, to time.Time) {
	halves := slices.Sorted(maps.Keys(t.seen))
	for i := 1; i < len(halves); i++ {
		a, b := time.Unix((halves[i-1]+1)*halfDay, 0), time.Unix(halves[i]*halfDay, 0)
		if b.Sub(a) >= max(maxGap, to.Sub(from)) {
			from, to = a, b
		}
	}
	return from, to
}

func (t *tally) add(at time.Time, requests, bytes int64, k key, path string) {
	c := t.counts[k]
	if c == nil {
		c = new(count)
		t.counts[k] = c
	}
	c.requests += requests
	c.bytes += bytes
	t.days[dayKey{at.Unix() / 86400, k.new.decision}] += requests
	if k.interesting() {
		c.addPath(path, requests)
	}
}

// interesting: the report shows the paths of these requests.
func (k *key) interesting() bool {
	return k.old.decision != k.new.decision || k.new.decision != activity.Allowed || k.lost != effect.Lost{}
}

// maxPaths bounds the paths of one kind of requests. Beyond it the less requested half is forgotten.
const maxPaths = 20_000

func (c *count) addPath(path string, n int64) {
	if c.paths == nil {
		c.paths = map[string]int64{}
	}
	if _, ok := c.paths[path]; !ok {
		if len(c.paths) >= maxPaths {
			c.forget()
		}
		path = strings.Clone(path)
	}
	c.paths[path] += n
}

func (c *count) forget() {
	all := topPaths(c.paths, 0)
	for _, p := range all[len(all)/2:] {
		c.dropped += p.Requests
		delete(c.paths, p.Path)
	}
}

// topPaths sorts paths by requests and returns the first n, all for 0.
func topPaths(paths map[string]int64, n int) []PathCount {
	all := make([]PathCount, 0, len(paths))
	for p, requests := range paths {
		all = append(all, PathCount{p, requests})
	}
	slices.SortFunc(all, func(a, b PathCount) int {
		return cmp.Or(cmp.Compare(b.Requests, a.Requests), cmp.Compare(a.Path, b.Path))
	})
	if n > 0 && len(all) > n {
		all = all[:n]
	}
	return all
}

func (t *tally) merge(o *tally) {
	if !o.first.IsZero() {
		t.span(o.first)
		t.span(o.last)
	}
	maps.Copy(t.seen, o.seen)
	maps.Copy(t.samples, o.samples)
	maps.Copy(t.hosts, o.hosts)
	t.requests += o.requests
	t.opaque += o.opaque
	t.hostless += o.hostless
	t.liveOnly += o.liveOnly
	t.limited += o.limited
	t.other += o.other
	t.queries += o.queries
	t.purposes += o.purposes
	add(t.unsaid, o.unsaid)
	for name, c := range o.unknown {
		t.addUnknown(name, c.Requests, c.Bytes)
	}
	add(t.days, o.days)
	for k, c := range o.counts {
		have := t.counts[k]
		if have == nil {
			t.counts[k] = c
			continue
		}
		have.requests += c.requests
		have.bytes += c.bytes
		have.dropped += c.dropped
		for p, n := range c.paths {
			have.addPath(p, n)
		}
	}
}
