// SPDX-License-Identifier: Apache-2.0

package store

import (
	"cmp"
	"context"
	"database/sql"
	"slices"
	"time"

	"github.com/robotspolicy/caddy-robots-policy/activity/store/journal"
)

// The kinds of [Version].
const (
	PolicyVersion = "policy"
	RobotsVersion = "robots"
)

// Version is a text as it was published.
type Version struct {
	Kind    string // PolicyVersion or RobotsVersion
	Version string // what visits call it
	Host    string // of a robots.txt; empty for a policy
	Name    string // of the policy's source
	Number  string // of the publication that it was last part of
	First   time.Time
	Text    string
}

// Publish records a version, or the number of the publication that a known one is part of
// now. It waits for the disk.
func (s *Store) Publish(ctx context.Context, v Version) error {
	_, err := s.db.ExecContext(ctx, "INSERT INTO versions VALUES (?, ?, ?, ?, ?, ?, ?) ON CONFLICT DO UPDATE SET number = excluded.number",
		v.Kind, v.Version, v.Host, v.Name, v.First.Unix(), v.Text, v.Number)
	return err
}

// Versions lists the versions of a kind, the newest first. An empty host stands for
// every host.
func (r *Reader) Versions(ctx context.Context, kind, host string) ([]Version, error) {
	var all []Version
	err := each(ctx, r.db, func(rows *sql.Rows) error {
		var v Version
		var first int64
		err := rows.Scan(&v.Kind, &v.Version, &v.Host, &v.Name, &first, &v.Text, &v.Number)
		v.First = time.Unix(first, 0).UTC()
		all = append(all, v)
		return err
	}, "SELECT kind, version, host, name, first, text, number FROM versions WHERE kind = ? AND (? = '' OR host = ?)"+
		" ORDER BY first DESC, version, host", kind, host, host)
	return all, err
}

// PolicyVersions lists the versions of the policies from a source.
func (r *Reader) PolicyVersions(ctx context.Context, name string) ([]string, error) {
	var all []string
	err := each(ctx, r.db, func(rows *sql.Rows) error {
		all = append(all, "")
		return rows.Scan(&all[len(all)-1])
	}, "SELECT version FROM versions WHERE kind = ? AND name = ?", PolicyVersion, name)
	return all, err
}

// Read is that a crawler read a version of a host's robots.txt.
type Read struct {
	Host, Crawler, Version string
	First, Last            time.Time
	Requests               int64
}

// Reads lists who read which robots.txt, the latest first. An empty crawler or
// version stands for every one.
func (r *Reader) Reads(ctx context.Context, crawler, version string) ([]Read, error) {
	var all map[journal.Read]*journal.Times
	err := r.snapshot(ctx, func(tx *sql.Tx, pending *journal.Sums) error {
		all = map[journal.Read]*journal.Times{}
		if err := storedReads(ctx, tx, all); err != nil {
			return err
		}
		for r, t := range pending.Reads {
			if all[r] == nil {
				all[r] = new(journal.Times)
			}
			all[r].Add(*t)
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	var list []Read
	for r, t := range all {
		if (crawler == "" || r.Crawler == crawler) && (version == "" || r.Version == version) {
			list = append(list, Read{r.Host, r.Crawler, r.Version, time.Unix(t.First, 0).UTC(), time.Unix(t.Last, 0).UTC(), t.Count})
		}
	}
	slices.SortFunc(list, func(a, b Read) int {
		return cmp.Or(b.Last.Compare(a.Last), cmp.Compare(a.Crawler, b.Crawler), cmp.Compare(a.Host, b.Host), cmp.Compare(a.Version, b.Version))
	})
	return list, nil
}

func storedReads(ctx context.Context, tx *sql.Tx, into map[journal.Read]*journal.Times) error {
	return each(ctx, tx, func(rows *sql.Rows) error {
		var r journal.Read
		t := new(journal.Times)
		err := rows.Scan(&r.Host, &r.Crawler, &r.Version, &t.First, &t.Last, &t.Count)
		into[r] = t
		return err
	}, "SELECT h.text, c.text, v.text, first, last, requests FROM reads"+
		" JOIN strings AS h ON h.id = host JOIN strings AS c ON c.id = crawler JOIN strings AS v ON v.id = version")
}

// Crawler is a crawler that came.
type Crawler struct {
	Name, Kind  string
	First, Last time.Time // to the hour
}

// Crawlers lists the crawlers that have visits in the store, by name.
func (r *Reader) Crawlers(ctx context.Context) ([]Crawler, error) {
	type seen struct {
		kind        string
		first, last int64
	}
	var all map[string]seen
	err := r.snapshot(ctx, func(tx *sql.Tx, pending *journal.Sums) error {
		all = map[string]seen{}
		err := each(ctx, tx, func(rows *sql.Rows) error {
			var name string
			var s seen
			err := rows.Scan(&name, &s.kind, &s.first, &s.last)
			all[name] = s
			return err
		}, "SELECT c.text, k.text, first, last FROM crawlers JOIN strings AS c ON c.id = crawler JOIN strings AS k ON k.id = kind")
		for k := range pending.Rows {
			at := k.Hour * 3600
			s, ok := all[k.Crawler]
			if !ok {
				s.first = at
			}
			all[k.Crawler] = seen{k.Kind, min(s.first, at), max(s.last, at)}
		}
		return err
	})
	if err != nil {
		return nil, err
	}
	list := make([]Crawler, 0, len(all))
	for name, s := range all {
		list = append(list, Crawler{name, s.kind, time.Unix(s.first, 0).UTC(), time.Unix(s.last, 0).UTC()})
	}
	slices.SortFunc(list, func(a, b Crawler) int { return cmp.Compare(a.Name, b.Name) })
	return list, nil
}

// Delete removes all rows of a crawler or of a host, or of the one at the other if
// both are given, and the texts that nothing names any more. Nothing of them remains in the
// files, and the database shrinks.
func (s *Store) Delete(ctx context.Context, crawler, host string) error {
	tx, err := s.db.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	defer rollback(tx)
	for _, table := range []string{"hours", "days", "path_hours", "path_days", "reads"} {
		if _, err := tx.ExecContext(ctx, "DELETE FROM "+table+" WHERE (? = '' OR crawler = (SELECT id FROM strings WHERE text = ?))"+
			" AND (? = '' OR host = (SELECT id FROM strings WHERE text = ?)) AND (? <> '' OR ? <> '')", crawler, crawler, host, host, crawler, host); err != nil {
			return err
		}
	}
	if _, err := tx.ExecContext(ctx, "DELETE FROM versions WHERE host = ? AND ? <> '' AND ? = ''", host, host, crawler); err != nil {
		return err
	}
	if err := tx.Commit(); err != nil {
		return err
	}
	if err := s.sweep(ctx); err != nil {
		return err
	}
	// Freed pages still hold what was deleted: the file is written anew without them.
	_, err = s.db.ExecContext(ctx, "VACUUM; PRAGMA wal_checkpoint(TRUNCATE)")
	return err
}
