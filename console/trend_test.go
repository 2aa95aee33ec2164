// SPDX-License-Identifier: Apache-2.0

package console

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/robotspolicy/caddy-robots-policy/activity/store"
)

// withoutBounds is a store that cannot say which period it covers.
type withoutBounds struct{ store.Queries }

func (withoutBounds) Bounds(context.Context) (store.Bounds, error) { return store.Bounds{}, errFails }

// The Overview page compares a period with the previous period only if the database covers the whole previous period.
func TestTrendOfAYoungStore(t *testing.T) {
	now := time.Now().UTC()
	date := func(ago int) string { return now.AddDate(0, 0, -ago).Format(time.DateOnly) }
	for _, c := range []struct {
		visits  map[int]int // number of requests, keyed by the age in days
		address string
		want    string
	}{
		{map[int]int{0: 4, 8: 2}, "?days=7", ""},
		{map[int]int{0: 4, 8: 2, 12: 1}, "?days=7", ""},
		{map[int]int{0: 4, 8: 2, 14: 9}, "?days=7", "100% more than in the 7 days before"},
		{map[int]int{0: 4, 8: 2, 14: 9}, "?days=30", ""},
		{map[int]int{0: 4, 380: 2}, "?days=365", ""},
		{map[int]int{0: 4, 380: 2, 740: 1}, "?days=365", "100% more than in the 365 days before"},
		{map[int]int{8: 1, 9: 2}, "?since=" + date(8) + "&until=" + date(8), "50% less than in the 1 day before"},
		{map[int]int{8: 1, 9: 2}, "?since=" + date(9) + "&until=" + date(8), ""},
	} {
		t.Run(c.address, func(t *testing.T) {
			dir := t.TempDir()
			fillDays(t, dir, now, c.visits)
			s := startCaddyWith(t, testPolicy, dir)
			for _, known := range []bool{true, false} {
				answersOf, want := runningStore(""), c.want
				if !known {
					answersOf, want = withoutBounds{answersOf}, ""
				}
				body, err := pageWith(t, s, answersOf, c.address, nil)
				if err != nil {
					t.Fatal(err)
				}
				_, after, _ := strings.Cut(body, "<dt>in total")
				if got, _, _ := strings.Cut(after, "</dt>"); strings.TrimPrefix(got, ", ") != want {
					t.Errorf("visits %v, bounds known %v: %q, want %q", c.visits, known, got, want)
				}
			}
		})
	}
}
