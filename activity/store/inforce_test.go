// SPDX-License-Identifier: Apache-2.0

package store

import (
	"fmt"
	"testing"
	"time"
)

// The periods of a publication cover only the time when a server recorded it. They do not cover the time when the
// server was down or paused, or after the publication ended. A quick restart does not interrupt a period.
func TestInForceOnlyAsRecorded(t *testing.T) {
	t.Parallel()
	dir, now, ctx := t.TempDir(), start, t.Context()
	running := func() *Store {
		return open(t, dir, Options{writeInterval: time.Hour, maintainInterval: time.Hour, Now: func() time.Time { return now }})
	}
	s := running()
	publish := func(number string) {
		t.Helper()
		if err := s.Publish(ctx, published("1", number), now); err != nil {
			t.Fatal(err)
		}
	}
	minutes := func(n int) {
		t.Helper()
		for range n {
			now = now.Add(time.Minute)
			if err := s.beat(ctx); err != nil {
				t.Fatal(err)
			}
		}
	}
	publish("1")
	minutes(10)
	closeStore(t, s)
	now = now.Add(time.Minute)
	s = running() // a restart
	publish("1")
	minutes(10)
	now = now.Add(5 * time.Hour) // the machine is paused
	minutes(10)
	publish("2")
	minutes(5)
	closeStore(t, s)
	now = now.Add(24 * time.Hour) // the server is down
	s = running()
	publish("2")
	minutes(1)
	if err := s.End(ctx, published("1", "2"), now); err != nil {
		t.Fatal(err)
	}
	minutes(60)
	closeStore(t, s)
	all, err := openReader(t, dir).Publications(ctx, "site.yaml")
	if err != nil {
		t.Fatal(err)
	}
	got := ""
	for _, p := range all {
		got += p.Label()
		for _, x := range p.Periods {
			got += fmt.Sprintf(" %s-%s", x.From.Sub(start), x.To.Sub(start))
		}
		got += "\n"
	}
	if want := "v2 5h31m0s-5h36m0s 29h36m0s-29h37m0s\nv1 0s-21m0s 5h22m0s-5h31m0s\n"; got != want {
		t.Errorf("got\n%swant\n%s", got, want)
	}
}
