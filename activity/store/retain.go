// SPDX-License-Identifier: Apache-2.0

package store

import (
	"context"
	"database/sql"
	"fmt"
	"strings"
	"time"
)

// clock detects jumps of the system clock. Old rows are deleted only if the clock has not jumped for an hour. Without
// this rule, all rows would be deleted if the clock is years ahead for a minute.
type clock struct {
	wall   time.Time
	mono   time.Time
	evenly time.Duration // time without a jump
}

const (
	maxJump    = time.Minute
	steadyTime = time.Hour
)

func (c *clock) tick(now time.Time) {
	mono := time.Now()
	if !c.mono.IsZero() {
		passed := mono.Sub(c.mono)
		jump := now.Round(0).Sub(c.wall) - passed
		if jump < -maxJump || jump > maxJump {
			c.evenly = 0
		} else {
			c.evenly += passed
		}
	}
	c.wall, c.mono = now.Round(0), mono
}

func (c *clock) steady() bool { return c.evenly >= steadyTime }

// retain computes the daily totals of past days, and deletes rows if the database is too large. If steady is true, the
// clock can be trusted, and retain also deletes rows that are too old.
func (s *Store) retain(ctx context.Context, now time.Time, steady bool) error {
	if err := s.roll(ctx, now.Unix()/86400); err != nil {
		return fmt.Errorf("summing up past days: %w", err)
	}
	if steady {
		if err := s.expire(ctx, now); err != nil {
			return fmt.Errorf("deleting old rows: %w", err)
		}
	}
	if err := s.shrink(ctx); err != nil {
		return fmt.Errorf("keeping %s within its size: %w", databaseName, err)
	}
	return nil
}

// roll adds up the hourly totals by path of each past day, and writes the sums to the table path_days.
func (s *Store) roll(ctx context.Context, today int64) error {
	rolled, err := meta(ctx, s.db, metaRolled)
	if err != nil {
		return err
	}
	days, err := list(ctx, s.db, func(day *int64) []any { return []any{day} }, "SELECT DISTINCT hour / 24 FROM hours WHERE hour >= ? AND hour < ? ORDER BY 1", (rolled+1)*24, today*24)
	if err != nil {
		return err
	}
	for _, day := range days {
		if err := s.rollDay(ctx, day); err != nil {
			return err
		}
	}
	return nil
}

func (s *Store) rollDay(ctx context.Context, day int64) error {
	return s.change(ctx, func(tx *sql.Tx, revision int64) error {
		if _, err := tx.ExecContext(ctx, "INSERT OR REPLACE INTO path_days SELECT ?, "+pathTexts+", "+sumCounts+
			", ? FROM path_hours WHERE hour >= ? AND hour < ? GROUP BY "+pathTexts+" HAVING sum(requests) > 0", day, revision, day*24, day*24+24); err != nil {
			return err
		}
		if err := touch(ctx, tx, "path_days", day, revision); err != nil {
			return err
		}
		if err := pathDayTable.fold(ctx, tx, day, s.options().RowsPerHour, s.options().RowsPerHour, revision); err != nil {
			return err
		}
		return setMeta(ctx, tx, metaRolled, day)
	})
}

func (s *Store) expire(ctx context.Context, now time.Time) error {
	hour := now.Add(-s.options().Hours).Unix() / 3600
	day := now.Add(-s.options().Days).Unix() / 86400
	for _, d := range []struct {
		text   string
		before int64
	}{
		{"DELETE FROM path_hours WHERE hour < ?", hour},
		{"DELETE FROM hours WHERE hour < ?", hour},
		{"DELETE FROM path_days WHERE day < ?", day},
		{"DELETE FROM days WHERE day < ?", day},
		{"DELETE FROM reads WHERE last < ?", day * 86400},
		{"DELETE FROM in_force WHERE last < ?", day * 86400},
		{"DELETE FROM versions WHERE EXISTS (SELECT 1 FROM versions AS p WHERE p.name = versions.name AND p.first > versions.first AND p.first < ?)", day * 86400},
		{"DELETE FROM documents WHERE first < ? AND version_hash NOT IN (SELECT hash FROM versions)", day * 86400},
		{"DELETE FROM not_recorded WHERE hour < ?", day * 24},
	} {
		if _, err := s.db.ExecContext(ctx, d.text, d.before); err != nil {
			return err
		}
	}
	// Rows become too old every hour, but sweep reads the whole database. Therefore sweep is called only once a day.
	today := now.Unix() / 86400
	if swept, err := meta(ctx, s.db, metaSwept); err != nil || swept == today {
		return err
	}
	if err := s.sweep(ctx); err != nil {
		return err
	}
	return setMeta(ctx, s.db, metaSwept, today)
}

// sweep deletes texts that no row refers to.
func (s *Store) sweep(ctx context.Context) error {
	var used []string
	for table, columns := range map[string]string{
		"hours": rowTexts, "days": rowTexts, "path_hours": "path", "path_days": "path",
		"reads": readTexts, "crawlers": "crawler, category",
	} {
		for c := range strings.SplitSeq(columns, ", ") {
			used = append(used, "SELECT "+c+" FROM "+table)
		}
	}
	if _, err := s.db.ExecContext(ctx, "DELETE FROM crawlers WHERE crawler NOT IN (SELECT crawler FROM days UNION ALL SELECT crawler FROM hours)"); err != nil {
		return err
	}
	for _, t := range []table{hourTable, dayTable, pathHourTable, pathDayTable} {
		if _, err := s.db.ExecContext(ctx, fmt.Sprintf("DELETE FROM outbox WHERE name = '%s' AND bucket NOT IN (SELECT %s FROM %[1]s)", t.name, t.bucket)); err != nil {
			return err
		}
	}
	_, err := s.db.ExecContext(ctx, "DELETE FROM strings WHERE text <> ? AND id NOT IN ("+strings.Join(used, " UNION ALL ")+")", OtherPath)
	return err
}

