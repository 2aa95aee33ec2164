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

// A store of the format before is changed when a server opens it, has what it had, and sends
// all of it to a fleet. One that is older is not opened.
func TestStoreOfAnOlderFormat(t *testing.T) {
	t.Parallel()
	older := "DROP TABLE outbox;"
	for _, table := range outgoing {
		older += "ALTER TABLE " + table.name + " DROP COLUMN changed;"
	}
	for _, format := range []int{schemaVersion - 2, schemaVersion - 1} {
		dir := t.TempDir()
		s := open(t, dir, Options{})
		s.Record(activity.Visit{Time: start, Host: "h", Crawler: "GPTBot", Kind: "ai-training", Path: "/a", Bytes: 7, RobotsTxt: true, Robots: "r1"})
		if err := s.Publish(t.Context(), published("1", "7")); err != nil {
			t.Fatal(err)
		}
		closeStore(t, s)
		db, err := sql.Open("sqlite", "file:"+filepath.Join(dir, databaseName))
		if err != nil {
			t.Fatal(err)
		}
		if _, err := db.ExecContext(t.Context(), older+fmt.Sprintf("PRAGMA user_version = %d", format)); err != nil {
			t.Fatal(err)
		}
		if err := db.Close(); err != nil {
			t.Fatal(err)
		}
		want := "start Caddy with it once"
		if format < schemaVersion-1 {
			want = "too old: move its directory away"
			if _, err := Open(t.Context(), dir, Options{}); err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("writer of format %d: %v", format, err)
			}
		}
		if _, err := OpenReader(t.Context(), dir); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("reader of format %d: %v", format, err)
		}
		if format < schemaVersion-1 {
			continue
		}
		s = open(t, dir, Options{})
		for i, want := range []int{1, 1, 1, 0, 0, 1, 1, 1, 0} {
			if all, err := outgoing[i].pending(t.Context(), s.db); err != nil || len(all) != want {
				t.Errorf("%s: %+v to be sent, want %d: %v", outgoing[i].name, all, want, err)
			}
		}
		closeStore(t, s)
		if rows := totals(t, dir, Query{By: []Dimension{ByPath}}); len(rows) != 1 || rows[0].Bytes != 7 {
			t.Errorf("format %d: %+v", format, rows)
		}
		r := openReader(t, dir)
		if all, err := r.Publications(t.Context(), "site.yaml"); err != nil || len(all) != 1 || all[0].Text != "text" {
			t.Errorf("format %d: %+v, %v", format, all, err)
		}
		if reads, err := r.Reads(t.Context(), "", ""); err != nil || len(reads) != 1 || reads[0].Requests != 1 {
			t.Errorf("format %d: %+v, %v", format, reads, err)
		}
	}
}

// A change of the schema needs a new number, so that no program reads what it does not
// know.
func TestSchemaHasItsNumber(t *testing.T) {
	t.Parallel()
	const number, sum = 6, "ef6b6ec97183200a"
	if got := fmt.Sprintf("%x", sha256.Sum256([]byte(schema)))[:16]; schemaVersion != number || got != sum {
		t.Errorf("format %d has the schema %s: raise schemaVersion with every change, and write both here", schemaVersion, got)
	}
}
