// SPDX-License-Identifier: Apache-2.0

package activity

import "time"

// Totals holds the totals of the requests in one row of the activity database.
type Totals struct {
	Start                       time.Time // start of the row's hour or day
	Host, Crawler, Category     string
	Identity                    Identity
	Decision                    Decision
	Rule, Policy                string
	Path                        string // OtherPath for paths without their own row
	Requests, Bytes, Violations int64
	Queries                     int64 // number of requests with a query that Path leaves out
}

// OtherPath represents all paths that do not have their own row.
const OtherPath = "(other)"

// Since returns the start of the period of length d that ends now. If d is two or more whole days, the period starts at
// midnight UTC, and today is its last day. Otherwise, for example if d is one day, the period starts exactly d ago.
func Since(now time.Time, d time.Duration) time.Time {
	const day = 24 * time.Hour
	if d <= day || d%day != 0 {
		return now.Add(-d)
	}
	return now.UTC().Truncate(day).Add(day - d)
}
