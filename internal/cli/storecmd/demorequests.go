// SPDX-License-Identifier: Apache-2.0

package storecmd

import (
	"cmp"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	"github.com/robotspolicy/caddy-robots-policy/activity"
	"github.com/robotspolicy/caddy-robots-policy/activity/replay"
	"github.com/robotspolicy/caddy-robots-policy/policy"
	"github.com/robotspolicy/caddy-robots-policy/robotsserve"
)

// demoClient is a client of the demo. The numbers are made up.
type demoClient struct {
	name, kind string
	identity   activity.Identity
	daily      float64       // requests per day
	obeys      float64       // probability from 0 to 1 that the client obeys the robots.txt that it read
	reads      time.Duration // interval between readings of robots.txt; 0 means never
	only       string        // the section with most of the pages that the client requests
	stops      time.Duration // time since the client's last request; 0 if the client has not stopped
}

const (
	hourly = time.Hour
	daily  = 24 * time.Hour
)

var demoClients = []demoClient{
	{name: "Googlebot", kind: "search", identity: activity.Verified, daily: 2600, obeys: 1, reads: 3 * hourly},
	{name: "Bingbot", kind: "search", identity: activity.Verified, daily: 1380, obeys: 1, reads: 4 * hourly},
	{name: "Bytespider", kind: "ai-training", identity: activity.Unverified, daily: 880, reads: 20 * hourly},
	{name: "Amazonbot", kind: "ai-training", identity: activity.Verified, daily: 510, obeys: 0.97, reads: 12 * hourly},
	{name: "python-httpx", kind: activity.CategoryUnlisted, identity: activity.Unverified, daily: 445, only: "/news/"},
	{name: "Googlebot", kind: "search", identity: activity.Impostor, daily: 330},
	{name: "Applebot", kind: "search", identity: activity.Verified, daily: 306, obeys: 1, reads: 12 * hourly},
	{name: "SemrushBot", kind: "seo", identity: activity.Unverified, daily: 247, obeys: 0.96, reads: 30 * hourly},
	{name: "OAI-SearchBot", kind: "search", identity: activity.Verified, daily: 280, obeys: 1, reads: 6 * hourly, stops: 41 * hourly},
	{name: "PerplexityBot", kind: "ai-input", identity: activity.Verified, daily: 160, obeys: 0.6, reads: 18 * hourly},
	{name: "AhrefsBot", kind: "seo", identity: activity.Verified, daily: 156, obeys: 1, reads: 3 * daily},
	{name: "ChatGPT-User", kind: "ai-assistant", identity: activity.Verified, daily: 140, only: "/news/"},
	{name: "ClaudeBot", kind: "ai-training", identity: activity.Verified, daily: 60, obeys: 1, reads: 8 * hourly},
	{name: "harbor-fetch", kind: activity.CategoryUnlisted, identity: activity.Unverified, daily: 58},
	{name: "(none)", kind: activity.CategoryUnlisted, identity: activity.Unverified, daily: 40},
	{name: "GPTBot", kind: "ai-training", identity: activity.Verified, daily: 55, obeys: 1, reads: 7 * hourly},
	{name: "CCBot", kind: "ai-training", identity: activity.Verified, daily: 26, obeys: 1, reads: 2 * daily},
	{name: "facebookexternalhit", kind: "preview", identity: activity.Unverified, daily: 92, obeys: 0.5},
	{name: "MojeekBot", kind: "search", identity: activity.Unverified, daily: 31, obeys: 1, reads: 5 * daily, stops: 11 * daily},
	{name: "UptimeRobot", kind: "monitoring", identity: activity.Unverified, daily: 288, only: "/"},
}

