// SPDX-License-Identifier: Apache-2.0

package console

import (
	"fmt"
	"testing"
	"time"

	"github.com/robotspolicy/caddy-robots-policy/activity"
)

// The pages of a long list together contain each row once. Each page has the total numbers of rows and requests.
func TestPagesOfViolations(t *testing.T) {
	s := startCaddyWith(t, testPolicy, t.TempDir())
	var all []activity.Request
	var violations int64
	for i := range 25 {
		for range 1 + i%3 {
			violations++
			all = append(all, activity.Request{Time: time.Now(), Host: "www.example.com", Path: fmt.Sprint("/", i), Crawler: "GPTBot", Category: "ai-training", Identity: activity.Unverified, Violation: true, Robots: "r"})
		}
	}
	recorded(t, s, all...)
	seen, sum, pages := map[string]bool{}, int64(0), 0
	for skip, more := 0, true; more; pages++ {
		page, err := runningActivity().Violations(t.Context(), time.Now().Add(-time.Hour), skip, 10)
		if err != nil || page.Rows != 25 || page.All != violations {
			t.Fatalf("%+v, %v; want 25 rows, %d violations", page, err, violations)
		}
		for _, v := range page.Violations {
			seen[v.Path] = true
			sum += v.Requests
		}
		skip, more = page.Next, page.Next > 0
	}
	if len(seen) != 25 || sum != violations || pages != 3 {
		t.Errorf("%d rows with %d violations on %d pages, want 25 with %d on 3", len(seen), sum, pages, violations)
	}
}
