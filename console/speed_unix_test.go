// SPDX-License-Identifier: Apache-2.0

//go:build unix

package console

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/caddyserver/caddy/v2"

	"github.com/robotspolicy/caddy-robots-policy/activity"
	"github.com/robotspolicy/caddy-robots-policy/activity/store"
	"github.com/robotspolicy/caddy-robots-policy/crawlers"
	"github.com/robotspolicy/caddy-robots-policy/internal/testkit"
)

// fillLarge fills a database with totals of the last year. Each hour has the same number of rows, for 20 crawlers, 5
// hosts and some unlisted clients.
func fillLarge(t *testing.T, dir, policy string, now time.Time, rows int) {
	t.Helper()
	catalog, err := crawlers.Default()
	if err != nil {
		t.Fatal(err)
	}
	names := catalog.All()[:20]
	const hours, batches = yearDays * 24, 24
	for batch := range batches {
		s, err := store.Open(t.Context(), dir, store.Options{Queue: rows/batches + 2*hours, MaxBytes: 4 << 30})
		if err != nil {
			t.Fatal(err)
		}
		if batch == 0 {
			if err := s.Publish(t.Context(), &activity.Publication{ID: sumOf(policy), SHA256: sumOf(policy), Name: "storage:robots/site.yaml", Text: policy}, now.AddDate(0, 0, -yearDays)); err != nil {
				t.Fatal(err)
			}
		}
		for h := batch * hours / batches; h < (batch+1)*hours/batches; h++ {
			at := now.Truncate(time.Hour).Add(-time.Duration(h) * time.Hour)
			for i := range rows / hours {
				c := names[i%len(names)]
				v := activity.Request{
					Time: at, Host: fmt.Sprintf("h%d.example.com", i/len(names)%5), Crawler: c.Token, Category: string(c.Category), Identity: activity.Verified,
					Decision: []activity.Decision{activity.Allowed, activity.Disallowed, activity.Blocked}[i%3], Rule: fmt.Sprintf("rule %d", i%len(names)%7),
					Policy: sumOf(policy)[:12], Path: fmt.Sprintf("/section%d/page%d", i%30, (h*7+i)%200_000), Bytes: 1000, Violation: i%9 == 0,
				}
				s.Record(v)
			}
			s.Record(activity.Request{
				Time: at, Host: "h0.example.com", Crawler: fmt.Sprintf("client-%d", h%1500), Category: activity.CategoryUnlisted, Identity: activity.Unverified,
				Decision: activity.Allowed, Policy: sumOf(policy)[:12], Path: fmt.Sprintf("/feed%d", h%300), Bytes: 500,
			})
		}
		if s.Dropped() > 0 {
			t.Fatalf("%d requests were dropped", s.Dropped())
		}
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
	}
}

// largeRows is the number of hourly rows with paths. Together with the hourly rows without paths and the daily rows,
// the database has more than a million rows.
const (
	largeRows = 650_000
	yearDays  = 365
)

// TestPagesOfAYear requests each page for each period up to a year, and prints the size of the page and the processor
// time. It measures processor time, because the time on the clock would include the work of other programs. The maximum
// processor time of a page is a multiple of the time for one query that no page uses: the requests of a year by
// category and decision. A fixed maximum would depend on the machine.
func TestPagesOfAYear(t *testing.T) {
	testkit.Nightly(t)
	dir, now := t.TempDir(), time.Now().UTC()
	fillLarge(t, filepath.Join(dir, "activity"), testPolicy, now, largeRows)
	s := startCaddyWith(t, testPolicy, dir)
	best := func(f func()) time.Duration {
		var took []time.Duration
		for range 5 {
			began := processorTime(t)
			f()
			took = append(took, processorTime(t)-began)
		}
		return slices.Min(took)
	}
	v, err := s.view(httptest.NewRequest(http.MethodGet, "/?days=365", nil))
	if err != nil {
		t.Fatal(err)
	}
	took := map[string]time.Duration{}
	dates := fmt.Sprintf("days=dates&since=%s&until=%s", now.AddDate(0, -8, 0).Format(time.DateOnly), now.AddDate(0, -2, 0).Format(time.DateOnly))
	for _, path := range []string{"", "who-came", "who-came?path=/section1/", "crawler?name=" + url.QueryEscape(v.Running.Site.File.Catalog.All()[0].Token), "crawler?name=client-1", "who-may", "who-may?all=1", "ask?agent=GPTBot&url=/section1/", "change", "change?who=AhrefsBot&choose=block", "published", "health", "health?lists=all"} {
		for _, days := range []string{"days=1", "days=7", "days=30", "days=90", "days=365", dates} {
			address := path + map[bool]string{true: "&", false: "?"}[strings.Contains(path, "?")] + days
			size := 0
			spent := best(func() {
				w := get(t, s, address)
				if size = w.Body.Len(); w.Code != http.StatusOK {
					t.Fatalf("%s: status %d: %.200s", address, w.Code, w.Body)
				}
			})
			took[address] = spent
			t.Logf("%-75s %6d bytes %8.1f ms", "/"+address, size, float64(spent.Microseconds())/1000)
			if size > maxPage {
				t.Errorf("/%s has %d bytes", address, size)
			}
		}
	}
	// The reference time is measured at the end, because the database is checked in the background after it is opened.
	floor := best(func() {
		if _, err := v.store.Totals(t.Context(), v.query(v.steps().by, store.ByKind, store.ByDecision)); err != nil {
			t.Fatal(err)
		}
	})
	t.Logf("one question about a year: %s", floor)
	for address, spent := range took {
		if spent > 20*floor {
			t.Errorf("/%s takes %s, a question %s", address, spent, floor)
		}
	}
	_ = caddy.Stop()
}

// processorTime returns the processor time that this process has used.
func processorTime(t *testing.T) time.Duration {
	t.Helper()
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		t.Fatal(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
