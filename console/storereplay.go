// SPDX-License-Identifier: Apache-2.0

package console

import (
	"context"
	"slices"
	"time"

	"github.com/robotspolicy/caddy-robots-policy/activity"
	"github.com/robotspolicy/caddy-robots-policy/activity/replay"
	"github.com/robotspolicy/caddy-robots-policy/activity/store"
	"github.com/robotspolicy/caddy-robots-policy/site"
	"github.com/robotspolicy/caddy-robots-policy/site/compare"
)

// replayed is the effect that a draft would have had on the stored requests.
type replayed struct {
	Days             int
	Requests         int64
	Notes            []replay.Note         // what could not be decided as the server would have
	Blocked, Allowed []replay.CrawlerCount // newly
	Loss             replay.SearchLoss
	TooLong          bool   // there was no time for them
	Error            string // why they could not be read
	Unsent           string // what servers of the fleet have not sent
}

// judges reports whether there is traffic to judge by. If not, the policies are compared.
func (r *replayed) judges() bool {
	return r != nil && r.Error == "" && (r.Requests > 0 || r.TooLong)
}

const replayTimeout = 8 * time.Second

// replayStore decides the visits of the last days again, of some hosts or (nil) all.
func replayStore(ctx context.Context, r store.Queries, old, draft *site.Site, now time.Time, days int, only []string) *replayed {
	ctx, cancel := context.WithTimeout(ctx, replayTimeout)
	defer cancel()
	stored := replay.Where(r.EachRow, func(v activity.Totals) bool { return only == nil || slices.Contains(only, v.Host) })
	report, err := replay.Run(ctx, replay.Options{
		New: draft, Old: old, Stored: stored, StoreName: "the activity database", Workers: 1,
		Since: now.Truncate(24*time.Hour).AddDate(0, 0, 1-days), Until: now.Add(time.Hour),
	})
	switch {
	case err != nil && ctx.Err() != nil:
		return &replayed{Days: days, TooLong: true}
	case err != nil:
		return &replayed{Days: days, Error: firstLine(err.Error())}
	}
	return &replayed{
		Days: days, Requests: report.Requests, Notes: report.NotReplayed, Loss: report.SearchLoss, Blocked: report.NewlyRefused, Allowed: report.NewlyAllowed,
	}
}

// requestsOf are the requests of all crawlers.
func requestsOf(all []replay.CrawlerCount) (n int64) {
	for i := range all {
		n += all[i].Requests
	}
	return n
}

// acceptedAll reports whether all losses of search engines are accepted, and no more requests are undecided than may be.
func acceptedAll(l *replay.SearchLoss, maxUndecided int64, accepted []string) bool {
	if len(accepted) == 0 || l.Uncertain() > maxUndecided && !slices.Contains(accepted, compare.Undecided) {
		return false
	}
	return !slices.ContainsFunc(l.Crawlers, func(c replay.CrawlerLoss) bool { return !c.Intended && !slices.Contains(accepted, c.Crawler) })
}
