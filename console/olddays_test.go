// SPDX-License-Identifier: Apache-2.0

package console

import (
	"database/sql"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"testing"
	"time"

	"github.com/caddyserver/caddy/v2"

	"github.com/robotspolicy/caddy-robots-policy/activity"
	"github.com/robotspolicy/caddy-robots-policy/activity/store"
)

// fillDays fills a database with requests. The keys of visits are ages in days, and the values are numbers of requests.
func fillDays(t *testing.T, dir string, now time.Time, visits map[int]int) {
	t.Helper()
	s, err := store.Open(t.Context(), filepath.Join(dir, "activity"), store.Options{})
	if err != nil {
		t.Fatal(err)
	}
	for ago, n := range visits {
		for range n {
			s.Record(activity.Request{
				Time: now.AddDate(0, 0, -ago), Host: "www.example.com", Path: "/a", Crawler: "GPTBot", Category: "ai-training",
				Identity: activity.Unverified, Decision: activity.Allowed, Policy: sumOf(testPolicy)[:12], Status: 200,
			})
		}
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
}

// viewOf returns the view that the console makes for a page. address is the path of the page, and may have a query.
func viewOf(t *testing.T, s *server, address string) *view {
	t.Helper()
	v, err := s.view(httptest.NewRequest(http.MethodGet, "/"+address, nil))
	if err != nil {
		t.Fatal(err)
	}
	return v
}

// The sum of the bars is the number of requests in the period, even if hourly totals were deleted.
func TestOldDaysHaveTheirRequests(t *testing.T) {
	dir, now := t.TempDir(), time.Now().UTC()
	fillDays(t, dir, now, map[int]int{0: 1, 3: 2, 20: 4, 100: 8, 101: 16})
	db, err := sql.Open("sqlite", "file:"+filepath.ToSlash(filepath.Join(dir, "activity", "activity.db")))
	if err != nil {
		t.Fatal(err)
	}
	for _, table := range []string{"hours", "path_hours"} {
		if _, err := db.ExecContext(t.Context(), "DELETE FROM "+table+" WHERE hour < ?", now.AddDate(0, 0, -90).Unix()/3600); err != nil {
			t.Fatal(err)
		}
	}
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	s := startCaddyWith(t, testPolicy, dir)
	date := func(ago int) string {
		day := now.AddDate(0, 0, -ago).Format(time.DateOnly)
		return "?since=" + day + "&until=" + day
	}
	for address, want := range map[string]int64{
		"?days=1": 1, "?days=7": 3, "?days=90": 7, "?days=365": 31, date(0): 1, date(3): 2, date(20): 4, date(100): 8, date(50): 0,
	} {
		v := viewOf(t, s, address)
		total, err := v.store.Totals(t.Context(), v.query())
		if err != nil {
			t.Fatal(err)
		}
		if want > 0 && (len(total) != 1 || total[0].Requests != want) || want == 0 && len(total) > 0 {
			t.Errorf("%s: the activity database has %+v, want %d requests", address, total, want)
		}
		d := &overviewData{}
		rows, err := v.totals(v.traffic("", ""))
		if err != nil {
			t.Fatal(err)
		}
		if v.overTime(d, rows); d.Total.All != want {
			t.Errorf("%s: the bars have %d requests, want %d", address, d.Total.All, want)
		}
		var came int64
		for _, c := range v.clients(rows) {
			for _, n := range c.Days {
				came += n
			}
		}
		if came != want {
			t.Errorf("%s: the crawlers came %d times, want %d", address, came, want)
		}
	}
}

// A bar links to its day, regardless of the period, and the link keeps the other parameters of the page.
func TestLinksOfBars(t *testing.T) {
	dir, now := t.TempDir(), time.Now().UTC()
	fillDays(t, dir, now, map[int]int{3: 2})
	v := viewOf(t, startCaddyWith(t, testPolicy, dir), "?days=30&identity=impostor")
	rows, err := v.totals(v.traffic("", ""))
	if err != nil {
		t.Fatal(err)
	}
	d := &overviewData{}
	if v.overTime(d, rows); len(d.Chart.Bars) != 1 {
		t.Fatalf("%+v", d.Chart.Bars)
	}
	day := now.AddDate(0, 0, -3).Format(time.DateOnly)
	if got, want := d.Chart.Bars[0].Link, "?identity=impostor&since="+day+"&until="+day; got != want {
		t.Errorf("%s, want %s", got, want)
	}
}

// The chart of a single day has hourly bars if the database certainly still has the hourly totals of this day. For
// older days, the chart has a single bar.
func TestHoursOfADate(t *testing.T) {
	s := &server{local: true, logger: caddy.Log()}
	check := func(hours map[int]bool) {
		t.Helper()
		for ago, want := range hours {
			day := time.Now().UTC().AddDate(0, 0, -ago).Format(time.DateOnly)
			if v := viewOf(t, s, "?since="+day+"&until="+day); (v.steps().by == store.ByHour) != want {
				t.Errorf("%d days ago: by %s", ago, v.steps().by)
			}
		}
	}
	check(map[int]bool{0: true, 6: true, 8: false, 300: false})
	if err := caddy.Load(adapted(t, recording(t.TempDir(), "A", "100MB\n\t\t\thours 72h")), true); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = caddy.Stop() })
	check(map[int]bool{0: true, 2: true, 4: false, 6: false})
}
