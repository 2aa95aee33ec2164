// SPDX-License-Identifier: Apache-2.0

package store

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"net/url"
	"path/filepath"
	"strings"

	_ "modernc.org/sqlite" // the database driver
)

// schemaVersion is the version of the database format, stored as PRAGMA user_version. Databases of other versions are
// not opened.
const schemaVersion = 8

// table is one of the four tables of totals. In its rows, each text is replaced by the number that the text has in the
// table "strings". The rows are ordered so that the rows of a period can be read, and the oldest rows deleted, quickly.
type table struct {
	name, bucket string // bucket is the column of the time
	hours        int64  // number of hours in a bucket
	texts        string // columns with the numbers of texts
}

const (
	rowTexts     = "host, crawler, identity, decision, rule, policy"
	pathTexts    = rowTexts + ", path"
	readTexts    = "host, crawler, identity, robots, form, version_hash, version"
	countColumns = "requests, bytes, violations, queries, unread"
	// changedColumn is the SQL definition of the column that holds the revision in which a row was last changed.
	changedColumn = "changed INTEGER NOT NULL"
	// sumCounts adds up the columns with counts.
	sumCounts = "sum(requests), sum(bytes), sum(violations), sum(queries), sum(unread)"
)

var (
	hourTable     = table{"hours", "hour", 1, rowTexts}
	dayTable      = table{"days", "day", 24, rowTexts}
	pathHourTable = table{"path_hours", "hour", 1, pathTexts}
	pathDayTable  = table{"path_days", "day", 24, pathTexts}
)

var schema = `
CREATE TABLE strings (id INTEGER PRIMARY KEY, text TEXT NOT NULL UNIQUE);
CREATE TABLE meta (name TEXT PRIMARY KEY, value INTEGER NOT NULL) WITHOUT ROWID;
CREATE TABLE crawlers (
	crawler INTEGER PRIMARY KEY, category INTEGER NOT NULL, first INTEGER NOT NULL, last INTEGER NOT NULL, ` + changedColumn + `);
` + hourTable.create() + dayTable.create() + pathHourTable.create() + pathDayTable.create() + `
` + readsTable + publicationTables + outboxTable

const (
	readsTable = `
CREATE TABLE reads (
	host INTEGER NOT NULL, crawler INTEGER NOT NULL, identity INTEGER NOT NULL, robots INTEGER NOT NULL, form INTEGER NOT NULL,
	version_hash INTEGER NOT NULL, version INTEGER NOT NULL,
	first INTEGER NOT NULL, last INTEGER NOT NULL, requests INTEGER NOT NULL, ` + changedColumn + `,
	PRIMARY KEY (` + readTexts + `)) WITHOUT ROWID;
`
	// These tables hold publications, the periods when they were in force, the robots.txt files that crawlers received,
	// and the numbers of unrecorded requests. The column policy of the table versions has the same values as the column
	// policy of the tables of totals.
	publicationTables = `
CREATE TABLE versions (
	hash TEXT NOT NULL, version TEXT NOT NULL, name TEXT NOT NULL, policy TEXT NOT NULL,
	first INTEGER NOT NULL, text TEXT NOT NULL, ` + changedColumn + `, PRIMARY KEY (hash, version, name));
CREATE TABLE in_force (
	hash TEXT NOT NULL, version TEXT NOT NULL, name TEXT NOT NULL, since TEXT NOT NULL,
	first INTEGER NOT NULL, last INTEGER NOT NULL, ` + changedColumn + `, PRIMARY KEY (hash, version, name, since)) WITHOUT ROWID;
CREATE TABLE documents (
	version_hash TEXT NOT NULL, host TEXT NOT NULL, etag TEXT NOT NULL,
	first INTEGER NOT NULL, text TEXT NOT NULL, ` + changedColumn + `, PRIMARY KEY (version_hash, host, etag));
CREATE TABLE not_recorded (hour INTEGER PRIMARY KEY, requests INTEGER NOT NULL, ` + changedColumn + `);
`
	// The outbox has a row for each hour or day of a table, and a row with bucket 0 for a table without time. changed
	// is the revision of the last change, and sent is the revision that was last sent completely. begun is 1 if sending
	// has begun, so some of the rows may already have arrived.
	outboxTable = `
CREATE TABLE outbox (
	name TEXT NOT NULL, bucket INTEGER NOT NULL, changed INTEGER NOT NULL, begun INTEGER NOT NULL, sent INTEGER NOT NULL,
	PRIMARY KEY (name, bucket)) WITHOUT ROWID;
`
)

