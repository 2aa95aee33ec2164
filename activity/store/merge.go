// SPDX-License-Identifier: Apache-2.0

package store

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
)

// Names in the table meta.
const (
	metaOpen     = "open"     // 1 while a process has the database open; the 1 remains if the process is killed
	metaRolled   = "rolled"   // the last day in path_days
	metaSwept    = "swept"    // the day on which unused texts were last deleted
	metaRevision = "revision" // the revision of the last change; usually its time in milliseconds since 1970
	metaStore    = "store"    // a random number that distinguishes the databases of a server
	metaComplete = "complete" // time when everything was last sent, in seconds since 1970
	metaShrunk   = "shrunk"   // time of the last deletion because of the size, in seconds since 1970
)

func meta(ctx context.Context, q querier, name string) (int64, error) {
	var v int64
	err := q.QueryRowContext(ctx, "SELECT value FROM meta WHERE name = ?", name).Scan(&v)
	if errors.Is(err, sql.ErrNoRows) {
		err = nil
	}
	return v, err
}

// change calls do with a transaction, and with a revision that is greater than all earlier ones. The revision is a
// time, so that it does not go back if an older copy of the database is restored.
func (s *Store) change(ctx context.Context, do func(tx *sql.Tx, revision int64) error) error {
	return within(ctx, s.db, func(tx *sql.Tx) error {
		last, err := meta(ctx, tx, metaRevision)
		if err != nil {
			return err
		}
		revision := max(last+1, s.options().Now().UnixMilli())
		if err := setMeta(ctx, tx, metaRevision, revision); err != nil {
			return err
		}
		return do(tx, revision)
	})
}

func touch(ctx context.Context, q querier, name string, bucket, revision int64) error {
	_, err := q.ExecContext(ctx, "INSERT INTO outbox VALUES (?, ?, ?, 0, 0) ON CONFLICT DO UPDATE SET changed = excluded.changed", name, bucket, revision)
	return err
}

func setMeta(ctx context.Context, q querier, name string, v int64) error {
	_, err := q.ExecContext(ctx, "INSERT INTO meta VALUES (?, ?) ON CONFLICT DO UPDATE SET value = excluded.value", name, v)
	return err
}

// merge adds sums to the totals in the database.
func (s *Store) merge(ctx context.Context, add *sums) error {
	return s.change(ctx, func(tx *sql.Tx, revision int64) error {
		m, err := newMerging(ctx, tx, revision)
		if err != nil {
			return err
		}
		for k, c := range add.rows {
			if err := m.row(k, c); err != nil {
				return err
			}
		}
		for r, t := range add.reads {
			if err := m.read(r, t); err != nil {
				return err
			}
		}
		if err := m.totals(); err != nil {
			return err
		}
		for hour, n := range add.lost {
			if _, err := tx.ExecContext(ctx, "INSERT INTO not_recorded VALUES (?, ?, ?) ON CONFLICT DO UPDATE SET requests = requests + excluded.requests, changed = excluded.changed", hour, n, revision); err != nil {
				return err
			}
			m.touched[touched{"not_recorded", hour}] = true
		}
		for t := range m.touched {
			if err := touch(ctx, tx, t.name, t.bucket, revision); err != nil {
				return err
			}
		}
		for hour := range m.hours {
			// Three quarters of the rows remain, so that the next merges need not call fold again.
			n := s.options().RowsPerHour
			if err := pathHourTable.fold(ctx, tx, hour, n, max(1, n*3/4), revision); err != nil {
				return err
			}
		}
		return nil
	})
}

type merging struct {
	ctx                      context.Context
	intern, path, totalOf    *sql.Stmt
	dayOf, crawler, readInto *sql.Stmt
	ids                      map[string]int64
	hours                    map[int64]bool
	sum                      map[total]*Counts
	seen                     map[int64]*seenCrawler
	revision                 int64
	touched                  map[touched]bool
}