// demoPaths returns the paths of a newspaper's pages, the most requested page first. The result includes some pages
// below each path that a rule of the policy allows or disallows for crawling or preserving.
func demoPaths(rnd *rand.Rand, p *policy.Policy) []string {
	const pages = 400
	all := []string{"/", "/news/", "/sport/", "/sitemap.xml", "/feed.xml"}
	topics := []string{"news", "news", "news", "sport", "culture", "opinion", "archive"}
	words := []string{
		"council", "bridge", "harbor", "election", "weather", "market", "school", "museum", "tram", "festival", "budget", "river", "concert", "mayor", "strike",
	}
	for i := range pages {
		page := fmt.Sprintf("/%s/%s-%s-%d.html", topics[rnd.IntN(len(topics))], words[rnd.IntN(len(words))], words[rnd.IntN(len(words))], 1000+i)
		all = append(all, page)
	}
	seen := map[string]bool{}
	spec := p.Spec()
	for i := range spec.Rules {
		for _, s := range spec.Rules[i].Statements {
			path := strings.TrimSuffix(strings.ReplaceAll(s.Pattern.String(), "*", "item"), "$")
			if s.Usage != policy.Crawl && s.Usage != policy.Preserve || path == "/" || seen[path] {
				continue
			}
			seen[path] = true
			for n := range max(2, pages/60) {
				page := path
				if strings.HasSuffix(path, "/") {
					page = fmt.Sprintf("%s%s-%d.html", path, words[rnd.IntN(len(words))], n+1)
				}
				all = slices.Insert(all, 5+rnd.IntN(len(all)-5), page)
			}
		}
	}
	return all
}

// hour generates the requests of one hour.
func (d *demo) hour(start time.Time) {
	// Crawlers send more requests by day, fewer on weekends, and a few more every week.
	shape := 1 + 0.35*math.Sin(float64(start.Hour()-8)*math.Pi/12)
	if w := start.Weekday(); w == time.Saturday || w == time.Sunday {
		shape *= 0.82
	}
	shape *= math.Exp(0.004 * start.Sub(d.Now).Hours() / 24)
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

// visit generates one request of a client.
func (d *demo) visit(c *demoClient, host string, at time.Time) {
	v := d.inForce(at)
	visit := activity.Request{
		Time: at, Host: host, Crawler: c.name, Category: c.kind, Identity: c.identity, Decision: activity.Allowed, Policy: v.publication.SHA256[:12], Publication: v.publication.ID[:12], Number: v.publication.Number, Status: 200,
	}
	key := c.name + " " + string(c.identity) + " " + host
	if c.reads > 0 && c.identity != activity.Impostor && at.Sub(d.read[key].at) > c.reads {
		d.read[key] = reading{at, v}
		robots := visit
		robots.Path, robots.RobotsTxt, robots.Form = "/robots.txt", true, activity.Form("https", false)
		robots.Robots, robots.Bytes = robotsserve.Version(v.robots[host].ETag), int64(len(v.robots[host].Body))
		d.record(robots)
	}
	visit.Path, visit.Bytes = d.path(c), d.size()
	if id := v.site.Policy.Crawler(c.name); id != 0 && c.kind != activity.CategoryUnlisted {
		q := policy.Query{Crawler: id, Host: host, Path: visit.Path, Now: at, Identity: policyIdentity[c.identity]}
		e := v.site.Edge(q)
		visit.Decision, visit.Rule = replay.Decision(e), v.site.RuleName(e.Decision.Rule)
		if e.Impostor {
			visit.Rule = "enforcement.impostors"
		}
		if known := d.read[key].version; known != nil {
			visit.Robots = robotsserve.Version(known.robots[host].ETag)
			if known.site.Edge(q).Blocked() {
				if d.rnd.Float64() < c.obeys {
					return // the crawler obeys the robots.txt that it read
				}
				visit.Violation = c.identity != activity.Impostor
			}
		}
	}
	if visit.Decision == activity.Blocked {
		visit.Status, visit.Bytes = 403, 380
	}
	d.record(visit)
}

var policyIdentity = map[activity.Identity]policy.Identity{activity.Verified: policy.Verified, activity.Impostor: policy.Impostor}

func (d *demo) record(v activity.Request) {
	d.store.Record(v)
	d.visits++
}

// size returns a random size of a page. The median is about 30 kB.
func (d *demo) size() int64 { return int64(math.Exp(10.3 + 0.6*d.rnd.NormFloat64())) }

// path returns a random path for a request. A few pages receive most of the requests.
func (d *demo) path(c *demoClient) string {
	for {
		path := d.paths[int(math.Pow(d.rnd.Float64(), 2.2)*float64(len(d.paths)))]
		if c.only == "" || strings.HasPrefix(path, c.only) || d.rnd.Float64() < 0.03 {
			return path
		}
	}
}
