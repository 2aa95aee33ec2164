// SPDX-License-Identifier: Apache-2.0

package store

import (
	"github.com/robotspolicy/caddy-robots-policy/activity"
)

// sumKey identifies the requests that a row sums up.
type sumKey struct {
	Hour                                    int64 // hours since 1970, UTC
	Host, Crawler, Kind, Identity, Decision string
	Rule, Policy                            string
	Path                                    string
}

// rowOf returns the row of a request. The strings of its key may be parts of the request.
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

// clone returns a key that does not refer to the request.
func (k sumKey) clone() sumKey {
	k.Host, k.Crawler, k.Kind, k.Rule, k.Policy, k.Path = activity.Text(k.Host), activity.Text(k.Crawler), activity.Text(k.Kind), activity.Text(k.Rule), activity.Text(k.Policy), activity.Text(k.Path)
	return k
}

// Counts are the sums of a row.
type Counts struct {
	Requests, Bytes, Violations int64
	Queries                     int64 // how many of the requests had a query that the path does not have
	// Unread counts the requests by crawlers that are not known to have read any robots.txt. Their obedience
	// cannot be judged.
	Unread int64
}

// add adds d to c.
func (c *Counts) add(d Counts) {
	c.Requests += d.Requests
	c.Bytes += d.Bytes
	c.Violations += d.Violations
	c.Queries += d.Queries
	c.Unread += d.Unread
}

// readKey says that a crawler of an identity read a version of the robots.txt of a host, in which form, and which
// publication was in force.
type readKey struct {
	Host, Crawler, Identity, Version, Form, Publication, Number string
}

// times say when something happened, in seconds since 1970, and how often.
type times struct {
	First, Last, Count int64
}

// add adds u to t.
func (t *times) add(u times) {
	if t.Count == 0 || u.First < t.First {
		t.First = u.First
	}
	t.Last = max(t.Last, u.Last)
	t.Count += u.Count
}

// sums are totals in memory. They hold at most twice as many rows with paths of their own as their limit.
type sums struct {
	limit int
	paths int // rows with paths of their own
	rows  map[sumKey]*Counts
	reads map[readKey]*times
	lost  map[int64]int64 // requests that were not recorded, by the hour
}

// newSums returns empty sums. When they have as many rows, further paths are summed up under [OtherPath].
func newSums(limit int) *sums {
	return &sums{limit: limit, rows: map[sumKey]*Counts{}, reads: map[readKey]*times{}, lost: map[int64]int64{}}
}

// empty reports whether there is nothing in s.
func (s *sums) empty() bool { return len(s.rows) == 0 && len(s.reads) == 0 && len(s.lost) == 0 }

// addVisit adds a request.
func (s *sums) addVisit(v *activity.Request) {
	s.add(rowOf(v))
	if v.RobotsTxt && v.Robots != "" && v.Identity != activity.Impostor && v.Identity != activity.Audit {
		at := v.Time.Unix()
		s.addRead(readKey{v.Host, v.Crawler, string(v.Identity), v.Robots, v.Form, v.Publication, v.Number}, times{at, at, 1})
	}
}

// add adds counts to a row. The key may refer to the request.
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

// limitOf returns the number of rows beyond which new paths are summed up. A quarter of the rows is for verified search
// crawlers, so that a client that asks for many paths cannot hide the requests of search engines.
func (s *sums) limitOf(k *sumKey) int {
	if k.Kind == "search" && k.Identity == string(activity.Verified) {
		return 2 * s.limit
	}
	return s.limit * 3 / 2
}

// maxReads bounds the reads of robots.txt that wait for the database.
const maxReads = 10_000

// addRead adds reads of a robots.txt. The strings of r may be parts of the request.
func (s *sums) addRead(r readKey, t times) {
	have := s.reads[r]
	if have == nil {
		if len(s.reads) >= maxReads {
			return
		}
		have = new(times)
		r.Host, r.Crawler, r.Version = activity.Text(r.Host), activity.Text(r.Crawler), activity.Text(r.Version)
		s.reads[r] = have
	}
	have.add(t)
}

// addAll adds other sums.
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
