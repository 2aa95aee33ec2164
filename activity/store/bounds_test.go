// SPDX-License-Identifier: Apache-2.0

package store

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/robotspolicy/caddy-robots-policy/activity"
	"github.com/robotspolicy/caddy-robots-policy/internal/testkit"
)

// boundsOf holds the extremes of a database: the times of its oldest rows, and the largest numbers of rows in an hour
// and in a day.
type boundsOf struct {
	size                           int64
	pathHour, hour, pathDay, day   int64
	rowsOfHour, rowsOfDay, another int64 // another is the number of rows under OtherPath
}

func (s *Store) boundsOf(ctx context.Context, t *testing.T) (b boundsOf) {
	t.Helper()
	for text, into := range map[string]*int64{
		"SELECT coalesce(min(hour), 0) FROM path_hours":                                              &b.pathHour,
		"SELECT coalesce(min(hour), 0) FROM hours":                                                   &b.hour,
		"SELECT coalesce(min(day), 0) FROM path_days":                                                &b.pathDay,
		"SELECT coalesce(min(day), 0) FROM days":                                                     &b.day,
		"SELECT coalesce(max(n), 0) FROM (SELECT count(*) AS n FROM path_hours GROUP BY hour)":       &b.rowsOfHour,
		"SELECT coalesce(max(n), 0) FROM (SELECT count(*) AS n FROM path_days GROUP BY day)":         &b.rowsOfDay,
		"SELECT count(*) FROM path_hours JOIN strings ON id = path WHERE text = '" + OtherPath + "'": &b.another,
	} {
		if err := s.db.QueryRowContext(ctx, text).Scan(into); err != nil {
			t.Fatal(err)
		}
	}
	var err error
	if b.size, err = sizeOf(ctx, s.db); err != nil {
		t.Fatal(err)
	}
	return b
}

// Weeks with few paths and weeks with many paths alternate. In weeks with few paths, rows are deleted because of their
// age. In weeks with many paths, rows are deleted because of the database's size. Each limit is reached several times
// and never exceeded. No request is missing in the totals by day.
func TestBoundsAreReachedAndHold(t *testing.T) {
	testkit.Nightly(t)
	t.Parallel()
	if testing.Short() {
		t.Skip("tens of thousands of rows: SQLite in Go is slow with the race detector")
	}
	simulated, block := 42, 12 // days
	if testkit.Long() {
		simulated, block = 200, 25
	}
	const (
		few, many          = 8, 60 // paths an hour
		rowsPerHour        = 20
		maxBytes           = 450 << 10
		hoursKept, daysFor = 10, 30 // days
	)
	ctx, now := context.Background(), start.Truncate(24*time.Hour)
	s := open(t, t.TempDir(), Options{
		RowsPerHour: rowsPerHour, Hours: hoursKept * 24 * time.Hour, Days: daysFor * 24 * time.Hour, MaxBytes: maxBytes,
		writeInterval: time.Hour, Now: func() time.Time { return now },
	})
	sent, shrunk, shrunkAt := []int64{}, 0, int64(0)
	aged, folded, most := 0, 0, int64(0)
	for day := range simulated {
		paths := few
		if day/block%2 == 1 {
			paths = many
		}
		for hour := range 24 {
			sums := newSums(10 * rowsPerHour)
			for i := range paths {
				sums.addVisit(&activity.Request{
					Time: now.Add(time.Duration(hour) * time.Hour), Host: "www.example.com", Crawler: []string{"GPTBot", "Googlebot"}[i%2],
					Path: fmt.Sprintf("/articles/of/some/section/%d/%d-%d", day, hour, i),
				})
			}
			if err := s.merge(ctx, sums); err != nil {
				t.Fatal(err)
			}
		}
		sent = append(sent, int64(24*paths))
		now = now.Add(24 * time.Hour)
		if err := s.retain(ctx, now, true); err != nil {
			t.Fatal(err)
		}
		b := s.boundsOf(ctx, t)
		today := now.Unix() / 86400
		most = max(most, b.size)
		if b.size > maxBytes || b.pathHour < (today-hoursKept)*24 || b.hour < (today-hoursKept)*24 || b.pathDay < today-daysFor && b.pathDay > 0 || b.day < today-daysFor {
			t.Fatalf("day %d: %+v", day, b)
		}
		if b.rowsOfHour > rowsPerHour || b.rowsOfDay > rowsPerHour+2 {
			t.Fatalf("day %d: %+v", day, b)
		}
		if want := today - min(int64(day)+1, daysFor); b.day != want {
			t.Fatalf("day %d: the totals by day begin with %d, want %d", day, b.day, want)
		}
		if day >= hoursKept && b.pathHour == (today-hoursKept)*24 {
			aged++
		}
		if b.another > 0 {
			folded++
		}
		at, err := meta(ctx, s.db, metaShrunk)
		if err != nil {
			t.Fatal(err)
		}
		if at != shrunkAt {
			shrunk, shrunkAt = shrunk+1, at
		}
	}
	t.Logf("of %d days: hours were deleted for their age on %d, rows for the size on %d, hours were folded on %d; at most %d KB of %d", simulated, aged, shrunk, folded, most>>10, maxBytes>>10)
	if aged < simulated/5 || shrunk < 4 || folded < 2*block {
		t.Error("a limit was not reached several times")
	}
	rows := totals(t, s.dir, Query{From: now.Add(-daysFor * 24 * time.Hour), To: now, By: []Dimension{ByDay}})
	var got []int64
	for _, r := range rows {
		got = append(got, r.Requests)
	}
	if !slices.Equal(got, sent[simulated-daysFor:]) {
		t.Errorf("requests by day %v, want %v", got, sent[simulated-daysFor:])
	}
	closeStore(t, s)
}

