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
)

// A database of another format is neither opened nor changed. The error says what to do.
func TestStoreOfAnotherFormat(t *testing.T) {
	t.Parallel()
	for format, want := range map[int]string{
		schemaVersion + 1: fmt.Sprintf("has format %d, which a newer version of this program writes, but this version reads format %d. Use the newer version, or move the directory of the database away", schemaVersion+1, schemaVersion),
		schemaVersion - 1: fmt.Sprintf("has format %d, which is too old: move its directory away", schemaVersion-1),
	} {
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
		if s, err := Open(t.Context(), dir, Options{}); err == nil || !strings.Contains(err.Error(), name+" "+want) {
			t.Errorf("writer: %v, %v", s, err)
		}
		if r, err := OpenReader(t.Context(), dir); err == nil || !strings.Contains(err.Error(), name+" "+want) {
			t.Errorf("reader: %v, %v", r, err)
		}
		if after, err := os.ReadFile(name); err != nil || string(after) != string(before) {
			t.Errorf("the database was changed: %v", err)
		}
	}
}

// If the schema changes, schemaVersion must change, so that programs do not read a format that they do not support.
func TestSchemaHasItsNumber(t *testing.T) {
	t.Parallel()
	const number, sum = 8, "866317d879f25b4e"
	if got := fmt.Sprintf("%x", sha256.Sum256([]byte(schema)))[:16]; schemaVersion != number || got != sum {
		t.Errorf("format %d has the schema %s: raise schemaVersion with every change, and write both here", schemaVersion, got)
	}
}
