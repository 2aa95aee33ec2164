// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/robotspolicy/caddy-robots-policy/activity/accesslog"
	"github.com/robotspolicy/caddy-robots-policy/activity/replay"
	"github.com/robotspolicy/caddy-robots-policy/claim"
	"github.com/robotspolicy/caddy-robots-policy/robotstxt"
	"github.com/robotspolicy/caddy-robots-policy/site"
	"github.com/robotspolicy/caddy-robots-policy/site/compare"
	"github.com/robotspolicy/caddy-robots-policy/source"
)

// searchGuard is the search-loss limit. It prevents the publication of a policy if search engines would lose too much.
type searchGuard struct {
	traffic string   // the directory of an activity database, or access logs; if empty, the policies are compared
	most    int64    // maximum number of requests in the traffic that search engines may lose
	accept  []string // the names of gaps in the traffic that the user accepts (see claim.Gap)
	yes     bool
	merge   string     // a file or URL with the site's own robots.txt
	below   site.Below // returns the site's own robots.txt; nil if that file is not merged
	broken  bool       // true if the published policy has errors
	old     *site.Site // the published policy; nil if there is none, or if it has errors
}

// read sets the site's own robots.txt for the search-loss check. It comes from the flag --merge. If the flag is not
// set, but the configuration merges the site's file with the policy, the file is treated as unknown.
func (g *searchGuard) read(cmd *cobra.Command, s *storage, key string) error {
	file, err := readBelow(cmd, g.merge)
	switch {
	case err != nil:
		return err
	case file != nil:
		g.below = belowOf(file)
	case s.merges(source.StoragePrefix + key):
		g.below = func(string) (*robotstxt.File, bool) { return nil, false }
	}
	return nil
}

// check returns an error if search engines would lose too much, and the user does not accept this. To find out what
// they would lose, it compares the old and the new policy. With the flag --if-replay, it instead replays the traffic of
// the last seven days.
func (p *publication) check(ctx context.Context, cmd *cobra.Command) error {
	g := &p.guard
	switch {
	case g.most < 0:
		return fmt.Errorf("invalid --max-search-loss %d: must be 0 or more", g.most)
	case g.traffic == "" && g.most > 0:
		return errors.New("--max-search-loss needs --if-replay, with the directory of an activity database, or access logs")
	}
	c, err := p.judgeSearch(ctx)
	if err != nil {
		return err
	}
	writeClaim(cmd.OutOrStdout(), c)
	switch {
	case c.Holds():
		return nil
	case g.traffic != "":
		return errors.New("not published; change the policy, or accept the listed losses with --max-search-loss and the listed gaps with --accept")
	}
	return g.ask(cmd, "not published. To publish the policy anyway, add --yes; to judge the losses from real traffic, add --if-replay")
}

// judgeSearch judges the claim that search engines lose no more than --max-search-loss allows.
func (p *publication) judgeSearch(ctx context.Context) (claim.Claim, error) {
	g := &p.guard
	switch {
	case g.broken:
		why := claim.Gap{Name: "comparison", What: "the published policy has errors, so the new one cannot be compared with it", Close: "check the new policy by hand"}
		return claim.Judge(replay.SearchKeeps, replay.KeepsSubject{Comparison: claim.Read[*compare.Losses](nil, claim.Coverage{Gaps: []claim.Gap{why}})}, g.accept...), nil
	case g.traffic == "" || g.old == nil:
		return replay.Keeps(g.old, p.site, g.below, g.accept), nil
	}
	o := replay.Options{New: p.site, Old: g.old, Below: g.below, Since: time.Now().Add(-replay.LossPeriod), Accept: g.accept}
	if info, err := os.Stat(g.traffic); strings.Contains(g.traffic, "://") || err == nil && info.IsDir() {
		stored, err := useStore(ctx, g.traffic, &o)
		if err != nil {
			return claim.Claim{}, err
		}
		defer stored.Close()
		versions, err := stored.PolicyVersions(ctx, source.StoragePrefix+p.key)
		if err != nil {
			return claim.Claim{}, err
		}
		o.Stored = replay.OfPolicies(o.Stored, versions)
	} else if o.Files, err = accesslog.Expand([]string{g.traffic}); err != nil {
		return claim.Claim{}, fmt.Errorf("--if-replay: %w", err)
	}
	found, err := replay.Run(ctx, o)
	if err != nil {
		return claim.Claim{}, fmt.Errorf("--if-replay: %w", err)
	}
	return found.Keeps(g.most, g.accept), nil
}

// writeClaim writes a claim, followed by the lines that explain it.
func writeClaim(w io.Writer, c claim.Claim) {
	fmt.Fprintln(w, c.Text()+map[bool]string{true: ":"}[len(c.Lines()) > 0])
	for _, line := range c.Lines() {
		fmt.Fprintln(w, "  "+line)
	}
}

// ask asks the user to confirm the publication, unless the flag --yes is set. Without a terminal, it returns an error
// whose text is the parameter otherwise.
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