func (t table) create() string {
	texts := strings.ReplaceAll(t.texts, ",", " INTEGER NOT NULL,")
	return fmt.Sprintf(`
CREATE TABLE %s (
	%s INTEGER NOT NULL, %s INTEGER NOT NULL,
	requests INTEGER NOT NULL, bytes INTEGER NOT NULL, violations INTEGER NOT NULL, queries INTEGER NOT NULL, unread INTEGER NOT NULL, %s,
	PRIMARY KEY (%[2]s, %[5]s)) WITHOUT ROWID;`,
		t.name, t.bucket, texts, changedColumn, t.texts)
}

// insert returns the beginning of a statement that adds rows. The values follow it.
func (t table) insert() string {
	return fmt.Sprintf("INSERT INTO %s (%s, %s, %s, changed)", t.name, t.bucket, t.texts, countColumns)
}

// addExcluded is the end of an SQL statement that inserts rows. If a row already exists, the statement adds the new
// counts to this row.
const addExcluded = " ON CONFLICT DO UPDATE SET requests = requests + excluded.requests, bytes = bytes + excluded.bytes," +
	" violations = violations + excluded.violations, queries = queries + excluded.queries, unread = unread + excluded.unread," +
	" changed = max(changed, excluded.changed)"

const databaseName = "activity.db"

// openDatabase opens the database in a directory. If write is true, it creates a missing database.
func openDatabase(ctx context.Context, dir string, write bool) (*sql.DB, error) {
	name := filepath.Join(dir, databaseName)
	connections, pragmas := 4, url.Values{"_pragma": {"busy_timeout(10000)", "query_only(1)", "cache_size(-8192)"}}
	if write {
		connections = 1
		pragmas = url.Values{"_pragma": {
			"busy_timeout(10000)", "journal_mode(WAL)", "synchronous(NORMAL)", "journal_size_limit(16777216)", "cache_size(-8192)", "temp_store(MEMORY)",
		}}
	}
	db, err := sql.Open("sqlite", "file:"+(&url.URL{Path: filepath.ToSlash(name)}).EscapedPath()+"?"+pragmas.Encode())
	if err != nil {
		return nil, err
	}
	db.SetMaxOpenConns(connections)
	if err := prepare(ctx, db, name); err != nil {
		return nil, errors.Join(explain(dir, err), db.Close())
	}
	return db, nil
}

func prepare(ctx context.Context, db *sql.DB, name string) error {
	var version int
	if err := db.QueryRowContext(ctx, "PRAGMA user_version").Scan(&version); err != nil {
		return fmt.Errorf("opening %s: %w", name, err)
	}
	switch {
	case version == schemaVersion:
		return nil
	case version > schemaVersion:
		return fmt.Errorf("%s has format %d, which a newer version of this program writes, but this version reads format %d. Use the newer version, or move the directory of the database away, and Caddy begins a new database", name, version, schemaVersion)
	case version > 0:
		return fmt.Errorf("%s has format %d, which is too old: move its directory away, and Caddy begins a new database", name, version)
	}
	return within(ctx, db, func(tx *sql.Tx) error {
		if _, err := tx.ExecContext(ctx, schema+fmt.Sprintf("PRAGMA user_version = %d;", schemaVersion)); err != nil {
			return fmt.Errorf("creating %s: %w", name, err)
		}
		return nil
	})
}

// within calls the function do with a transaction. It commits the transaction if do returns nil.
func within(ctx context.Context, db *sql.DB, do func(tx *sql.Tx) error) error {
	tx, err := db.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	defer tx.Rollback() //nolint:errcheck // has no effect after a commit
	if err := do(tx); err != nil {
		return err
	}
	return tx.Commit()
}

type querier interface {
	QueryContext(ctx context.Context, query string, args ...any) (*sql.Rows, error)
	QueryRowContext(ctx context.Context, query string, args ...any) *sql.Row
	ExecContext(ctx context.Context, query string, args ...any) (sql.Result, error)
}

func each(ctx context.Context, q querier, scan func(*sql.Rows) error, text string, args ...any) error {
	rows, err := q.QueryContext(ctx, text, args...)
	if err != nil {
		return err
	}
	defer rows.Close()
	for rows.Next() {
		if err := scan(rows); err != nil {
			return err
		}
	}
	return rows.Err()
}

// list returns the rows of a query as values of T. fields returns the pointers to scan a row into.
func list[T any](ctx context.Context, q querier, fields func(*T) []any, text string, args ...any) (all []T, err error) {
	err = each(ctx, q, func(rows *sql.Rows) error {
		var row T
		err := rows.Scan(fields(&row)...)
		all = append(all, row)
		return err
	}, text, args...)
	return all, err
}
