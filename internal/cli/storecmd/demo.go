// SPDX-License-Identifier: Apache-2.0

package storecmd

import (
	"cmp"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/robotspolicy/caddy-robots-policy/activity"
	"github.com/robotspolicy/caddy-robots-policy/activity/store"
	"github.com/robotspolicy/caddy-robots-policy/internal/cli"
	"github.com/robotspolicy/caddy-robots-policy/internal/leaf/english"
	"github.com/robotspolicy/caddy-robots-policy/policy"
	"github.com/robotspolicy/caddy-robots-policy/policyfile"
	"github.com/robotspolicy/caddy-robots-policy/robotsserve"
	"github.com/robotspolicy/caddy-robots-policy/site"
	"github.com/robotspolicy/caddy-robots-policy/source"
)

func demoCommand() *cobra.Command {
	o := Demo{Hosts: []string{"localhost"}, Days: 30, Seed: 1}
	var file string
	cmd := cli.Command("demo [DIR]", "Generates a month of made-up requests, so that you can try the console",
		func(cmd *cobra.Command, args []string) error {
			var folder *demoFolder
			dir := filepath.Join(demoName, "activity")
			switch {
			case len(args) > 1:
				return errors.New("too many arguments; write only one directory, the one after \"activity\" in the Caddyfile")
			case len(args) == 1 && file == "":
				return fmt.Errorf("add --policy with the policy file of the server that uses the directory %s, or leave out the directory to use the policy of the demo", args[0])
			case len(args) == 1:
				dir = args[0]
			}
			if _, err := os.Stat(filepath.Join(dir, "activity.db")); err == nil {
				if len(args) == 0 {
					return fmt.Errorf("%s already has an activity database; to make a new demo, delete the folder %s", dir, demoName)
				}
				return fmt.Errorf("%s already has an activity database; name another directory, or move the database away", dir)
			}
			if len(args) == 0 {
				var err error
				if folder, err = newDemoFolder(demoName, file); err != nil {
					return err
				}
				dir, file = folder.activity(), folder.policy
			}
			data := demoPolicy
			if folder == nil || !folder.own {
				var err error
				if data, err = os.ReadFile(file); err != nil {
					return fmt.Errorf("reading the policy failed: %w; name a policy with --policy", err)
				}
			}
			if o.Name == "" {
				var err error
				if o.Name, err = filepath.Abs(file); err != nil {
					return err
				}
			}
			o.Text, o.Now = string(data), time.Now()
			n, err := o.Fill(cmd.Context(), dir)
			if err != nil {
				return err
			}
			made := fmt.Sprintf("%s now has %s made-up requests from %d days.\n", dir, english.Number(n), o.Days)
			if folder == nil {
				_, err = fmt.Fprintf(cmd.OutOrStdout(), "%sTo look at them, run Caddy with these lines in its global options, and open http://localhost:2020/\n\n\trobots_policy {\n\t\tactivity %s\n\t\tconsole\n\t}\n", made, dir)
				return err
			}
			if err := folder.write(o.Hosts); err != nil {
				return err
			}
			_, err = fmt.Fprintf(cmd.OutOrStdout(), "%sTo look at them, run this command, and open http://%s/\n\n\tcaddy run --config %s\n\nDelete the folder %s when you have seen enough.\n", made, folder.console, filepath.Join(demoName, "Caddyfile"), demoName)
			return err
		})
	cmd.Long = `
Makes the folder ` + demoName + ` with a policy, a month of made-up requests and a Caddyfile that
shows them in the console. You can run the demo in any folder, even while another Caddy
runs, because it uses free ports and has its own admin API and storage.

If you give DIR, the command does not make the folder. It writes only the requests, to the
directory DIR, which must be empty. In this way, you can try the console on your own server.
DIR is then the directory after "activity" in the server's Caddyfile, and --policy is the
server's policy file.`
	cmd.Example = `  caddy robots-policy demo
  caddy robots-policy demo /var/lib/caddy/activity --policy /etc/caddy/site-policy.yaml`
	cmd.Flags().StringVar(&file, "policy", "", "the policy file to apply to the requests (default: the demo's own policy)")
	cmd.Flags().StringVar(&o.Name, "source", "", "with DIR: the source of the policy as the server's Caddyfile names it, such as storage:KEY (default: the path given with --policy)")
	cmd.Flags().Float64Var(&o.Share, "share", 1, "the number of requests, compared with the default: 2 means twice as many, 0.5 half as many")
	cmd.Flags().StringSliceVar(&o.Hosts, "host", o.Hosts, "the hosts of the requests, the busiest first")
	cmd.Flags().IntVar(&o.Days, "days", o.Days, "the number of days that the requests cover")
	cmd.Flags().Uint64Var(&o.Seed, "seed", o.Seed, "the seed of the random requests; with another number, the requests are different")
	return cmd
}

// demoName is the name of the folder that the command creates if no argument is given.
const demoName = "caddy-demo"

// Demo holds the options for the made-up requests of a demo.
type Demo struct {
	Name  string // name of the policy's source
	Text  string // text of the policy
	Hosts []string
	Days  int
	Seed  uint64
	Now   time.Time
	Share float64 // share of the usual number of requests; 0 means 1
}

