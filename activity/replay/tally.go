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

// key identifies a group of a crawler's requests. Requests with the same key are counted together.
type key struct {
	site     *site.Site // the site of the new or the old policy; crawler is an ID in this policy
	crawler  policy.CrawlerID
	identity policy.Identity
	old, new verdict
	lost     effect.Lost
	unproven bool // identity.unproven, if the request is lost
}

// tally holds the counts of one worker. It needs no locks, because no other worker uses it.
type tally struct {
	requests, opaque         int64
	hostless, liveOnly       int64
	stored                   claim.Coverage
	limited                  int64 // requests counted as allowed, because it is unknown whether they exceed a rate limit
	other, queries, purposes int64 // requests in an activity database whose rows lack a path, a query or a purpose
	first, last              time.Time
	seen                     map[int64]bool // half days since 1970 that have requests
	unsaid                   map[unsaid]int64
	hosts                    map[string]bool // the hosts in the logs, in the clients' spelling
	samples                  map[sample]bool
	sampled                  map[int]int // number of samples of each log
	repeats                  []claim.Gap // gaps for requests that may be both in the logs and in the activity database
	unknown                  map[string]*UnknownCount
	counts                   map[key]*count
	days                     map[dayKey]int64
}

type dayKey struct {
	day      int64 // days since 1970 (UTC)
	decision activity.Decision
}

type count struct {
	requests, bytes int64
	paths           map[string]int64
	dropped         int64 // requests for paths dropped because there were too many
}

func newTally() *tally {
	return &tally{counts: map[key]*count{}, days: map[dayKey]int64{}, unknown: map[string]*UnknownCount{}, unsaid: map[unsaid]int64{}, seen: map[int64]bool{}, hosts: map[string]bool{}, samples: map[sample]bool{}, sampled: map[int]int{}}
}

// maxUnknown limits the number of names of unlisted clients. All further clients are counted under otherClients.
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

// gap returns the beginning and the end of the longest period without requests. The period consists of whole half days.
// If this period is shorter than maxGap, from and to are zero.
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

// interesting reports whether the report shows the paths of the requests with this key.
func (k *key) interesting() bool {
	return k.old.decision != k.new.decision || k.new.decision != activity.Allowed || k.lost != effect.Lost{}
}

// maxPaths limits the number of paths of one key. When it is exceeded, the less frequent half of the paths is dropped.
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

// topPaths returns the n most frequent paths, sorted by requests. If n is 0, it returns all paths.
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