type touched struct {
	name   string
	bucket int64
}

// total identifies a row without a path. Its fields are the numbers of texts.
type total struct{ hour, host, crawler, identity, decision, rule, policy int64 }

type seenCrawler struct{ kind, first, last int64 }

func newMerging(ctx context.Context, tx *sql.Tx, revision int64) (*merging, error) {
	m := &merging{ctx: ctx, revision: revision, ids: map[string]int64{}, hours: map[int64]bool{}, sum: map[total]*Counts{}, seen: map[int64]*seenCrawler{}, touched: map[touched]bool{}}
	for stmt, text := range map[**sql.Stmt]string{
		// The update does not change the text, but makes RETURNING return the id of an existing text.
		&m.intern:  "INSERT INTO strings (text) VALUES (?) ON CONFLICT (text) DO UPDATE SET text = text RETURNING id",
		&m.path:    pathHourTable.insert() + " VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)" + addExcluded,
		&m.totalOf: hourTable.insert() + " VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)" + addExcluded,
		&m.dayOf:   dayTable.insert() + " VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)" + addExcluded,
		&m.crawler: "INSERT INTO crawlers VALUES (?, ?, ?, ?, ?) ON CONFLICT DO UPDATE SET" +
			" changed = iif(category = excluded.category AND first <= excluded.first AND last >= excluded.last, changed, excluded.changed)," +
			" category = excluded.category, first = min(first, excluded.first), last = max(last, excluded.last)",
		&m.readInto: "INSERT INTO reads VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT DO UPDATE SET changed = excluded.changed," +
			" first = min(first, excluded.first), last = max(last, excluded.last), requests = requests + excluded.requests",
	} {
		var err error
		if *stmt, err = tx.PrepareContext(ctx, text); err != nil { // closed at the end of tx
			return nil, err
		}
	}
	_, err := m.id(OtherPath) // fold needs the number of OtherPath
	return m, err
}

func (m *merging) id(text string) (int64, error) {
	if id, ok := m.ids[text]; ok {
		return id, nil
	}
	var id int64
	err := m.intern.QueryRowContext(m.ctx, text).Scan(&id)
	if err == nil {
		m.ids[text] = id
	}
	return id, err
}

func (m *merging) numbers(texts ...string) (ids []int64, err error) {
	ids = make([]int64, len(texts))
	for i, t := range texts {
		if ids[i], err = m.id(t); err != nil {
			return nil, err
		}
	}
	return ids, nil
}

func (m *merging) row(k sumKey, c *Counts) error {
	n, err := m.numbers(k.Host, k.Crawler, k.Identity, k.Decision, k.Rule, k.Policy, k.Path, k.Kind)
	if err != nil {
		return err
	}
	if _, err := m.path.ExecContext(m.ctx, k.Hour, n[0], n[1], n[2], n[3], n[4], n[5], n[6], c.Requests, c.Bytes, c.Violations, c.Queries, c.Unread, m.revision); err != nil {
		return err
	}
	m.hours[k.Hour] = true
	m.touched[touched{"path_hours", k.Hour}] = true
	t := total{k.Hour, n[0], n[1], n[2], n[3], n[4], n[5]}
	if m.sum[t] == nil {
		m.sum[t] = new(Counts)
	}
	m.sum[t].add(*c)
	at := k.Hour * 3600
	if cr := m.seen[n[1]]; cr == nil {
		m.seen[n[1]] = &seenCrawler{n[7], at, at}
	} else {
		cr.kind, cr.first, cr.last = n[7], min(cr.first, at), max(cr.last, at)
	}
	return nil
}

func (m *merging) read(r readKey, t *times) error {
	n, err := m.numbers(r.Host, r.Crawler, r.Identity, r.Version, r.Form, r.Publication, r.Number)
	if err != nil {
		return err
	}
	_, err = m.readInto.ExecContext(m.ctx, n[0], n[1], n[2], n[3], n[4], n[5], n[6], t.First, t.Last, t.Count, m.revision)
	m.touched[touched{"reads", 0}] = true
	return err
}

