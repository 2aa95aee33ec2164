// SPDX-License-Identifier: Apache-2.0

package store

import (
	"github.com/robotspolicy/caddy-robots-policy/activity"
)

// sumKey identifies a row of totals.
type sumKey struct {
	Hour                                    int64 // hours since 1970, UTC
	Host, Crawler, Kind, Identity, Decision string
	Rule, Policy                            string
	Path                                    string
}

// rowOf returns the key and the counts of a request's row. The strings of the key may share memory with the request.
func rowOf(v *activity.Request) (sumKey, Counts) {
	c := Counts{Requests: 1, Bytes: v.Bytes}
	if v.Violation {
		c.Violations = 1
	}
	if v.QueryOmitted {
		c.Queries = 1
	}
	if v.Category != activity.CategoryUnlisted && v.Identity != activity.Impostor && v.Robots == "" && !v.RobotsTxt {
		c.Unread = 1
	}
	return sumKey{
		Hour: v.Time.Unix() / 3600, Host: v.Host, Crawler: v.Crawler, Kind: v.Category, Identity: string(v.Identity),
		Decision: string(v.Decision), Rule: v.Rule, Policy: v.Policy, Path: v.Path,
	}, c
}

// clone returns a copy of the key that shares no memory with the request.
func (k sumKey) clone() sumKey {
	k.Host, k.Crawler, k.Kind, k.Rule, k.Policy, k.Path = activity.Text(k.Host), activity.Text(k.Crawler), activity.Text(k.Kind), activity.Text(k.Rule), activity.Text(k.Policy), activity.Text(k.Path)
	return k
}

// Counts holds the totals of a row.
type Counts struct {
	Requests, Bytes, Violations int64
	Queries                     int64 // number of requests with a query that the path leaves out
	// Unread is the number of requests by crawlers that have not read any robots.txt, as far as is known. Whether they
	// violate a robots.txt is not known.
	Unread int64
}

func (c *Counts) add(d Counts) {
	c.Requests += d.Requests
	c.Bytes += d.Bytes
	c.Violations += d.Violations
	c.Queries += d.Queries
	c.Unread += d.Unread
}

// readKey identifies a crawler, an identity, a version of a host's robots.txt, and the publication in force when the
// crawler read it.
type readKey struct {
	Host, Crawler, Identity, Version, Form, Publication, Number string
}

// times holds the first and the last time of an event, in seconds since 1970, and how often the event happened.
type times struct {
	First, Last, Count int64
}

func (t *times) add(u times) {
	if t.Count == 0 || u.First < t.First {
		t.First = u.First
	}
	t.Last = max(t.Last, u.Last)
	t.Count += u.Count
}

// sums holds totals in memory. The number of its rows with paths is at most twice its limit.
type sums struct {
	limit int
	paths int // number of rows with paths
	rows  map[sumKey]*Counts
	reads map[readKey]*times
	lost  map[int64]int64 // number of unrecorded requests, by hour
}

// newSums returns empty sums. limit is the number of rows with paths that an hour may have in the database; see
// limitOf.
func newSums(limit int) *sums {
	return &sums{limit: limit, rows: map[sumKey]*Counts{}, reads: map[readKey]*times{}, lost: map[int64]int64{}}
}

// empty reports whether s has no data.
func (s *sums) empty() bool { return len(s.rows) == 0 && len(s.reads) == 0 && len(s.lost) == 0 }

func (s *sums) addVisit(v *activity.Request) {
	s.add(rowOf(v))
	if v.RobotsTxt && v.Robots != "" && v.Identity != activity.Impostor && v.Identity != activity.Audit {
		at := v.Time.Unix()
		s.addRead(readKey{v.Host, v.Crawler, string(v.Identity), v.Robots, v.Form, v.Publication, v.Number}, times{at, at, 1})
	}
}

// add adds counts to a row. The key may share memory with the request.
func (s *sums) add(k sumKey, c Counts) {
	row := s.rows[k]
	if row == nil {
		switch {
		case k.Path == OtherPath:
		case s.paths >= s.limitOf(&k):
			k.Path = OtherPath
		default:
			s.paths++
		}
		k = k.clone()
		if row = s.rows[k]; row == nil {
			row = new(Counts)
			s.rows[k] = row
		}
	}
	row.add(c)
}

// limitOf returns the maximum number of rows with paths in s. It depends on the key k of a new row. If s already has
// that many rows, add counts the request of the new row under [OtherPath] instead. Only verified search crawlers may
// use the last quarter of the rows. So a client that requests many paths cannot displace the requests of search
// engines.
func (s *sums) limitOf(k *sumKey) int {
	if k.Kind == "search" && k.Identity == string(activity.Verified) {
		return 2 * s.limit
	}
	return s.limit * 3 / 2
}

// maxReads limits the number of reads of robots.txt that wait to be written to the database.
const maxReads = 10_000

// addRead adds fetches of a robots.txt with the key r. If r is new, and too many keys already wait to be written, it
// counts these fetches as not recorded. The strings of r may share memory with the request.
func (s *sums) addRead(r readKey, t times) {
	have := s.reads[r]
	if have == nil {
		if len(s.reads) >= maxReads {
			s.lost[t.Last/3600] += t.Count
			return
		}
		have = new(times)
		r.Host, r.Crawler, r.Version = activity.Text(r.Host), activity.Text(r.Crawler), activity.Text(r.Version)
		s.reads[r] = have
	}
	have.add(t)
}

func (s *sums) addAll(other *sums) {
	for k, c := range other.rows {
		s.add(k, *c)
	}
	for r, t := range other.reads {
		s.addRead(r, *t)
	}
	for hour, n := range other.lost {
		s.lost[hour] += n
	}
}
