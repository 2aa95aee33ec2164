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
	older := []string{3: "ALTER TABLE versions DROP COLUMN number;"}
	older = append(older[:1], older[3], older[3], older[3])
	for _, table := range []string{"hours", "days", "path_hours", "path_days"} {
		older[1] += "ALTER TABLE " + table + " DROP COLUMN queries;"
	}
	for format := 1; format < schemaVersion; format++ {
		dir := t.TempDir()
		s := open(t, dir, Options{})
		s.Record(activity.Visit{Time: start, Host: "h", Crawler: "GPTBot", Kind: "ai-training", Path: "/a", Bytes: 7})
		if err := s.Publish(t.Context(), Version{Kind: PolicyVersion, Version: "p", Name: "site.yaml", First: start, Text: "text"}); err != nil {
			t.Fatal(err)
		}
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
		if rows := totals(t, dir, Query{By: []Dimension{ByPath}}); len(rows) != 1 || rows[0].Bytes != 7 {
			t.Errorf("format %d: %+v", format, rows)
		}
		r, err := OpenReader(t.Context(), dir)
		if err != nil {
			t.Fatal(err)
		}
		if all, err := r.Versions(t.Context(), PolicyVersion, ""); err != nil || len(all) != 1 || all[0].Text != "text" {
			t.Errorf("format %d: %+v, %v", format, all, err)
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
	const number, sum = 4, "e3d8a29e7a6d687a"
	if got := fmt.Sprintf("%x", sha256.Sum256([]byte(schema)))[:16]; schemaVersion != number || got != sum {
		t.Errorf("format %d has the schema %s: raise schemaVersion with every change, and write both here", schemaVersion, got)
	}
}