// totals adds the totals without paths, and the crawlers.
func (m *merging) totals() error {
	for t, c := range m.sum {
		for _, into := range []struct {
			stmt *sql.Stmt
			touched
		}{{m.totalOf, touched{"hours", t.hour}}, {m.dayOf, touched{"days", t.hour / 24}}} {
			m.touched[into.touched] = true
			if _, err := into.stmt.ExecContext(m.ctx, into.bucket, t.host, t.crawler, t.identity, t.decision, t.rule, t.policy, c.Requests, c.Bytes, c.Violations, c.Queries, c.Unread, m.revision); err != nil {
				return err
			}
		}
	}
	for id, cr := range m.seen {
		if _, err := m.crawler.ExecContext(m.ctx, id, cr.kind, cr.first, cr.last, m.revision); err != nil {
			return err
		}
		m.touched[touched{"crawlers", 0}] = true
	}
	return nil
}

// otherPath is an SQL expression for the number of [OtherPath].
const otherPath = "(SELECT id FROM strings WHERE text = '" + OtherPath + "')"

// verifiedSearch is an SQL condition for rows of verified search crawlers. Such rows are folded last.
const verifiedSearch = "(identity = (SELECT id FROM strings WHERE text = 'verified') AND crawler IN" +
	" (SELECT crawler FROM crawlers WHERE category = (SELECT id FROM strings WHERE text = 'search')))"

// fold limits the rows with paths in one hour or day. If there are more than limit rows, it keeps the keep rows with
// the most requests, and adds up the others under [OtherPath]. Rows that were already sent completely to a fleet's
// database remain unchanged there. If the rows were sent only in part, the folded rows remain here as empty rows until
// those have been sent, too.
func (t table) fold(ctx context.Context, tx *sql.Tx, at int64, limit, keep int, revision int64) error {
	var n int
	if err := tx.QueryRowContext(ctx, "SELECT count(*) FROM "+t.name+" WHERE "+t.bucket+" = ? AND requests > 0", at).Scan(&n); err != nil || n <= limit {
		return err
	}
	var begun, sent bool
	if err := tx.QueryRowContext(ctx, "SELECT coalesce(max(begun), 0), coalesce(max(sent >= changed), 0) FROM outbox WHERE name = ? AND bucket = ?", t.name, at).Scan(&begun, &sent); err != nil {
		return err
	}
	remove := "DELETE FROM " + t.name
	switch {
	case sent:
		revision = 0
	case begun:
		remove = fmt.Sprintf("UPDATE %s SET requests = 0, bytes = 0, violations = 0, queries = 0, unread = 0, changed = %d", t.name, revision)
	}
	for _, stmt := range []struct {
		text string
		args []any
	}{
		{"CREATE TEMP TABLE folded AS SELECT " + pathTexts + ", " + countColumns + " FROM " + t.name +
			" WHERE " + t.bucket + " = ? AND requests > 0 AND path <> " + otherPath + " ORDER BY " + verifiedSearch + " DESC, requests DESC, path LIMIT -1 OFFSET ?", []any{at, keep}},
		{remove + " WHERE (" + t.bucket + ", " + pathTexts + ") IN (SELECT ?, " + pathTexts + " FROM folded)", []any{at}},
		{t.insert() + " SELECT ?, " + rowTexts + ", " + otherPath + ", " + sumCounts + ", ? FROM folded WHERE true GROUP BY " + rowTexts + addExcluded, []any{at, revision}},
		{"DROP TABLE folded", nil},
	} {
		if _, err := tx.ExecContext(ctx, stmt.text, stmt.args...); err != nil {
			return err
		}
	}
	if sent {
		return nil
	}
	return touch(ctx, tx, t.name, at, revision)
}
