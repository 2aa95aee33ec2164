// SPDX-License-Identifier: Apache-2.0

package activity

import "time"

// Totals are the requests that a row of the store sums up.
type Totals struct {
	Start                       time.Time // when the hour or day of the row begins
	Host, Crawler, Category     string
	Identity                    Identity
	Decision                    Decision
	Rule, Policy                string
	Path                        string // OtherPath for what was summed up
	Requests, Bytes, Violations int64
	Queries                     int64 // how many of the requests had a query that Path does not have
}

// OtherPath stands for all paths that have no row of their own.
const OtherPath = "(other)"

// Since returns the beginning of a period that ends now. For two or more whole days the period begins with a day in
// UTC, and today is the last of them. Any other period, one day included, begins exactly d ago.
func Since(now time.Time, d time.Duration) time.Time {
	const day = 24 * time.Hour
	if d <= day || d%day != 0 {
		return now.Add(-d)
	}
	return now.UTC().Truncate(day).Add(day - d)
}
