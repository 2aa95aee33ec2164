// SPDX-License-Identifier: Apache-2.0

package console

import (
	"context"
	"slices"
	"time"

	"github.com/robotspolicy/caddy-robots-policy/activity"
	"github.com/robotspolicy/caddy-robots-policy/activity/replay"
	"github.com/robotspolicy/caddy-robots-policy/activity/store"
	"github.com/robotspolicy/caddy-robots-policy/claim"
	"github.com/robotspolicy/caddy-robots-policy/policy"
	"github.com/robotspolicy/caddy-robots-policy/site"
)

// replayed is the effect that a draft would have had on the stored requests.
type replayed struct {
	*replay.Report // empty if the requests were not read
	Days           int
	TooLong        bool   // true if the replay took too long
	Error          string // the error if the requests could not be read
}

const replayTimeout = 8 * time.Second

// traffic selects the stored requests to replay. The field policy is the name of a policy, and only requests that a
// version of this policy has decided are selected. If hosts is not nil, only requests to these hosts are selected.
type traffic struct {
	store  store.Queries
	policy string // the name of the policy
	hosts  []string
	shown  func(claim.Coverage) claim.Coverage // removes details that the person may not see
	days   int
	below  site.Below
}

// replay decides the selected requests of the last t.days days again, this time under the draft.
func (t *traffic) replay(ctx context.Context, old, draft *site.Site, now time.Time) *replayed {
	ctx, cancel := context.WithTimeout(ctx, replayTimeout)
	defer cancel()
	days := t.days
	versions, err := t.store.PolicyVersions(ctx, t.policy)
	r := &replayed{Days: days}
	if err == nil {
		r.Report, err = replay.Run(ctx, replay.Options{
			New: draft, Old: old, Below: t.below, Hosts: hostsOf(t.hosts), Stored: t.rows(versions), StoreName: "the activity database", Workers: 1,
			Since: since(now, days), Until: now.Add(time.Hour),
		})
	}
	switch {
	case err != nil && ctx.Err() != nil:
		return &replayed{Report: new(replay.Report), Days: days, TooLong: true}
	case err != nil:
		return &replayed{Report: new(replay.Report), Days: days, Error: firstLine(err.Error())}
	}
	return r
}

// hostsOf converts names to hosts. It returns nil if names is nil.
func hostsOf(names []string) (hosts []policy.Host) {
	for _, name := range names {
		hosts = append(hosts, policy.Host(name))
	}
	return hosts
}

// since returns the start of a period that ends now and lasts the given number of days. A period of one day is the last
// 24 hours, beginning at a full hour.
func since(now time.Time, days int) time.Time {
	if days == 1 {
		return now.Truncate(time.Hour).Add(-23 * time.Hour)
	}
	return activity.Since(now, time.Duration(days)*24*time.Hour)
}

func (t *traffic) rows(versions []string) replay.Stored {
	rows := replay.Where(replay.OfPolicies(t.store.EachRow, versions), func(v activity.Totals) bool { return t.hosts == nil || slices.Contains(t.hosts, v.Host) })
	return func(ctx context.Context, from, to time.Time, each func(activity.Totals) error) (claim.Coverage, error) {
		c, err := rows(ctx, from, to, each)
		return t.shown(c), err
	}
}

// requestsOf returns the total number of requests of all crawlers.
func requestsOf(all []replay.CrawlerCount) (n int64) {
	for i := range all {
		n += all[i].Requests
	}
	return n
}

// missing returns a sentence that says why the draft was not compared with stored traffic. It returns nil if the replay
// had requests, or if r is nil because nothing was to be replayed.
func (r *replayed) missing() []string {
	switch {
	case r == nil || r.Requests > 0:
		return nil
	case r.Error != "":
		return []string{"The stored traffic cannot be read (" + r.Error + "), so the draft was only compared with the version in force."}
	case r.TooLong:
		return []string{"A replay of the stored traffic would take too long, so the draft was only compared with the version in force. Choose fewer days, and check again."}
	}
	return []string{"No request of the last " + plural(r.Days, "day", "days") + " is stored, so the draft was only compared with the version in force."}
}
