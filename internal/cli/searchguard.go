// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/robotspolicy/caddy-robots-policy/activity/accesslog"
	"github.com/robotspolicy/caddy-robots-policy/activity/replay"
	"github.com/robotspolicy/caddy-robots-policy/site"
)

// searchGuard refuses to publish a policy that would lose search crawlers.
type searchGuard struct {
	traffic string // the directory of an activity store, or access logs; empty: no guard
	most    int64  // requests of verified search crawlers that may newly be refused
}

// check replays the traffic of the last seven days. old is nil if nothing is published
// yet; name is that of the policy's source, by which a store is asked for the traffic
// that the policy decided.
func (g *searchGuard) check(ctx context.Context, old, s *site.Site, name string) error {
	if g.traffic == "" {
		return nil
	}
	if g.most < 0 {
		return fmt.Errorf("invalid --max-search-loss %d: must be 0 or more", g.most)
	}
	o := replay.Options{New: s, Old: old, Since: time.Now().Add(-replay.LossPeriod)}
	if info, err := os.Stat(g.traffic); err == nil && info.IsDir() {
		stored, err := useStore(ctx, g.traffic, &o)
		if err != nil {
			return err
		}
		defer stored.Close()
		versions, err := stored.PolicyVersions(ctx, name)
		if err != nil {
			return err
		}
		o.Stored = replay.OfPolicies(o.Stored, versions)
	} else {
		if o.Files, err = accesslog.Expand([]string{g.traffic}); err != nil {
			return fmt.Errorf("--if-replay: %w", err)
		}
	}
	r, err := replay.Run(ctx, o)
	if err != nil {
		return fmt.Errorf("--if-replay: %w", err)
	}
	if r.Requests == 0 {
		return errors.New("not published: --if-replay found no request of the last seven days in " + g.traffic)
	}
	if err := r.CheckSearchLoss(g.most); err != nil {
		return fmt.Errorf("not published: %w", err)
	}
	return nil
}