// coarser is a divisor. Before shrink deletes the daily totals by path, it limits the rows with paths of an hour or a
// day to RowsPerHour divided by coarser.
const coarser = 20

// shrink makes the database smaller if it is too large. First it deletes the oldest published texts if they use more
// than an eighth of the allowed size, and then the hourly totals by path that are older than a week. Next it adds up
// rare paths: in each day, and in each hour that is more than two days ago, only the most frequent paths keep their
// rows. Finally it deletes the oldest daily totals by path, the remaining hourly totals by path, and the totals without
// paths.
func (s *Store) shrink(ctx context.Context) error {
	size, err := sizeOf(ctx, s.db)
	if err != nil || size <= s.options().MaxBytes {
		return err
	}
	if err := s.noteShrinking(ctx, size); err != nil {
		return err
	}
	for _, table := range []string{"versions", "documents"} {
		if _, err := s.db.ExecContext(ctx, fmt.Sprintf("DELETE FROM %s WHERE rowid IN (SELECT rowid FROM (SELECT rowid,"+
			" sum(length(text)) OVER (ORDER BY first DESC, rowid) AS total FROM %[1]s) WHERE total > ?)", table), s.options().MaxBytes/16); err != nil {
			return err
		}
	}
	if small, err := s.isSmall(ctx); small || err != nil {
		return err
	}
	for _, stage := range []struct {
		table
		spare int64 // number of buckets to keep
		free  func(context.Context, table, int64) (more bool, err error)
	}{
		{pathHourTable, 7 * 24, s.deleteOldest},
		{pathDayTable, 1, s.foldOlder},
		{pathHourTable, 48, s.foldOlder},
		{pathDayTable, 0, s.deleteOldest},
		{pathHourTable, 0, s.deleteOldest},
		{hourTable, 0, s.deleteOldest},
		{dayTable, 0, s.deleteOldest},
	} {
		for more := true; more; {
			if more, err = stage.free(ctx, stage.table, stage.spare); err != nil {
				return err
			}
			if err := s.sweep(ctx); err != nil {
				return err
			}
			if small, err := s.isSmall(ctx); small || err != nil {
				return err
			}
		}
	}
	return nil
}

// isSmall reports whether a database that was too large has enough room again.
func (s *Store) isSmall(ctx context.Context) (bool, error) {
	size, err := sizeOf(ctx, s.db)
	return size <= s.options().MaxBytes*9/10, err
}

// deleteOldest deletes the rows of the oldest tenth of a table's buckets, which are hours or days. It deletes many
// buckets at once, because sweep must read all remaining rows after each deletion. It never deletes the newest buckets;
// spare is the number of buckets to keep. more is false if it deleted nothing.
func (s *Store) deleteOldest(ctx context.Context, t table, spare int64) (more bool, err error) {
	r, err := s.db.ExecContext(ctx, fmt.Sprintf("DELETE FROM %s WHERE %s <= (SELECT min(%[2]s) + (max(%[2]s) - min(%[2]s)) / 10 FROM %[1]s)"+
		" AND %[2]s <= (SELECT max(%[2]s) FROM %[1]s) - ?", t.name, t.bucket), spare)
	if err != nil {
		return false, err
	}
	n, err := r.RowsAffected()
	return n > 0, err
}

// foldOlder calls fold for all buckets of a table except the newest ones. spare is the number of these newest buckets.
func (s *Store) foldOlder(ctx context.Context, t table, spare int64) (more bool, err error) {
	keep := max(1, s.options().RowsPerHour/coarser)
	return false, s.change(ctx, func(tx *sql.Tx, revision int64) error {
		buckets, err := list(ctx, tx, func(at *int64) []any { return []any{at} },
			fmt.Sprintf("SELECT %s FROM %s WHERE requests > 0 GROUP BY 1 HAVING count(*) > ? AND %[1]s <= (SELECT max(%[1]s) FROM %[2]s) - ?", t.bucket, t.name), 2*keep, spare)
		if err != nil {
			return err
		}
		for _, at := range buckets {
			if err := t.fold(ctx, tx, at, keep, keep, revision); err != nil {
				return err
			}
		}
		return nil
	})
}

// noteShrinking records and reports that rows are deleted because of the size of the database.
func (s *Store) noteShrinking(ctx context.Context, size int64) error {
	return within(ctx, s.db, func(tx *sql.Tx) error {
		before, err := meta(ctx, tx, metaShrunk)
		if err != nil {
			return err
		}
		now := s.options().Now().Unix()
		if now-before >= 86400 {
			s.options().Shrinking(size, s.options().MaxBytes)
		}
		return setMeta(ctx, tx, metaShrunk, now)
	})
}

// sizeOf returns the number of bytes that a database uses. Freed pages are not counted, because they will be used
// again.
func sizeOf(ctx context.Context, db *sql.DB) (int64, error) {
	var pages, free, each int64
	for pragma, into := range map[string]*int64{"page_count": &pages, "freelist_count": &free, "page_size": &each} {
		if err := db.QueryRowContext(ctx, "PRAGMA "+pragma).Scan(into); err != nil {
			return 0, err
		}
	}
	return (pages - free) * each, nil
}
