// SPDX-License-Identifier: Apache-2.0

package console

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/caddyserver/caddy/v2"
	"github.com/spf13/cobra"

	"github.com/robotspolicy/caddy-robots-policy/activity"
	"github.com/robotspolicy/caddy-robots-policy/activity/replay"
	"github.com/robotspolicy/caddy-robots-policy/activity/store"
	"github.com/robotspolicy/caddy-robots-policy/internal/cli"
	"github.com/robotspolicy/caddy-robots-policy/internal/leaf/english"
	"github.com/robotspolicy/caddy-robots-policy/policy"
	"github.com/robotspolicy/caddy-robots-policy/policyfile"
	"github.com/robotspolicy/caddy-robots-policy/robotsserve"
	"github.com/robotspolicy/caddy-robots-policy/site"
)

func init() { cli.Register(demoCommand) }

func demoCommand() *cobra.Command {
	o := demoOptions{Hosts: []string{"localhost"}, Days: 30, Seed: 1}
	var file, source string
	cmd := cli.Command("demo [DIR]", "Fills an empty activity store with a made-up month, to look at the console",
		func(cmd *cobra.Command, args []string) (int, error) {
			if len(args) > 1 {
				return cli.ExitUsage, errors.New("too many arguments: the command takes one directory, that of the option activity")
			}
			dir := "caddy-data/activity"
			if len(args) == 1 {
				dir = args[0]
			}
			if _, err := os.Stat(filepath.Join(dir, "activity.db")); err == nil {
				return cli.ExitUsage, fmt.Errorf("%s holds a store already: name another directory, or move it away", dir)
			}
			name, err := filepath.Abs(file)
			if err != nil {
				return cli.ExitUsage, err
			}
			o.Name, o.Now = cmp.Or(source, name), time.Now()
			data, err := os.ReadFile(file)
			if err != nil {
				return cli.ExitUsage, fmt.Errorf("reading the policy failed: %w; name one with --policy", err)
			}
			o.Text = string(data)
			n, err := fillDemo(cmd.Context(), dir, o)
			if err != nil {
				return cli.ExitUsage, err
			}
			_, err = fmt.Fprintf(cmd.OutOrStdout(), "%s now holds %s made-up visits of %d days.\n"+
				"To look at them, run Caddy with this in its global options, and open http://%s/\n\n\trobots_policy {\n\t\tactivity %s\n\t\tconsole\n\t}\n",
				dir, english.Number(n), o.Days, defaultListen, dir)
			return caddy.ExitCodeSuccess, err
		})
	cmd.Flags().StringVar(&file, "policy", "examples/site-policy.yaml", "the policy that decides about the visits")
	cmd.Flags().StringVar(&source, "source", "", "what the configuration calls the policy, such as storage:KEY (default: the file)")
	cmd.Flags().Float64Var(&o.Share, "share", 1, "how many visits, as a share of the usual")
	cmd.Flags().IntVar(&o.Pages, "pages", 400, "how many articles the site has")
	cmd.Flags().StringSliceVar(&o.Hosts, "host", o.Hosts, "the hosts that are visited, the busiest first")
	cmd.Flags().IntVar(&o.Days, "days", o.Days, "how many days")
	cmd.Flags().Uint64Var(&o.Seed, "seed", o.Seed, "another number makes other visits")
	return cmd
}

// demoOptions say what to make up.
type demoOptions struct {
	Name  string // of the policy's source
	Text  string // of the policy
	Hosts []string
	Days  int
	Seed  uint64
	Now   time.Time
	Pages int     // articles; 0: 400
	Share float64 // of the usual number of visits; 0: all
}

// demoVersion is a version of the policy that was in force for a part of the time.
type demoVersion struct {
	site   *site.Site
	text   string
	id     string
	from   time.Time
	robots map[string]robotsText // by host
}

type robotsText struct{ tag, body string }

// demo makes up visits.
type demo struct {
	demoOptions
	rnd      *rand.Rand
	versions []demoVersion // oldest first
	store    *store.Store
	clients  []demoClient
	paths    []demoPath
	read     map[string]*demoVersion // what a crawler read last, by crawler and host
	lastRead map[string]time.Time
	visits   int64
}

