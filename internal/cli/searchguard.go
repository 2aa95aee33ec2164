// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/robotspolicy/caddy-robots-policy/activity/accesslog"
	"github.com/robotspolicy/caddy-robots-policy/activity/replay"
	"github.com/robotspolicy/caddy-robots-policy/site"
	"github.com/robotspolicy/caddy-robots-policy/site/compare"
)

// searchGuard refuses to publish a policy by which search engines lose something.
type searchGuard struct {
	traffic         string // the directory of an activity store, or access logs; empty: the policies are compared
	most, undecided int64  // see replay.SearchLoss.Check
	yes             bool
	broken          bool // what is published has errors
}

// check replays the traffic of the last seven days. old is nil if nothing is published
// yet; name is that of the policy's source, by which a store is asked for the traffic
// that the policy decided.
func (g *searchGuard) check(ctx context.Context, cmd *cobra.Command, old, s *site.Site, name string) error {
	switch {
	case g.most < 0:
		return fmt.Errorf("invalid --max-search-loss %d: must be 0 or more", g.most)
	case g.undecided < 0:
		return fmt.Errorf("invalid --undecided %d: must be 0 or more", g.undecided)
	case g.traffic == "":
		return g.compare(cmd, old, s)
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
	if err := r.SearchLoss.Check(g.most, g.undecided, "--undecided"); err != nil {
		return fmt.Errorf("not published: %w", err)
	}
	return nil
}

// compare asks before it publishes what search engines lose by.
func (g *searchGuard) compare(cmd *cobra.Command, old, s *site.Site) error {
	losses := compare.SearchLosses(old, s, compare.Options{})
	if g.yes || old == nil && !g.broken || old != nil && !losses.Any() {
		return nil
	}
	out := cmd.OutOrStdout()
	if g.broken {
		fmt.Fprintln(out, "What search engines lose cannot be judged: the published policy has errors.")
	} else {
		fmt.Fprintln(out, "Search engines lose:")
		for _, words := range losses.Words() {
			fmt.Fprintln(out, "  "+words)
		}
	}
	if !isTerminal(cmd.InOrStdin()) {
		return errors.New("not published: with --yes it is published all the same; --if-replay judges by traffic")
	}
	fmt.Fprint(out, "Publish it? [y/N] ")
	answer, _ := bufio.NewReader(cmd.InOrStdin()).ReadString('\n')
	if a := strings.ToLower(strings.TrimSpace(answer)); a != "y" && a != "yes" {
		return errors.New("not published")
	}
	return nil
}
