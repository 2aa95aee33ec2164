// SPDX-License-Identifier: Apache-2.0

package replay

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/robotspolicy/caddy-robots-policy/activity"
	"github.com/robotspolicy/caddy-robots-policy/internal/leaf/english"
)

// LossPeriod is how far back [Report.CheckSearchLoss] is meant to look.
const LossPeriod = 7 * 24 * time.Hour

// CheckSearchLoss returns an error if the new policy refuses more than most requests of
// verified search crawlers that the old one did not, unless it says that this is
// intended.
func (r *Report) CheckSearchLoss(most int64) error {
	if r.VerifiedSearchLoss <= most {
		return nil
	}
	var who []string
	for _, c := range r.SearchLost {
		if c.Verified > 0 {
			who = append(who, fmt.Sprintf("%s %s, %s", english.Number(c.Verified), c.Crawler, strings.Join(c.Rules, ", ")))
		}
	}
	limit := "none"
	if most > 0 {
		limit = "at most " + english.Number(most)
	}
	return fmt.Errorf("it would refuse %s of verified search crawlers that were let in since %s (%s), and %s may be lost;"+
		" if it is meant to, write \"intended: [refuses-search]\" into the rule",
		plural(r.VerifiedSearchLoss, "request"), r.First.UTC().Format("2006-01-02 15:04"), strings.Join(who, "; "), limit)
}

// Stored is [Options.Stored].
type Stored = func(ctx context.Context, from, to time.Time, each func(activity.Visits) error) (pathless int64, err error)

// OfPolicies leaves out of a store the rows that other policies decided. Without
// versions it leaves out nothing.
func OfPolicies(stored Stored, versions []string) Stored {
	if len(versions) == 0 {
		return stored
	}
	wanted := map[string]bool{}
	for _, v := range versions {
		wanted[v] = true
	}
	return func(ctx context.Context, from, to time.Time, each func(activity.Visits) error) (int64, error) {
		return stored(ctx, from, to, func(v activity.Visits) error {
			if !wanted[v.Policy] {
				return nil
			}
			return each(v)
		})
	}
}