// fillDemo writes made-up visits to a store, and returns how many.
func fillDemo(ctx context.Context, dir string, o demoOptions) (int64, error) {
	d := &demo{demoOptions: o, rnd: rand.New(rand.NewPCG(o.Seed, 0)), read: map[string]*demoVersion{}, lastRead: map[string]time.Time{}}
	if err := d.makeVersions(); err != nil {
		return 0, err
	}
	for _, c := range demoClients {
		if row, ok := d.versions[0].site.File.Catalogue.Lookup(c.name); ok {
			c.kind = string(row.Kind)
		}
		d.clients = append(d.clients, c)
	}
	d.paths = demoPaths(d.rnd, d.versions[len(d.versions)-1].site.Policy, max(o.Pages, 400))
	s, err := store.Open(ctx, dir, store.Options{Queue: 1 << 22, RowsPerHour: 1 << 24})
	if err != nil {
		return 0, err
	}
	d.store = s
	err = d.publish(ctx)
	start := o.Now.UTC().Truncate(24*time.Hour).AddDate(0, 0, 1-o.Days)
	for at := start; err == nil && at.Before(o.Now); at = at.Add(time.Hour) {
		d.hour(at)
		err = ctx.Err()
	}
	err = errors.Join(err, s.Close())
	if n := s.Dropped(); err == nil && n > 0 {
		err = fmt.Errorf("%d visits were not written", n)
	}
	return d.visits, err
}

// makeVersions makes the older versions of the policy by leaving out its last rules.
func (d *demo) makeVersions() error {
	live, ds := site.Load(d.Name, []byte(d.Text), robotsserve.ServeOptions{})
	if live == nil {
		return ds
	}
	rules := live.Policy.Spec().Rules
	days := time.Duration(d.Days) * 24 * time.Hour
	for i, part := range []float64{2, 0.45, 0.27} {
		text := d.Text
		if cut := 2 - i; cut > 0 && len(rules) > cut {
			text = withoutRules(d.Text, rules[len(rules)-cut:], nextKey(d.Text, rules[len(rules)-1].Pos.Line))
		}
		s, _ := site.LoadWith(d.Name, []byte(text), robotsserve.ServeOptions{}, policyfile.Options{Accepted: true})
		if s == nil {
			continue
		}
		sum := sumOf(text)
		v := demoVersion{site: s, text: text, id: sum[:12], from: d.Now.Add(-time.Duration(float64(days) * part)).Truncate(time.Minute), robots: map[string]robotsText{}}
		for _, host := range d.Hosts {
			f, _ := robotsserve.Render(s.Policy, host, robotsserve.Options{})
			v.robots[host] = robotsText{robotsserve.Version(f.ETag), string(f.Body)}
		}
		d.versions = append(d.versions, v)
	}
	return nil
}

// nextKey is the line of the first key at the top level after a line.
func nextKey(text string, after int) int {
	all := lines(text)
	for i := after; i < len(all); i++ {
		if l := all[i]; l != "" && l[0] != ' ' && l[0] != '#' && l[0] != '-' {
			return i + 1
		}
	}
	return len(all) + 1
}

// withoutRules is a policy without its last rules, which end before a line.
func withoutRules(text string, rules []policy.Rule, end int) string {
	all := lines(text)
	first := rules[0].Pos.Line - 1
	for first > 0 && strings.HasPrefix(strings.TrimSpace(all[first-1]), "#") {
		first--
	}
	return strings.Join(append(all[:first:first], all[min(end-1, len(all)):]...), "\n") + "\n"
}

func (d *demo) publish(ctx context.Context) error {
	for i := range d.versions {
		v := &d.versions[i]
		if err := d.store.Publish(ctx, store.Version{Kind: store.PolicyVersion, Version: v.id, Name: v.site.File.Name, First: v.from, Text: v.text}); err != nil {
			return err
		}
		for host, t := range v.robots {
			if err := d.store.Publish(ctx, store.Version{Kind: store.RobotsVersion, Version: t.tag, Host: host, Name: v.site.File.Name, First: v.from.Add(time.Second), Text: t.body}); err != nil {
				return err
			}
		}
	}
	return nil
}

