// SPDX-License-Identifier: Apache-2.0

//go:build unix

package console

import (
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"syscall"
	"testing"
	"time"

	"github.com/caddyserver/caddy/v2"

	"github.com/robotspolicy/caddy-robots-policy/activity"
	"github.com/robotspolicy/caddy-robots-policy/activity/store"
	"github.com/robotspolicy/caddy-robots-policy/crawlers"
)

// fillLarge fills a store with rows of the last 90 days: of each hour so many, for 20
// crawlers and 5 hosts.
func fillLarge(t *testing.T, dir, policy string, now time.Time, rows int) {
	t.Helper()
	catalogue, err := crawlers.Default()
	if err != nil {
		t.Fatal(err)
	}
	names := catalogue.All()[:20]
	const hours, batches = 90 * 24, 12
	for batch := range batches {
		s, err := store.Open(t.Context(), dir, store.Options{Queue: rows/batches + 2*hours, MaxBytes: 4 << 30})
		if err != nil {
			t.Fatal(err)
		}
		if batch == 0 {
			if err := s.Publish(t.Context(), &activity.Publication{ID: sumOf(policy), SHA256: sumOf(policy), Name: "storage:robots/site.yaml", Time: now.AddDate(0, 0, -90), Text: policy}); err != nil {
				t.Fatal(err)
			}
		}
		for h := batch * hours / batches; h < (batch+1)*hours/batches; h++ {
			at := now.Truncate(time.Hour).Add(-time.Duration(h) * time.Hour)
			for i := range rows / hours {
				c := names[i%len(names)]
				v := activity.Visit{
					Time: at, Host: fmt.Sprintf("h%d.example.com", i/len(names)%5), Crawler: c.Token, Kind: string(c.Kind), Identity: activity.Verified,
					Decision: []activity.Decision{activity.Allowed, activity.Disallowed, activity.Refused}[i%3], Rule: fmt.Sprintf("rule %d", i%len(names)%7),
					Policy: sumOf(policy)[:12], Path: fmt.Sprintf("/section%d/page%d", i%30, (h*7+i)%200_000), Bytes: 1000, Violation: i%9 == 0,
				}
				s.Record(v)
			}
		}
		if s.Dropped() > 0 {
			t.Fatalf("%d visits were dropped", s.Dropped())
		}
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
	}
}

// largeRows are the rows with paths by the hour; with those without paths and those by the
// day, the store has two million rows.
const largeRows = 650_000

// TestScreensOfALargeStore opens each screen over two million rows and prints the processor
// time that it takes; the clock would measure what else the machine does. It is no bound, as a
// time says as much about the machine as about the code.
func TestScreensOfALargeStore(t *testing.T) {
	if os.Getenv("ROBOTSPOLICY_LONG") == "" {
		t.Skip("filling a store takes a minute: set ROBOTSPOLICY_LONG")
	}
	dir := t.TempDir()
	fillLarge(t, filepath.Join(dir, "activity"), testPolicy, time.Now().UTC(), largeRows)
	s := startCaddyWith(t, testPolicy, dir)
	for _, path := range []string{"", "who-came", "health", "published", "who-may", "crawler?name=GPTBot", "ask", "?days=90", "who-came?path=/section1/"} {
		var took []time.Duration
		for range 5 {
			answers.Lock()
			clear(answers.by)
			answers.Unlock()
			began := processorTime(t)
			if w := get(t, s, path); w.Code != http.StatusOK || w.Body.Len() > 150<<10 {
				t.Fatalf("%s: status %d, %d bytes: %.200s", path, w.Code, w.Body.Len(), w.Body)
			}
			took = append(took, processorTime(t)-began)
		}
		t.Logf("/%s: %s at best, of %v", path, slices.Min(took), took)
	}
	_ = caddy.Stop()
}

// processorTime is what the process has used.
func processorTime(t *testing.T) time.Duration {
	t.Helper()
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		t.Fatal(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
