// SPDX-License-Identifier: Apache-2.0

package store

import (
	"context"
	"database/sql"
	"fmt"
	"net/url"
	"path/filepath"

	_ "modernc.org/sqlite" // the driver
)

// schemaVersion is PRAGMA user_version: the format of the database and of the journals
// beside it. A database of another version is not opened. Format 1 counted no queries.
const schemaVersion = 2

// The rows of the four tables of totals name their texts by the number that
// strings gives them. The clustering order serves the screens, which ask for a
// span of time, and the deletion of the oldest rows.
var schema = `
CREATE TABLE strings (id INTEGER PRIMARY KEY, text TEXT NOT NULL UNIQUE);
CREATE TABLE meta (name TEXT PRIMARY KEY, value INTEGER NOT NULL) WITHOUT ROWID;
CREATE TABLE crawlers (
	crawler INTEGER PRIMARY KEY, kind INTEGER NOT NULL, first INTEGER NOT NULL, last INTEGER NOT NULL);
` + totalsTable("hours", "hour", false) + totalsTable("days", "day", false) +
	totalsTable("path_hours", "hour", true) + totalsTable("path_days", "day", true) + `
CREATE TABLE versions (
	kind TEXT NOT NULL, version TEXT NOT NULL, host TEXT NOT NULL, name TEXT NOT NULL,
	first INTEGER NOT NULL, text TEXT NOT NULL, PRIMARY KEY (kind, version, host)) WITHOUT ROWID;
CREATE TABLE reads (
	host INTEGER NOT NULL, crawler INTEGER NOT NULL, version INTEGER NOT NULL,
	first INTEGER NOT NULL, last INTEGER NOT NULL, requests INTEGER NOT NULL,
	PRIMARY KEY (host, crawler, version)) WITHOUT ROWID;
`

func totalsTable(name, bucket string, paths bool) string {
	column, key := "", ""
	if paths {
		column, key = "path INTEGER NOT NULL,", ", path"
	}
	return fmt.Sprintf(`
CREATE TABLE %s (
	%s INTEGER NOT NULL, host INTEGER NOT NULL, crawler INTEGER NOT NULL, identity INTEGER NOT NULL,
	decision INTEGER NOT NULL, rule INTEGER NOT NULL, policy INTEGER NOT NULL, %s
	requests INTEGER NOT NULL, bytes INTEGER NOT NULL, violations INTEGER NOT NULL, queries INTEGER NOT NULL,
	PRIMARY KEY (%s, host, crawler, identity, decision, rule, policy%s)) WITHOUT ROWID;`,
		name, bucket, column, bucket, key)
}

const databaseName = "activity.db"

// openDatabase opens the database of a directory. A writer creates it if need be.
func openDatabase(ctx context.Context, dir string, write bool) (*sql.DB, error) {
	name := filepath.Join(dir, databaseName)
	pragmas := url.Values{"_pragma": {"busy_timeout(10000)", "query_only(1)"}}
	if write {
		pragmas = url.Values{"_pragma": {
			"busy_timeout(10000)", "journal_mode(WAL)", "synchronous(NORMAL)", "journal_size_limit(16777216)", "cache_size(-8192)",
		}}
	}
	db, err := sql.Open("sqlite", "file:"+(&url.URL{Path: filepath.ToSlash(name)}).EscapedPath()+"?"+pragmas.Encode())
	if err != nil {
		return nil, err
	}
	if err := prepare(ctx, db, name, write); err != nil {
		_ = db.Close()
		return nil, err
	}
	return db, nil
}

func prepare(ctx context.Context, db *sql.DB, name string, write bool) error {
	if write {
		db.SetMaxOpenConns(1)
	} else {
		db.SetMaxOpenConns(4)
	}
	var version int
	if err := db.QueryRowContext(ctx, "PRAGMA user_version").Scan(&version); err != nil {
		return fmt.Errorf("opening %s: %w", name, err)
	}
	switch {
	case version == schemaVersion:
		return nil
	case version != 0 || !write:
		return fmt.Errorf("%s has format %d, of another version of this program, while this one reads format %d: open it with that version, or move its directory away, and a new store begins", name, version, schemaVersion)
	}
	tx, err := db.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	defer rollback(tx)
	if _, err := tx.ExecContext(ctx, schema+fmt.Sprintf("PRAGMA user_version = %d;", schemaVersion)); err != nil {
		return fmt.Errorf("creating %s: %w", name, err)
	}
	return tx.Commit()
}

// rollback ends a transaction that was not committed.
func rollback(tx *sql.Tx) { _ = tx.Rollback() }
