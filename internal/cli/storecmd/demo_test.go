// SPDX-License-Identifier: Apache-2.0

package storecmd

import (
	"path/filepath"
	"testing"
	"time"

	"github.com/robotspolicy/caddy-robots-policy/activity/store"
	"github.com/robotspolicy/caddy-robots-policy/internal/testkit"
)

// A year of made-up visits has each day of it.
func TestDemoHasAllDays(t *testing.T) {
	testkit.Slow(t)
	t.Parallel()
	const days = 365
	dir, now := filepath.Join(t.TempDir(), "activity"), time.Date(2026, 11, 24, 12, 0, 0, 0, time.UTC)
	n, err := Demo{Name: "site.yaml", Text: "version: 1\nrules:\n  - for: GPTBot\n    disallow: {crawl: /}\n", Hosts: []string{"www.example.com"}, Days: days, Seed: 1, Share: 0.02, Now: now}.Fill(t.Context(), dir)
	if err != nil {
		t.Fatal(err)
	}
	r, err := store.OpenReader(t.Context(), dir)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	rows, err := r.Totals(t.Context(), store.Query{From: now.AddDate(-2, 0, 0), To: now.AddDate(0, 0, 1), By: []store.Dimension{store.ByDay}})
	var sum int64
	for _, row := range rows {
		sum += row.Requests
	}
	if err != nil || len(rows) != days || sum != n {
		t.Errorf("%d days with %d visits, want %d with %d; %v", len(rows), sum, days, n, err)
	}
}

// Fewer than no visits need no queue.
func TestDemoQueue(t *testing.T) {
	for _, o := range []Demo{{Days: 30, Share: -1}, {Days: -1}} {
		if n := (&demo{Demo: o, clients: demoClients}).most(); n < 0 {
			t.Errorf("%v days with a share of %v: %d", o.Days, o.Share, n)
		}
	}
}
