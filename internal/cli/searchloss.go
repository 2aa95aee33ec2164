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
	"github.com/robotspolicy/caddy-robots-policy/internal/leaf/english"
	"github.com/robotspolicy/caddy-robots-policy/site"
	"github.com/robotspolicy/caddy-robots-policy/site/compare"
	"github.com/robotspolicy/caddy-robots-policy/source"
)

// searchGuard refuses to publish a policy by which search engines lose something.
type searchGuard struct {
	traffic         string // the directory of an activity database, or access logs; empty: the policies are compared
	most, undecided int64  // see replay.SearchLoss.Check
	yes             bool
	broken          bool       // what is published has errors
	old             *site.Site // what is published; nil if nothing is, or with errors
}

// check replays the traffic of the last seven days, or judges by comparison of the policies. losses is nil if nothing
// is published yet, or with errors.
func (p *publication) check(ctx context.Context, cmd *cobra.Command, losses *compare.Losses) error {
	g := &p.guard
	switch {
	case g.most < 0:
		return fmt.Errorf("invalid --max-search-loss %d: must be 0 or more", g.most)
	case g.undecided < 0:
		return fmt.Errorf("invalid --undecided %d: must be 0 or more", g.undecided)
	case g.traffic == "" && (g.most > 0 || g.undecided > 0):
		return errors.New("--max-search-loss and --undecided are for --if-replay: give it the directory of an activity database, or access logs")
	case g.traffic == "":
		return g.compare(cmd, losses)
	}
	o := replay.Options{New: p.site, Old: g.old, Since: time.Now().Add(-replay.LossPeriod)}
	if info, err := os.Stat(g.traffic); strings.Contains(g.traffic, "://") || err == nil && info.IsDir() {
		stored, err := useStore(ctx, g.traffic, &o)
		if err != nil {
			return err
		}
		defer stored.Close()
		versions, err := stored.PolicyVersions(ctx, source.StoragePrefix+p.key)
		if err != nil {
			return err
		}
		o.Stored = replay.OfPolicies(o.Stored, versions)
	} else {
		if o.Files, err = accesslog.Expand([]string{g.traffic}); err != nil {
			return fmt.Errorf("--if-replay: %w", err)
		}
	}
	found, err := replay.Run(ctx, o)
	if err != nil {
		return fmt.Errorf("--if-replay: %w", err)
	}
	if found.Requests == 0 {
		return errors.New("not published: --if-replay found no request of the last seven days in " + g.traffic)
	}
	if err := found.SearchLoss.Check(g.most, g.undecided, "--undecided"); err != nil {
		return fmt.Errorf("not published: %w", err)
	}
	looked := fmt.Sprintf("%s of crawlers in the last seven days replayed; search engines lose %s", english.Count(int(found.Crawlers), "request"), english.Number(found.SearchLoss.Requests))
	if found.SearchLoss.Requests == 0 && losses != nil && losses.Any() {
		looked += ", and paths that none of them requested"
	}
	if n := found.SearchLoss.Unverified; n > 0 {
		looked += fmt.Sprintf("; not counted: %s of unverified search engines", english.Count(int(n), "request"))
	}
	_, err = fmt.Fprintln(cmd.OutOrStdout(), looked)
	return err
}

// compare asks before it publishes what search engines lose by.
func (g *searchGuard) compare(cmd *cobra.Command, losses *compare.Losses) error {
	out := cmd.OutOrStdout()
	switch {
	case g.yes || losses == nil && !g.broken:
		return nil
	case g.broken:
		fmt.Fprintln(out, "The losses of search engines cannot be judged: the published policy has errors.")
	case !losses.Any():
		fmt.Fprintln(out, "search engines lose nothing that is not intended, by comparison of the two policies")
		return nil
	case len(losses.Found) > 0:
		fmt.Fprintln(out, "Search engines lose:")
	default:
		fmt.Fprintln(out, "The losses of search engines cannot be judged:")
	}
	if losses != nil {
		for _, words := range losses.Words() {
			fmt.Fprintln(out, "  "+words)
		}
	}
	return g.ask(cmd, "not published. To publish it anyway, give --yes; to judge by traffic, give --if-replay")
}

// ask asks for a yes, unless it was given.
func (g *searchGuard) ask(cmd *cobra.Command, otherwise string) error {
	if g.yes {
		return nil
	}
	if !isTerminal(cmd.InOrStdin()) {
		return errors.New(otherwise)
	}
	_, _ = fmt.Fprint(cmd.OutOrStdout(), "Publish it? [y/N] ")
	answer, _ := bufio.NewReader(cmd.InOrStdin()).ReadString('\n')
	if a := strings.ToLower(strings.TrimSpace(answer)); a != "y" && a != "yes" {
		return errors.New("not published")
	}
	return nil
}
