// SPDX-License-Identifier: Apache-2.0

package console

import (
	"cmp"
	"context"
	"slices"
	"strings"
	"time"

	"github.com/robotspolicy/caddy-robots-policy/activity"
	"github.com/robotspolicy/caddy-robots-policy/activity/replay"
	"github.com/robotspolicy/caddy-robots-policy/activity/store"
	"github.com/robotspolicy/caddy-robots-policy/site"
)

// replayed is what a draft would have done to the stored visits.
type replayed struct {
	Days     int
	Requests int64
	Notes    []replay.Note // what could not be decided as the server would have
	Rows     []replayRow
	Refused  int64 // newly
	Allowed  int64 // newly
	Loss     replay.SearchLoss
	TooLong  bool   // there was no time for them
	Error    string // why they could not be read
	Unsent   string // what servers of the fleet have not sent
}

// judges reports whether there is traffic to judge by. If not, the policies are compared.
func (r *replayed) judges() bool {
	return r != nil && r.Error == "" && (r.Requests > 0 || r.TooLong)
}

// replayRow is what changes for a crawler.
type replayRow struct {
	Crawler, Kind, Identity string
	Refused, Allowed        int64
	Rules                   []string
}

const replayTimeout = 8 * time.Second

// replayStore decides the visits of the last days again, under the policy in force and
// under a draft. Only the hosts of a page count, if it has any.
func replayStore(ctx context.Context, r store.Queries, old, draft *site.Site, now time.Time, days int, only []string) *replayed {
	ctx, cancel := context.WithTimeout(ctx, replayTimeout)
	defer cancel()
	stored := r.EachRow
	if only != nil {
		stored = func(ctx context.Context, from, to time.Time, each func(activity.Visits) error) (int64, error) {
			return r.EachRow(ctx, from, to, func(v activity.Visits) error {
				if !slices.Contains(only, v.Host) {
					return nil
				}
				return each(v)
			})
		}
	}
	report, err := replay.Run(ctx, replay.Options{
		New: draft, Old: old, Stored: stored, StoreName: "the store", Workers: 1,
		Since: now.Truncate(24*time.Hour).AddDate(0, 0, 1-days), Until: now.Add(time.Hour),
	})
	switch {
	case err != nil && ctx.Err() != nil:
		return &replayed{Days: days, TooLong: true}
	case err != nil:
		return &replayed{Days: days, Error: firstLine(err.Error())}
	}
	out := &replayed{Days: days, Requests: report.Requests, Notes: report.NotReplayed, Loss: report.SearchLoss}
	by := map[string]*replayRow{}
	row := func(c *replay.CrawlerCount) *replayRow {
		if by[c.Crawler] == nil {
			by[c.Crawler] = &replayRow{Crawler: c.Crawler, Kind: c.Kind, Identity: mostly(c), Rules: c.Rules[:min(2, len(c.Rules))]}
		}
		return by[c.Crawler]
	}
	for i := range report.NewlyRefused {
		c := &report.NewlyRefused[i]
		row(c).Refused += c.Requests
		out.Refused += c.Requests
	}
	for i := range report.NewlyAllowed {
		c := &report.NewlyAllowed[i]
		row(c).Allowed += c.Requests
		out.Allowed += c.Requests
	}
	for _, r := range by {
		out.Rows = append(out.Rows, *r)
	}
	slices.SortFunc(out.Rows, func(a, b replayRow) int {
		return cmp.Or(cmp.Compare(b.Refused+b.Allowed, a.Refused+a.Allowed), strings.Compare(a.Crawler, b.Crawler))
	})
	return out
}

// mostly is the identity that most of the requests had.
func mostly(c *replay.CrawlerCount) string {
	switch {
	case c.Verified >= max(c.Claimed, c.Impostor):
		return string(activity.Verified)
	case c.Impostor > c.Claimed:
		return string(activity.Impostor)
	}
	return string(activity.Claimed)
}