// demo generates made-up requests and records them.
type demo struct {
	Demo
	rnd      *rand.Rand
	versions []demoVersion // oldest first
	store    *store.Store
	clients  []demoClient
	paths    []string
	read     map[string]reading // the last reading of each crawler and host
	visits   int64
}

// demoVersion is a version of the policy that is in force during a part of the demo's period.
type demoVersion struct {
	site        *site.Site
	publication *activity.Publication
	from        time.Time
	robots      map[string]*robotsserve.File // by host
}

// reading records when a crawler read robots.txt, and which version of the policy was in force then.
type reading struct {
	at      time.Time
	version *demoVersion
}

// Fill writes made-up requests to a database that does not exist yet. It returns their number.
func (o Demo) Fill(ctx context.Context, dir string) (int64, error) {
	d := &demo{Demo: o, rnd: rand.New(rand.NewPCG(o.Seed, 0)), read: map[string]reading{}}
	if err := d.makeVersions(); err != nil {
		return 0, err
	}
	for _, c := range demoClients {
		if row, ok := d.versions[0].site.File.Catalog.Lookup(c.name); ok {
			c.kind = string(row.Category)
		}
		d.clients = append(d.clients, c)
	}
	d.paths = demoPaths(d.rnd, d.versions[len(d.versions)-1].site.Policy)
	s, err := store.Open(ctx, dir, store.Options{Queue: d.most(), RowsPerHour: 1 << 24})
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
		err = fmt.Errorf("%d requests were not written", n)
	}
	return d.visits, err
}

// most returns an upper limit for the number of requests that Fill makes. The queue of the activity database has this
// size, so it is never full.
func (d *demo) most() int {
	var daily float64
	for _, c := range d.clients {
		daily += c.daily
	}
	// In an hour, a client sends at most 1.35*1.2 times daily/24 requests to the first host. Each further host receives a
	// quarter of the requests of the host before it, so all hosts together receive less than 4/3 of the first host's
	// requests. In addition, a client reads robots.txt at most once on each host in an hour, and its number of requests to
	// each host is rounded up.
	hosts, hours := float64(len(d.Hosts)), float64(24*d.Days)
	return max(0, int(hours*(daily/24*cmp.Or(d.Share, 1)*1.35*1.2*4/3+2*hosts*float64(len(d.clients)))))
}

// makeVersions creates older versions of the policy by removing its last rules.
func (d *demo) makeVersions() error {
	live, err := source.Compile(d.Name, []byte(d.Text))
	if err != nil {
		return err
	}
	rules := live.Site.Policy.Spec().Rules
	days := time.Duration(d.Days) * 24 * time.Hour
	for i, part := range []float64{2, 0.45, 0.27} {
		text := d.Text
		if cut := 2 - i; cut > 0 && len(rules) > cut {
			text = withoutRules(text, rules[len(rules)-cut:])
		}
		s, _ := site.LoadWith(d.Name, []byte(text), policyfile.Options{Accepted: true})
		if s == nil {
			continue
		}
		p := *live.Publication() // the publication that the server will record for the last version
		p.Number, p.Time = []string{"0.1", "0.2", "1"}[i], d.Now.Add(-time.Duration(float64(days)*part)).Truncate(time.Minute)
		p.Text, p.SHA256 = text, fmt.Sprintf("%x", sha256.Sum256([]byte(text)))
		p.Documents, p.LeftOut = s.Documents()
		p.Identify()
		v := demoVersion{site: s, publication: &p, from: p.Time, robots: map[string]*robotsserve.File{}}
		for _, host := range d.Hosts {
			v.robots[host], _ = robotsserve.Render(s.Policy, host, robotsserve.Options{})
		}
		d.versions = append(d.versions, v)
	}
	return nil
}

// withoutRules removes rules from the text of a policy file, with the comments above them. The rules to remove must be
// the last ones of the file.
func withoutRules(text string, rules []policy.Rule) string {
	all := strings.SplitAfter(text, "\n")
	first := rules[0].Pos.Line - 1
	for first > 0 && strings.HasPrefix(strings.TrimSpace(all[first-1]), "#") {
		first--
	}
	end := rules[len(rules)-1].Pos.Line
	for end < len(all) && (all[end] == "" || strings.Contains(" #-\r\n", all[end][:1])) {
		end++ // continue up to the next key at the top level
	}
	return strings.Join(slices.Delete(all, first, end), "")
}

func (d *demo) publish(ctx context.Context) error {
	for i := range d.versions {
		v := &d.versions[i]
		if err := d.store.Publish(ctx, v.publication, v.publication.Time); err != nil {
			return err
		}
		for host, f := range v.robots {
			if err := d.store.Serve(ctx, v.publication, site.Document{Host: host, Version: robotsserve.Version(f.ETag), Text: string(f.Body)}, v.from.Add(time.Second)); err != nil {
				return err
			}
		}
	}
	return nil
}

// inForce returns the version of the policy that is in force at a time.
func (d *demo) inForce(at time.Time) *demoVersion {
	v := &d.versions[0]
	for i := range d.versions {
		if !d.versions[i].from.After(at) {
			v = &d.versions[i]
		}
	}
	return v
}
