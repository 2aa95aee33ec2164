// SPDX-License-Identifier: Apache-2.0

package store

import (
	"cmp"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"strings"
)

// Names in the table "meta".
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

// change calls the function do with a transaction, and with a revision that is greater than all earlier ones. The
// revision is a time, so that revisions do not decrease if an older copy of the database is restored.
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

// mergeTables creates empty temporary tables for sums.
const mergeTables = `
CREATE TEMP TABLE IF NOT EXISTS new_rows (` + pathTexts + `, category, hour, ` + countColumns + `);
CREATE TEMP TABLE IF NOT EXISTS new_reads (` + readTexts + `, first, last, requests);
CREATE TEMP TABLE IF NOT EXISTS new_lost (hour, requests);
DELETE FROM new_rows; DELETE FROM new_reads; DELETE FROM new_lost;`

// mergeStatements are the SQL statements that add the sums in the temporary tables to the database. Their parameter is
// the revision.
var mergeStatements = func() string {
	all := []string{"INSERT OR IGNORE INTO strings (text) VALUES ('" + OtherPath + "')"} // fold needs OtherPath in this table
	for _, t := range [][2]string{{"new_rows", pathTexts + ", category"}, {"new_reads", readTexts}} {
		columns := columnList(t[1])
		for i, column := range columns {
			all = append(all, "INSERT OR IGNORE INTO strings (text) SELECT DISTINCT "+column+" FROM "+t[0])
			columns[i] = column + " = (SELECT id FROM strings WHERE text = " + column + ")"
		}
		all = append(all, "UPDATE "+t[0]+" SET "+strings.Join(columns, ", "))
	}
	for _, t := range []table{pathHourTable, hourTable, dayTable} {
		bucket := fmt.Sprintf("hour / %d", t.hours)
		all = append(all, t.insert()+" SELECT "+bucket+", "+t.texts+", "+sumCounts+", ?1 FROM new_rows WHERE true GROUP BY "+bucket+", "+t.texts+addExcluded,
			touchAll(t.name, bucket, "new_rows"))
	}
	const add = " WHERE true ON CONFLICT DO UPDATE SET changed = excluded.changed, requests = requests + excluded.requests"
	const extend = ", first = min(first, excluded.first), last = max(last, excluded.last)"
	return strings.Join(append(all,
		"INSERT INTO crawlers SELECT crawler, category, min(hour) * 3600, max(hour) * 3600, ?1 FROM new_rows WHERE true GROUP BY crawler"+
			" ON CONFLICT DO UPDATE SET category = excluded.category"+extend+
			", changed = iif(category = excluded.category AND first <= excluded.first AND last >= excluded.last, changed, excluded.changed)",
		touchAll("crawlers", "0", "new_rows"),
		"INSERT INTO reads SELECT *, ?1 FROM new_reads"+add+extend, touchAll("reads", "0", "new_reads"),
		"INSERT INTO not_recorded SELECT *, ?1 FROM new_lost"+add, touchAll("not_recorded", "hour", "new_lost")), ";")
}()

// touchAll returns the statement that marks rows of the table name as changed, so that they are sent to the fleet's
// database. It marks whole buckets: the hours or days (the expression bucket) of all rows in the table from. In tables
// without time, bucket is 0 for all rows. touch does the same for one bucket.
func touchAll(name, bucket, from string) string {
	return "INSERT INTO outbox SELECT DISTINCT '" + name + "', " + bucket + ", ?1, 0, 0 FROM " + from + " WHERE true ON CONFLICT DO UPDATE SET changed = excluded.changed"
}

// merge adds sums to the totals in the database.
func (s *Store) merge(ctx context.Context, add *sums) error {
	return s.change(ctx, func(tx *sql.Tx, revision int64) error {
		if err := fillTables(ctx, tx, add); err != nil {
			return err
		}
		if _, err := tx.ExecContext(ctx, mergeStatements, revision); err != nil {
			return err
		}
		hours, err := list(ctx, tx, func(hour *int64) []any { return []any{hour} }, "SELECT DISTINCT hour FROM new_rows")
		for _, hour := range hours {
			// fold keeps only three quarters of n rows, so that the next merges need not remove rows again.
			n := s.options().RowsPerHour
			err = cmp.Or(err, pathHourTable.fold(ctx, tx, hour, n, max(1, n*3/4), revision))
		}
		return err
	})
}

// fillTables writes sums to the temporary tables.
func fillTables(ctx context.Context, tx *sql.Tx, add *sums) error {
	_, err := tx.ExecContext(ctx, mergeTables)
	prepared := map[string]*sql.Stmt{} // closed at the end of tx
	insert := func(into string, values ...any) {
		if err == nil && prepared[into] == nil {
			prepared[into], err = tx.PrepareContext(ctx, "INSERT INTO "+into+" VALUES (?"+strings.Repeat(", ?", len(values)-1)+")")
		}
		if err == nil {
			_, err = prepared[into].ExecContext(ctx, values...)
		}
	}
	for k, c := range add.rows {
		insert("new_rows", k.Host, k.Crawler, k.Identity, k.Decision, k.Rule, k.Policy, k.Path, k.Kind, k.Hour, c.Requests, c.Bytes, c.Violations, c.Queries, c.Unread)
	}
	for r, t := range add.reads {
		insert("new_reads", r.Host, r.Crawler, r.Identity, r.Version, r.Form, r.Publication, r.Number, t.First, t.Last, t.Count)
	}
	for hour, n := range add.lost {
		insert("new_lost", hour, n)
	}
	return err
}

// otherPath is an SQL expression for the number of [OtherPath] in the table "strings".
const otherPath = "(SELECT id FROM strings WHERE text = '" + OtherPath + "')"

// verifiedSearch is an SQL condition for rows of verified search crawlers. fold adds up such rows last.
const verifiedSearch = "(identity = (SELECT id FROM strings WHERE text = 'verified') AND crawler IN" +
	" (SELECT crawler FROM crawlers WHERE category = (SELECT id FROM strings WHERE text = 'search')))"

// fold limits the rows with paths in one hour or day. If there are more than limit rows, it keeps the rows with the
// most requests, and adds up the others under [OtherPath]. keep is the number of kept rows.
//
// Some rows of this hour or day may already be in a fleet's database. If all of its rows were sent, the rows in the
// fleet's database remain as they are. If only some of them were sent, the folded rows remain in this database as empty
// rows. When these are sent, they replace the rows in the fleet's database.
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
