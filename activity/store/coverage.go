// SPDX-License-Identifier: Apache-2.0

package store

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/robotspolicy/caddy-robots-policy/claim"
	"github.com/robotspolicy/caddy-robots-policy/internal/leaf/english"
)

// The names of the gaps of an activity database.
const (
	GapUnstoredPaths = "unstored-paths" // requests whose paths were deleted because of age or of the database's size
	GapNotRecorded   = "not-recorded"   // requests that could not be written to the database
)

// unrecorded maps each hour to the number of requests that could not be recorded. The value 0 means that an unknown
// number of requests may be missing. This is the case if the database was not closed properly, or was closed for a long
// time.
type unrecorded map[int64]int64

// unrecordedIn returns the numbers of unrecorded requests between two times, by hour.
func unrecordedIn(ctx context.Context, e engine, from, to time.Time) (unrecorded, error) {
	lost := unrecorded{}
	first, end := hoursOf(from, to)
	err := e.query(ctx, "SELECT hour, requests FROM not_recorded"+e.dialect().final+e.where(fmt.Sprintf("hour >= %d AND hour < %d", first, end)), 2, func(_ []string, n []int64) { lost[n[0]] += n[1] })
	return lost, err
}

// Coverage describes the data that is missing in the database between two times.
func (r *Reader) Coverage(ctx context.Context, from, to time.Time) (claim.Coverage, error) {
	lost, err := unrecordedIn(ctx, r, from, to)
	return coverageOf(from, to, 0, lost), err
}

// Coverage describes the data that is missing in the fleet's database between two times, and lists its servers.
func (r *FleetReader) Coverage(ctx context.Context, from, to time.Time) (claim.Coverage, error) {
	lost, err := unrecordedIn(ctx, r, from, to)
	if err != nil {
		return claim.Coverage{}, err
	}
	nodes, err := r.Nodes(ctx)
	c := coverageOf(from, to, 0, lost)
	for _, n := range nodes {
		if r.Node == "" || r.Node == n.Name {
			c.Servers = append(c.Servers, n.Name)
		}
	}
	for _, g := range gaps(nodes, time.Now(), from) {
		if g.To.After(from) && g.From.Before(to) {
			c.Gaps = append(c.Gaps, g)
		}
	}
	return claim.Unite(c), err
}

// hoursOf returns the first hour of a period, and the hour after its last hour. Hours are counted from 1970.
func hoursOf(from, to time.Time) (first, end int64) {
	return from.Unix() / 3600, (to.Unix() + 3599) / 3600
}

// coverageOf describes the data that is missing between two times. pathless is the number of requests whose paths are
// no longer stored, and lost has the numbers of requests that could not be recorded.
func coverageOf(from, to time.Time, pathless int64, lost unrecorded) (c claim.Coverage) {
	c.From, c.To = from, to
	if pathless > 0 {
		c.Gaps = append(c.Gaps, claim.Gap{
			Name: GapUnstoredPaths, Count: pathless, From: from, To: to,
			What:  "the paths of " + english.Count(int(pathless), "request") + " are no longer stored",
			Close: "in the option \"activity\", set larger values for max_size, hours or days",
		})
	}
	first, end := hoursOf(from, to)
	var number int64
	var unknown []int64 // in hours since 1970
	for _, hour := range slices.Sorted(maps.Keys(lost)) {
		if hour < first || hour >= end {
			continue
		}
		if number += lost[hour]; lost[hour] == 0 {
			unknown = append(unknown, hour)
		}
	}
	if number > 0 {
		c.Gaps = append(c.Gaps, claim.Gap{
			Name: GapNotRecorded, Count: number, From: from, To: to,
			What:  "at least " + english.Count(int(number), "request") + " could not be recorded",
			Close: "replay the access log of that time",
		})
	}
	if len(unknown) > 0 {
		from, to := time.Unix(unknown[0]*3600, 0).UTC(), time.Unix(unknown[len(unknown)-1]*3600+3600, 0).UTC()
		c.Gaps = append(c.Gaps, claim.Gap{
			Name: GapNotRecorded, From: from, To: to,
			What: fmt.Sprintf("requests may be missing in %s between %s and %s UTC: the server was killed, its database was not open, or an older database was restored",
				english.Count(len(unknown), "hour"), from.Format(minuteFormat), to.Format(minuteFormat)),
			Close: "replay the access log of that time",
		})
	}
	return c
}

const minuteFormat = "2 January 2006, 15:04"