// Even if clients request very many paths with the names of crawlers, the paths of verified search crawlers are kept.
// They are needed to judge what search engines lose because of a policy.
func TestFloodOfPathsFoldsNoVerifiedSearchCrawler(t *testing.T) {
	t.Parallel()
	const rowsPerHour, articles = 50, 30
	ctx, now := context.Background(), start.Truncate(24*time.Hour)
	s := open(t, t.TempDir(), Options{RowsPerHour: rowsPerHour, writeInterval: time.Hour, Now: func() time.Time { return now }})
	visit := func(sums *sums, crawler, kind string, identity activity.Identity, path string) {
		sums.addVisit(&activity.Request{Time: now, Host: "www.example.com", Crawler: crawler, Category: kind, Identity: identity, Path: path})
	}
	for round := range 20 {
		sums := newSums(rowsPerHour)
		for i := range 1000 {
			if i < articles && round == i%20 {
				visit(sums, "Googlebot", "search", activity.Verified, fmt.Sprintf("/news/%d", i))
			}
			for range 3 {
				visit(sums, "GPTBot", "ai-training", activity.Verified, fmt.Sprintf("/%d/%d", round, i))
				visit(sums, "Googlebot", "search", activity.Unverified, fmt.Sprintf("/%d/%d", round, i))
			}
		}
		if err := s.merge(ctx, sums); err != nil {
			t.Fatal(err)
		}
	}
	check := func(table string) {
		t.Helper()
		var paths, other int
		err := s.db.QueryRowContext(ctx, `SELECT coalesce(sum(p.text LIKE '/news/%'), 0), coalesce(sum(p.text = ?), 0) FROM `+table+`
			JOIN strings c ON c.id = crawler JOIN strings i ON i.id = identity JOIN strings p ON p.id = path
			WHERE c.text = 'Googlebot' AND i.text = 'verified'`, OtherPath).Scan(&paths, &other)
		if err != nil {
			t.Fatal(err)
		}
		if paths != articles || other != 0 {
			t.Errorf("%s: %d paths of Googlebot, want %d, and %d rows of it without a path", table, paths, articles, other)
		}
	}
	check("path_hours")
	now = now.Add(48 * time.Hour)
	if err := s.retain(ctx, now, true); err != nil {
		t.Fatal(err)
	}
	check("path_days")
	closeStore(t, s)
}

// If too many fetches of robots.txt wait to be written to the database, further fetches are counted as not recorded.
func TestReadsBeyondTheLimitAreCounted(t *testing.T) {
	add, at := newSums(10), time.Unix(7*3600, 0)
	for i := range maxReads + 3 {
		add.addVisit(&activity.Request{Time: at, Host: fmt.Sprint(i), Path: "/robots.txt", RobotsTxt: true, Robots: "v1"})
	}
	if len(add.reads) != maxReads || add.lost[7] != 3 {
		t.Errorf("%d reads, %d not recorded", len(add.reads), add.lost[7])
	}
	waiting := newSums(10)
	waiting.addVisit(&activity.Request{Time: at, Host: "another", Path: "/robots.txt", RobotsTxt: true, Robots: "v1"})
	if waiting.addAll(add); waiting.lost[7] != 4 {
		t.Errorf("%d not recorded after adding the sums", waiting.lost[7])
	}
}
