// SPDX-License-Identifier: Apache-2.0

// Package journal sums up requests in memory and writes the sums to an append-only
// file. It is the part of the activity database that needs no database.
package journal

import (
	"cmp"
	"slices"
	"strings"

	"github.com/robotspolicy/caddy-robots-policy/activity"
)

// OtherPath stands for all paths that have no row of their own.
const OtherPath = activity.OtherPath

// Key identifies the requests that a row sums up.
type Key struct {
	Hour                                    int64 // hours since 1970, UTC
	Host, Crawler, Kind, Identity, Decision string
	Rule, Policy                            string
	Path                                    string
}

// RowOf returns the row of a request. The strings of its key may be parts of the request.
func RowOf(v *activity.Request) (Key, Counts) {
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
	return Key{
		Hour: v.Time.Unix() / 3600, Host: v.Host, Crawler: v.Crawler, Kind: v.Category, Identity: string(v.Identity),
		Decision: string(v.Decision), Rule: v.Rule, Policy: v.Policy, Path: v.Path,
	}, c
}

// clone returns a key that does not refer to the request.
func (k Key) clone() Key {
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

// Add adds d to c.
func (c *Counts) Add(d Counts) {
	c.Requests += d.Requests
	c.Bytes += d.Bytes
	c.Violations += d.Violations
	c.Queries += d.Queries
	c.Unread += d.Unread
}

// Read says that a crawler of an identity read a version of the robots.txt of a host, in which form, and which
// publication was in force.
type Read struct {
	Host, Crawler, Identity, Version, Form, Publication, Number string
}

// Times say when something happened, in seconds since 1970, and how often.
type Times struct {
	First, Last, Count int64
}

// Add adds u to t.
func (t *Times) Add(u Times) {
	if t.Count == 0 || u.First < t.First {
		t.First = u.First
	}
	t.Last = max(t.Last, u.Last)
	t.Count += u.Count
}

// Sums are totals in memory. They hold at most twice as many rows with paths of their own as their limit.
type Sums struct {
	limit int
	paths int // rows with paths of their own
	Rows  map[Key]*Counts
	Reads map[Read]*Times
	Lost  map[int64]int64 // requests that were not recorded, by the hour
}

// NewSums returns empty sums. Beyond 2*limit rows with paths of their own, those with the fewest requests are summed
// up under [OtherPath], until limit rows are left; rows of verified search crawlers last.
func NewSums(limit int) *Sums {
	return &Sums{limit: limit, Rows: map[Key]*Counts{}, Reads: map[Read]*Times{}, Lost: map[int64]int64{}}
}

// Empty reports whether there is nothing in s.
func (s *Sums) Empty() bool { return len(s.Rows) == 0 && len(s.Reads) == 0 && len(s.Lost) == 0 }

// AddVisit adds a request.
func (s *Sums) AddVisit(v *activity.Request) {
	s.Add(RowOf(v))
	if v.RobotsTxt && v.Robots != "" && v.Identity != activity.Impostor && v.Identity != activity.Audit {
		at := v.Time.Unix()
		s.addRead(Read{v.Host, v.Crawler, string(v.Identity), v.Robots, v.Form, v.Publication, v.Number}, Times{at, at, 1})
	}
}

// Add adds counts to a row. The key may refer to the request.
func (s *Sums) Add(k Key, c Counts) {
	row := s.Rows[k]
	if row == nil {
		if s.paths >= 2*s.limit {
			s.trim()
		}
		k = k.clone()
		if row = s.Rows[k]; row == nil {
			row = new(Counts)
			s.Rows[k] = row
			if k.Path != OtherPath {
				s.paths++
			}
		}
	}
	row.Add(c)
}

// maxReads bounds the reads of robots.txt that wait for the database.
const maxReads = 10_000

// addRead adds reads of a robots.txt. The strings of r may be parts of the request.
func (s *Sums) addRead(r Read, t Times) {
	have := s.Reads[r]
	if have == nil {
		if len(s.Reads) >= maxReads {
			return
		}
		have = new(Times)
		r.Host, r.Crawler, r.Version = activity.Text(r.Host), activity.Text(r.Crawler), activity.Text(r.Version)
		s.Reads[r] = have
	}
	have.Add(t)
}

// AddAll adds other sums.
func (s *Sums) AddAll(other *Sums) {
	for k, c := range other.Rows {
		s.Add(k, *c)
	}
	for r, t := range other.Reads {
		s.addRead(r, *t)
	}
	for hour, n := range other.Lost {
		s.Lost[hour] += n
	}
}

// foldOrder is 0 for rows of verified search crawlers and 1 for the others, which are folded
// before them. A client that asks for many paths cannot hide the requests of search engines.
func (k *Key) foldOrder() int {
	if k.Kind == "search" && k.Identity == string(activity.Verified) {
		return 0
	}
	return 1
}

// trim leaves limit rows, those of verified search crawlers first and then those that have the most requests, and
// sums up the others without their paths. A path that is requested often survives, as each trim takes from it at most
// what the smallest of the remaining rows has.
func (s *Sums) trim() {
	all := make([]row, 0, len(s.Rows))
	for k, c := range s.Rows {
		if k.Path != OtherPath {
			all = append(all, row{k, *c})
		}
	}
	slices.SortFunc(all, func(a, b row) int {
		return cmp.Or(cmp.Compare(a.foldOrder(), b.foldOrder()), cmp.Compare(b.Requests, a.Requests), strings.Compare(a.Path, b.Path))
	})
	s.paths = min(s.limit, len(all))
	for _, r := range all[s.paths:] {
		delete(s.Rows, r.Key)
		r.Path = OtherPath
		s.Add(r.Key, r.Counts)
	}
}
