// SPDX-License-Identifier: Apache-2.0

// Package store stores totals of the requests of crawlers, by hour and by day, in an embedded SQLite database. For each
// hour and each day, it stores totals by path, and also totals without paths, which need fewer rows. The rows, the
// bytes and the days of the database are limited. The database holds no client addresses.
//
// Requests are summed in memory, and the sums are added to the database once a second. If adding them is slow, they are
// added less often, so that the database is busy for at most a hundredth of the time. If the process is killed, the
// sums that are not in the database yet are lost. At the next start, the time since the last write is recorded as a
// gap. Only one process at a time can write to a directory. Any number of processes can read from it.
package store

import (
	"cmp"
	"time"

	"github.com/robotspolicy/caddy-robots-policy/activity"
)

// Options holds the limits of a store. Zero fields have default values.
type Options struct {
	// RowsPerHour is the maximum number of rows with paths in an hour, and also in a day. The default is 50,000. The
	// rows with the most requests are kept. All other requests are summed under [OtherPath].
	RowsPerHour int
	Hours       time.Duration // how long hourly totals are stored; default 90 days
	Days        time.Duration // how long daily totals are stored; default 396 days
	// MaxBytes limits the size of the database. The default is 512 MiB. If the database is larger, the least important
	// data is deleted first: old published texts, then hourly totals by path that are older than a week. Then follow
	// totals of rare paths, daily totals by path, and all other totals.
	MaxBytes int64
	Queue    int              // maximum number of requests that may wait to be summed; default 16,384
	Now      func() time.Time // the clock; default time.Now
	// Report is called with an error when writing begins to fail, and with nil when writing works again. Report may be
	// nil.
	Report func(error)
	// Shrinking is called, at most once a day, when rows are deleted because the database is too large. size is the
	// size of the database in bytes, and limit is the allowed size. Shrinking may be nil.
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
