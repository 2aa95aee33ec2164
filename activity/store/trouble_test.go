// SPDX-License-Identifier: Apache-2.0

package store

import (
	"context"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/robotspolicy/caddy-robots-policy/activity"
	"github.com/robotspolicy/caddy-robots-policy/internal/testkit"
)

// While the disk is full, the store continues to count in memory, and reports the failure once. It writes everything
// when there is room again.
func TestFullDisk(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	var reports []error
	s := open(t, dir, Options{writeInterval: time.Hour, Report: func(err error) { reports = append(reports, err) }})
	visit := func(n int) {
		for i := range n {
			s.waiting.addVisit(&activity.Request{Time: start, Host: "h", Crawler: "c", Path: fmt.Sprint("/", i, strings.Repeat("x", 500))})
		}
	}
	merge := func() {
		s.next = time.Time{} // the next write is due
		s.tick()
		if s.writing != nil {
			s.report(s.finish(<-s.writing))
		}
	}
	visit(10)
	merge()
	if len(reports) != 0 {
		t.Fatal(reports)
	}
	var pages int64
	if err := s.db.QueryRow("PRAGMA page_count").Scan(&pages); err != nil {
		t.Fatal(err)
	}
	limit := func(n int64) {
		if _, err := s.db.Exec(fmt.Sprintf("PRAGMA max_page_count = %d", n)); err != nil { // SQLITE_FULL, as on a full disk
			t.Fatal(err)
		}
	}
	limit(pages)
	for range 3 {
		visit(1000)
		merge()
	}
	if len(reports) != 1 || reports[0] == nil || !strings.Contains(reports[0].Error(), "is full") {
		t.Fatalf("reports: %v", reports)
	}
	limit(1 << 30)
	visit(1)
	merge()
	if len(reports) != 2 || reports[1] != nil {
		t.Errorf("writing works again: %v", reports)
	}
	closeStore(t, s)
	if n := sum(totals(t, dir, Query{})); n != 10+3*1000+1 {
		t.Errorf("%d requests, want all 3,011", n)
	}
}

// If the clock jumps ahead by years and back again, no rows are deleted and no requests are lost.
func TestClockThatJumps(t *testing.T) {
	t.Parallel()
	dir, now := t.TempDir(), start
	s := open(t, dir, Options{writeInterval: time.Hour, Now: func() time.Time { return now }})
	want := int64(0)
	for i, jump := range []time.Duration{0, 20 * 365 * 24 * time.Hour, -20 * 365 * 24 * time.Hour, -30 * 24 * time.Hour, 30 * 24 * time.Hour, 0} {
		now = now.Add(jump)
		s.waiting.addVisit(&activity.Request{Time: now, Host: "h", Crawler: "c", Path: fmt.Sprint("/", i)})
		want++
		write(t, s)
		rows := totals(t, dir, Query{From: start.AddDate(-1, 0, 0), To: start.AddDate(30, 0, 0)})
		if sum(rows) != want {
			t.Errorf("after a jump by %s: %d requests, want %d", jump, sum(rows), want)
		}
	}
	closeStore(t, s)
}

func TestClockThatJumpsIsNotBelieved(t *testing.T) {
	t.Parallel()
	var c clock
	c.tick(start)
	c.evenly = 2 * steadyTime
	c.tick(start.Add(20 * 365 * 24 * time.Hour))
	if c.steady() {
		t.Error("the clock jumped by 20 years, and rows may be deleted for their age")
	}
	c.evenly = 2 * steadyTime
	c.tick(start)
	if c.steady() {
		t.Error("the clock jumped back, and rows may be deleted for their age")
	}
}

var (
	twoYearsScale = flag.Int("store.scale", 16, "by what the paths and bytes of the two simulated years are divided")
	twoYearsDays  = flag.Int("store.days", 730, "how many days the two simulated years have")
)

// With 10,000 distinct paths an hour for two years, the database never exceeds the default limits, and the totals
// without paths are complete.
func TestTwoYears(t *testing.T) {
	t.Parallel()
	testkit.Nightly(t)
	days := *twoYearsDays
	ctx := context.Background() // with a context that can be canceled, writing a row takes twice as long
	paths, limit := 10_000 / *twoYearsScale, int64(512<<20 / *twoYearsScale)
	dir, now := t.TempDir(), start.Truncate(24*time.Hour)
	s := open(t, dir, Options{MaxBytes: limit, writeInterval: time.Hour, Now: func() time.Time { return now }})
	most := int64(0)
	for day := range days {
		for hour := range 24 {
			at := now.Add(time.Duration(hour) * time.Hour)
			for i := range paths {
				s.waiting.addVisit(&activity.Request{
					Time: at, Host: "www.example.com", Crawler: []string{"GPTBot", "Googlebot", "CCBot"}[i%3], Category: "search", Identity: activity.Verified,
					Decision: activity.Allowed, Policy: "p1", Path: fmt.Sprintf("/articles/%d/%d-%d", day, hour, i), Bytes: 1000,
				})
			}
			if hour < 23 && len(s.waiting.rows) < paths*4 {
				continue
			}
			if err := s.merge(ctx, s.waiting); err != nil {
				t.Fatal(err)
			}
			s.waiting = newSums(s.options().RowsPerHour)
		}
		now = now.Add(24 * time.Hour)
		if err := s.retain(ctx, now, true); err != nil {
			t.Fatal(err)
		}
		size, err := sizeOf(ctx, s.db)
		if err != nil || size > s.options().MaxBytes {
			t.Fatalf("day %d: %d bytes, %v", day, size, err)
		}
		most = max(most, size)
		if day%30 == 0 {
			t.Logf("day %d: %d KB", day, size>>10)
		}
	}
	closeStore(t, s)
	info, err := os.Stat(filepath.Join(dir, databaseName))
	if err != nil || info.Size() > limit+limit/2+1<<20 {
		t.Errorf("the file has %d KB, %v", info.Size()>>10, err)
	}
	rows := totals(t, dir, Query{From: now.AddDate(0, 0, -395), To: now, By: []Dimension{ByDay}})
	for _, r := range rows {
		if r.Requests != int64(24*paths) {
			t.Errorf("%s has %d requests, want %d", r.Start.Format(time.DateOnly), r.Requests, 24*paths)
		}
	}
	if len(rows) != 395 {
		t.Errorf("%d days, want 395", len(rows))
	}
	week := totals(t, dir, Query{From: now.AddDate(0, 0, -6), To: now, By: []Dimension{ByPath}, Limit: 10})
	if len(week) != 10 {
		t.Errorf("paths of the last week are missing: %d", len(week))
	}
	t.Logf("at most %d KB in use of %d, the file has %d KB", most>>10, limit>>10, info.Size()>>10)
}
