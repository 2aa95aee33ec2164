// SPDX-License-Identifier: Apache-2.0

package store

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"modernc.org/sqlite"
	sqlite3 "modernc.org/sqlite/lib"

	"github.com/robotspolicy/caddy-robots-policy/internal/leaf/aside"
)

// ErrDamaged means that the contents of a database are damaged. Call [PutAside] to make room for a new database.
var ErrDamaged = errors.New("the database is damaged")

const lockName = "lock.db"

// PutAside renames the database in a directory, and returns its new name, which contains the time. No process may have
// the database open.
func PutAside(dir string, now time.Time) (string, error) {
	name := filepath.Join(dir, databaseName)
	return aside.Put(now, name, name+"-wal", name+"-shm", filepath.Join(dir, lockName))
}

func explain(dir string, err error) error {
	e, ok := errors.AsType[*sqlite.Error](err)
	if !ok {
		return err
	}
	switch e.Code() & 0xff { // the other bits distinguish causes of the same kind
	case sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB:
		return fmt.Errorf("%w: %s: %w", ErrDamaged, filepath.Join(dir, databaseName), err)
	case sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED:
		return fmt.Errorf("another process uses the activity database %s: give each server a separate directory (%w)", dir, err)
	case sqlite3.SQLITE_FULL:
		return fmt.Errorf("the disk of %s is full: %w", dir, err)
	}
	return err
}

// checkWritable creates a directory if it is missing, and tries to write a file there. In contrast to SQLite's errors,
// the error of checkWritable contains the cause.
func checkWritable(dir string) error {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	f, err := os.CreateTemp(dir, ".writable-*")
	if err != nil {
		return err
	}
	_, err = f.Write(make([]byte, 4096))
	return errors.Join(err, f.Close(), os.Remove(f.Name()))
}

// lockDirectory acquires the lock of a directory for a writer. The lock is a transaction on a separate database. The
// system releases it when the process ends, even if the process is killed.
func lockDirectory(ctx context.Context, dir string) (*sql.DB, error) {
	lock, err := sql.Open("sqlite", "file:"+filepath.ToSlash(filepath.Join(dir, lockName))+"?_pragma=locking_mode(EXCLUSIVE)")
	if err != nil {
		return nil, err
	}
	lock.SetMaxOpenConns(1)
	if _, err := lock.ExecContext(ctx, "BEGIN EXCLUSIVE"); err != nil {
		return nil, errors.Join(explain(dir, err), lock.Close())
	}
	return lock, nil
}

// Check reads the whole database, and returns [ErrDamaged] if its contents are damaged.
func (r *Reader) Check(ctx context.Context) error {
	var found string
	err := r.db.QueryRowContext(ctx, "PRAGMA quick_check(1)").Scan(&found)
	if err == nil && found != "ok" {
		err = fmt.Errorf("%w: %s: %s", ErrDamaged, filepath.Join(r.dir, databaseName), found)
	}
	return explain(r.dir, err)
}
