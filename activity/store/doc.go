// SPDX-License-Identifier: Apache-2.0

// Package store stores totals of requests in an embedded SQLite database: what crawlers did, by hour and day,
// within limits on rows, bytes and days. It holds no client addresses.
//
// Requests are summed in memory, and the sums are added to the database once a second, or less often if that takes
// long: it may take a hundredth of the time. If the process is killed, the sums not yet added are lost. At the next
// start, the time in between is recorded as a gap. One process at a time writes to a directory. Any number of processes
// can read it.
package store

import (
	"cmp"
	"time"

	"github.com/robotspolicy/caddy-robots-policy/activity"
)

// Options holds the limits of a store. A zero field has its default.
type Options struct {
	// RowsPerHour is the number of rows with paths in an hour, 50,000. Further requests are summed under
	// [OtherPath]. The rows with the most requests stay. A day has the same number.
	RowsPerHour int
	Hours       time.Duration // how long hourly totals are stored: 90 days
	Days        time.Duration // how long daily totals are stored: 396 days
	// MaxBytes limits the size of the database, 512 MiB. When it is reached, the oldest hours with paths are
	// deleted first, except the last week, then days with paths, then the other totals.
	MaxBytes int64
	Queue    int              // the most requests that may wait to be summed, 16,384
	Now      func() time.Time // the clock, time.Now
	// Report is called with an error when writing begins to fail, and with nil when it works again. It may be nil.
	Report func(error)
	// Shrinking is called, once a day at most, when rows are deleted because the
	// database is too large: it has size bytes, and limit bytes are allowed. It may be nil.
	Shrinking func(size, limit int64)

	writeInterval, maintainInterval time.Duration // a second and a minute, except in tests
}

// OtherPath represents all paths without a separate row.
const OtherPath = activity.OtherPath

func (o *Options) setDefaults() {
	o.RowsPerHour = cmp.Or(o.RowsPerHour, 50_000)
	o.Hours = cmp.Or(o.Hours, 90*24*time.Hour)
	o.Days = cmp.Or(o.Days, 396*24*time.Hour)
	o.MaxBytes = cmp.Or(o.MaxBytes, 512<<20)
	o.Queue = cmp.Or(o.Queue, 1<<14)
	o.writeInterval = cmp.Or(o.writeInterval, time.Second)
	o.maintainInterval = cmp.Or(o.maintainInterval, time.Minute)
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.Report == nil {
		o.Report = func(error) {}
	}
	if o.Shrinking == nil {
		o.Shrinking = func(_, _ int64) {}
	}
}