// inForce is the version of the policy at a time.
func (d *demo) inForce(at time.Time) *demoVersion {
	v := &d.versions[0]
	for i := range d.versions {
		if !d.versions[i].from.After(at) {
			v = &d.versions[i]
		}
	}
	return v
}

// hour makes up the visits of an hour.
func (d *demo) hour(start time.Time) {
	// Crawlers come more by day, less at weekends, and a little more every week.
	shape := 1 + 0.35*math.Sin(float64(start.Hour()-8)*math.Pi/12)
	if w := start.Weekday(); w == time.Saturday || w == time.Sunday {
		shape *= 0.82
	}
	shape *= 1 + 0.004*float64(d.Days)*start.Sub(d.Now).Hours()/24/float64(d.Days)
	for i := range d.clients {
		c := &d.clients[i]
		left := d.Now.Sub(start)
		if c.stops > 0 && left < c.stops {
			continue
		}
		for h, host := range d.Hosts {
			mean := c.daily * cmp.Or(d.Share, 1) / 24 * shape * (0.8 + 0.4*d.rnd.Float64()) / math.Pow(4, float64(h))
			n := int(mean)
			if d.rnd.Float64() < mean-float64(n) {
				n++
			}
			for range n {
				at := start.Add(time.Duration(d.rnd.Float64() * float64(time.Hour)))
				if at.Before(d.Now) {
					d.visit(c, host, at)
				}
			}
		}
	}
}

// visit makes up one visit.
func (d *demo) visit(c *demoClient, host string, at time.Time) {
	v := d.inForce(at)
	key := c.name + " " + host
	if c.reads > 0 && c.identity != activity.Impostor && at.Sub(d.lastRead[key]) > c.reads {
		d.lastRead[key], d.read[key] = at, v
		d.record(activity.Visit{Time: at, Host: host, Path: "/robots.txt", Crawler: c.name, Kind: c.kind, Identity: c.identity, Decision: activity.Allowed,
			Policy: v.id, Robots: v.robots[host].tag, RobotsTxt: true, Status: 200, Bytes: int64(len(v.robots[host].body))})
	}
	path := d.path(c)
	visit := activity.Visit{Time: at, Host: host, Path: path, Crawler: c.name, Kind: c.kind, Identity: c.identity, Decision: activity.Allowed, Policy: v.id, Status: 200, Bytes: d.size()}
	if id := v.site.Policy.Crawler(c.name); id != 0 && c.kind != activity.KindUnknown {
		q := policy.Query{Crawler: id, Host: host, Path: path, Now: at, Identity: map[activity.Identity]policy.Identity{
			activity.Verified: policy.Verified, activity.Impostor: policy.Impostor}[c.identity]}
		e := v.site.Edge(q)
		visit.Decision, visit.Rule = replay.Decision(e), v.site.RuleName(e.Decision.Rule)
		if e.Impostor {
			visit.Rule = "enforcement.impostors"
		}
		if known := d.read[key]; known != nil {
			visit.Robots = known.robots[host].tag
			if known.site.Edge(q).Refused() {
				if d.rnd.Float64() < c.obeys {
					return // it had read that it may not
				}
				visit.Violation = c.identity != activity.Impostor
			}
		}
	}
	if visit.Decision == activity.Refused {
		visit.Status, visit.Bytes = 403, 380
	}
	d.record(visit)
}

func (d *demo) record(v activity.Visit) {
	d.store.Record(v)
	d.visits++
}

// size is that of a page: most are of some 40 kB.
func (d *demo) size() int64 { return int64(math.Exp(10.3 + 0.6*d.rnd.NormFloat64())) }

// path is one that a client asks for: few pages get most requests.
func (d *demo) path(c *demoClient) string {
	for {
		p := &d.paths[int(math.Pow(d.rnd.Float64(), 2.2)*float64(len(d.paths)))]
		if c.only == "" || strings.HasPrefix(p.path, c.only) || d.rnd.Float64() < 0.03 {
			return p.path
		}
	}
}
