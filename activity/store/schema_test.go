// SPDX-License-Identifier: Apache-2.0

package store

import (
	"crypto/sha256"
	"database/sql"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/robotspolicy/caddy-robots-policy/activity"
)

// A store of a newer format is not opened, not changed, and the error says what to do.
func TestStoreOfAnotherFormat(t *testing.T) {
	t.Parallel()
	for _, format := range []int{schemaVersion + 1} {
		dir := t.TempDir()
		closeStore(t, open(t, dir, Options{}))
		name := filepath.Join(dir, databaseName)
		db, err := sql.Open("sqlite", "file:"+name)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := db.ExecContext(t.Context(), fmt.Sprintf("PRAGMA user_version = %d", format)); err != nil {
			t.Fatal(err)
		}
		if err := db.Close(); err != nil {
			t.Fatal(err)
		}
		before, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		want := fmt.Sprintf("%s has format %d, of a newer version of this program, while this one reads format %d: open it with that version, or move its directory away", name, format, schemaVersion)
		if s, err := Open(t.Context(), dir, Options{}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("writer: %v, %v", s, err)
		}
		if r, err := OpenReader(t.Context(), dir); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("reader: %v, %v", r, err)
		}
		if after, err := os.ReadFile(name); err != nil || string(after) != string(before) {
			t.Errorf("the database was changed: %v", err)
		}
	}
}

// A store of an older format is changed when a server opens it, and has what it had.
func TestStoreOfAnOlderFormat(t *testing.T) {
	t.Parallel()
	fourth := "DROP TABLE publications; DROP TABLE documents; DROP TABLE lost; DROP TABLE reads;" +
		"CREATE TABLE versions (kind TEXT NOT NULL, version TEXT NOT NULL, host TEXT NOT NULL, name TEXT NOT NULL, first INTEGER NOT NULL, text TEXT NOT NULL, number TEXT NOT NULL DEFAULT '', PRIMARY KEY (kind, version, host)) WITHOUT ROWID;" +
		"INSERT INTO versions VALUES ('policy', 'p', '', 'site.yaml', 1, 'text', '7'), ('robots', 'r1', 'h', 'site.yaml', 1, 'User-agent: *', '');" +
		"CREATE TABLE reads (host INTEGER NOT NULL, crawler INTEGER NOT NULL, version INTEGER NOT NULL, first INTEGER NOT NULL, last INTEGER NOT NULL, requests INTEGER NOT NULL, PRIMARY KEY (host, crawler, version)) WITHOUT ROWID;" +
		"INSERT INTO strings (text) VALUES ('r1'); INSERT INTO reads SELECT h.id, c.id, v.id, 1, 2, 3 FROM strings h, strings c, strings v WHERE h.text = 'h' AND c.text = 'GPTBot' AND v.text = 'r1';"
	third := "ALTER TABLE versions DROP COLUMN number;"
	first := ""
	for _, table := range []string{"hours", "days", "path_hours", "path_days"} {
		fourth += "ALTER TABLE " + table + " DROP COLUMN unread;"
		first += "ALTER TABLE " + table + " DROP COLUMN queries;"
	}
	older := []string{1: fourth + third + first, 2: fourth + third, 3: fourth + third, 4: fourth}
	for format := 1; format < schemaVersion; format++ {
		dir := t.TempDir()
		s := open(t, dir, Options{})
		s.Record(activity.Visit{Time: start, Host: "h", Crawler: "GPTBot", Kind: "ai-training", Path: "/a", Bytes: 7})
		closeStore(t, s)
		db, err := sql.Open("sqlite", "file:"+filepath.Join(dir, databaseName))
		if err != nil {
			t.Fatal(err)
		}
		if _, err := db.ExecContext(t.Context(), older[format]+fmt.Sprintf("PRAGMA user_version = %d", format)); err != nil {
			t.Fatal(err)
		}
		if err := db.Close(); err != nil {
			t.Fatal(err)
		}
		if _, err := OpenReader(t.Context(), dir); err == nil || !strings.Contains(err.Error(), "start Caddy with it once") {
			t.Errorf("reader of format %d: %v", format, err)
		}
		closeStore(t, open(t, dir, Options{}))
		if rows := totals(t, dir, Query{By: []Dimension{ByPath}}); len(rows) != 1 || rows[0].Bytes != 7 || rows[0].Unread != 1 {
			t.Errorf("format %d: %+v", format, rows)
		}
		r, err := OpenReader(t.Context(), dir)
		if err != nil {
			t.Fatal(err)
		}
		if all, err := r.Publications(t.Context(), "site.yaml"); err != nil || len(all) != 1 || all[0].Text != "text" || all[0].Policy != "p" {
			t.Errorf("format %d: %+v, %v", format, all, err)
		}
		if reads, err := r.Reads(t.Context(), "", ""); err != nil || len(reads) != 1 || reads[0].Label() != "r1" || reads[0].Requests != 3 {
			t.Errorf("format %d: %+v, %v", format, reads, err)
		}
		if err := r.Close(); err != nil {
			t.Fatal(err)
		}
	}
}

// A change of the schema needs a new number, so that no program reads what it does not
// know.
func TestSchemaHasItsNumber(t *testing.T) {
	t.Parallel()
	const number, sum = 5, "bf0a8637358a3a9c"
	if got := fmt.Sprintf("%x", sha256.Sum256([]byte(schema)))[:16]; schemaVersion != number || got != sum {
		t.Errorf("format %d has the schema %s: raise schemaVersion with every change, and write both here", schemaVersion, got)
	}
}
