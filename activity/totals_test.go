// SPDX-License-Identifier: Apache-2.0

package activity

import (
	"testing"
	"time"
)

// "The last seven days" means today and the six days before it, in commands and the admin API as well as in the
// console.
func TestSince(t *testing.T) {
	now := time.Date(2026, 11, 24, 1, 30, 0, 0, time.FixedZone("", 2*3600))
	for d, want := range map[time.Duration]string{
		7 * 24 * time.Hour: "2026-11-17T00:00:00Z", 24 * time.Hour: "2026-11-22T23:30:00Z", 90 * time.Minute: "2026-11-23T22:00:00Z", 2 * 24 * time.Hour: "2026-11-22T00:00:00Z",
	} {
		if got := Since(now, d).UTC().Format(time.RFC3339); got != want {
			t.Errorf("%s: %s, want %s", d, got, want)
		}
	}
}
