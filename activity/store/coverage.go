// SPDX-License-Identifier: Apache-2.0

package store

import (
	"time"

	"github.com/robotspolicy/caddy-robots-policy/claim"
	"github.com/robotspolicy/caddy-robots-policy/internal/leaf/english"
)

// The names of the gaps of a database.
const (
	GapUnstoredPaths = "unstored-paths" // requests whose paths were deleted for their age or size
	GapNotRecorded   = "not-recorded"   // requests that came faster than they could be written
)

// coverageOf returns the gaps of the database between two times.
func coverageOf(from, to time.Time, pathless, lost int64) (c claim.Coverage) {
	c.From, c.To = from, to
	if pathless > 0 {
		c.Gaps = append(c.Gaps, claim.Gap{
			Name: GapUnstoredPaths, Count: pathless, From: from, To: to,
			What:  "the paths of " + english.Count(int(pathless), "request") + " are no longer stored",
			Close: "give the option activity a larger max_size, or more hours and days",
		})
	}
	if lost > 0 {
		c.Gaps = append(c.Gaps, claim.Gap{
			Name: GapNotRecorded, Count: lost, From: from, To: to,
			What:  english.Count(int(lost), "request") + " could not be recorded",
			Close: "replay the access log of that time",
		})
	}
	return c
}
