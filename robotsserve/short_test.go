// SPDX-License-Identifier: Apache-2.0

package robotsserve

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/robotspolicy/caddy-robots-policy/internal/testkit/crawlertest"
	"github.com/robotspolicy/caddy-robots-policy/internal/testkit/policytest"
	"github.com/robotspolicy/caddy-robots-policy/policy"
)

var shortCrawlers = []policy.Crawler{
	{Token: "KnownBot", Category: "seo"},
	{Token: "RareBot", Category: "seo", Rare: true},
	{Token: "OddBot", Category: "seo", Rare: true},
	{Token: "DeafBot", Category: "seo", Rare: true, IgnoresStar: true},
	{Token: "OnlyBot", Category: "feed", Rare: true},
}

// A crawler is left out of a group only if the server blocks all paths that its group would disallow, because the rules
// themselves have "enforce: block".
func TestShortGroups(t *testing.T) {
	t.Parallel()
	blocked := func(r policy.Rule) policy.Rule {
		r.Enforce = policy.ModeBlock
		return r
	}
	verified := func(r policy.Rule) policy.Rule {
		r.Identity = policy.DemandVerified
		return r
	}
	delayed := func(r policy.Rule) policy.Rule {
		r.CrawlDelay = 5 * time.Second
		return r
	}
	const star = "User-agent: *\nDisallow:\n\n"
	const all = "User-agent: KnownBot\nUser-agent: RareBot\nUser-agent: OddBot\nUser-agent: DeafBot\n"
	for _, c := range []struct {
		name  string
		rules []policy.Rule
		all   bool
		want  string
	}{
		{
			"blocked",
			[]policy.Rule{blocked(crawlRule(1, "category:seo", false, "/"))},
			false,
			star + "# 3 rare crawlers are not named here, because the policy blocks them\nUser-agent: KnownBot\nDisallow: /\n",
		},
		{"groups: all", []policy.Rule{blocked(crawlRule(1, "category:seo", false, "/"))}, true, star + all + "Disallow: /\n"},
		{"enforce: log", []policy.Rule{crawlRule(1, "category:seo", false, "/")}, false, star + all + "Disallow: /\n"},
		{
			"a part is blocked",
			[]policy.Rule{blocked(crawlRule(1, "category:seo", false, "/a/"))},
			false,
			star + "# 2 rare crawlers are not named here, because the policy blocks them\nUser-agent: KnownBot\nUser-agent: DeafBot\nDisallow: /a/\n",
		},
		{
			"a part is blocked, and a delay asked for",
			[]policy.Rule{delayed(blocked(crawlRule(1, "category:seo", false, "/a/")))},
			false,
			star + all + "Disallow: /a/\nCrawl-delay: 5\n",
		},
		{
			"a part is permitted",
			[]policy.Rule{blocked(crawlRule(1, "category:seo", false, "/")), crawlRule(7, "category:seo", true, "/b/")},
			false,
			star + all + "Allow: /b/\nDisallow: /\n",
		},
		{"only who is verified is blocked", []policy.Rule{verified(blocked(crawlRule(1, "category:seo", false, "/")))}, false, star + all + "Disallow: /\n"},
		{"written by the author", []policy.Rule{blocked(crawlRule(1, "RareBot", false, "/"))}, false, star + "User-agent: RareBot\nDisallow: /\n"},
		{"nobody else is in the group", []policy.Rule{blocked(crawlRule(1, "category:feed", false, "/"))}, false, star + "User-agent: OnlyBot\nDisallow: /\n"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			for _, mode := range []policy.Mode{policy.ModeOff, policy.ModeBlock} { // the default has no effect
				spec := &policy.Spec{Crawlers: shortCrawlers, Rules: c.rules, Publish: policy.Publish{AllGroups: c.all}}
				spec.Enforcement.Mode = mode
				if f := render(t, compile(t, spec), ""); string(f.Body) != c.want {
					t.Errorf("by default %s:\n%s\nwant\n%s", mode, f.Body, c.want)
				}
			}
		})
	}
}

// A short file leaves out crawlers that the server blocks. It may be laxer than the policy only if the policy blocks
// the crawler, whatever its identity. If it disallows a path that the complete file allows, a Loss must report this.
func TestShortGroupsAreNeverLaxer(t *testing.T) {
	t.Parallel()
	const perPolicy = 60
	left := 0
	for i := range *policies * 10 {
		r := rand.New(rand.NewPCG(*seed, uint64(i)))
		spec := policytest.Random(r, policytest.Options{Usages: []policy.Usage{policy.Crawl, policy.TrainAI}, Modes: true, Limits: []string{"3-days"}})
		for j := range spec.Rules { // otherwise hardly any crawler would be left out
			if r.IntN(3) > 0 {
				spec.Rules[j].Enforce = policy.ModeBlock
			}
		}
		spec.Publish = policy.Publish{ContentUsage: policy.Switch(r.IntN(2))}
		spec.Crawlers = slices.Clone(policytest.Crawlers)
		for j := range spec.Crawlers {
			spec.Crawlers[j].Rare = r.IntN(2) == 0 && !spec.Crawlers[j].RobotsOnly
		}
		p := compile(t, spec)
		named := *spec
		named.Publish.AllGroups = true
		all := compile(t, &named)
		for _, host := range policytest.Hosts {
			whole, short := render(t, all, host), render(t, p, host)
			if string(whole.Body) == string(short.Body) {
				continue
			}
			for range perPolicy {
				token, path := policytest.Tokens[r.IntN(len(policytest.Tokens))], policytest.Path(r)
				in, inWhole := reads(short, p, token, path), reads(whole, p, token, path)
				switch {
				case in == inWhole:
				case !in:
					if !lost(short, "*", path) {
						t.Fatalf("policy %d: %q for %s on %q is disallowed only in the short file\n%s", i, path, token, host, short.Body)
					}
				default:
					left++
					if why := refusedToAll(spec, token, host, path); why != "" {
						t.Fatalf("policy %d: %q for %s on %q is allowed in the short file, and %s\n%s\nwhole:\n%s", i, path, token, host, why, short.Body, whole.Body)
					}
				}
			}
		}
	}
	if left == 0 {
		t.Error("no crawler was left out")
	}
	t.Logf("%d paths are only blocked by the server", left)
}

// reads reports whether a crawler fetches a path after reading a file.
func reads(f *File, p *policy.Policy, token, path string) bool {
	agent := agentOf(f, p, token)
	return agent == "" || crawlertest.ReadRobotsTxt(string(f.Body)).Allowed(agent, crawlertest.NormalPath(path))
}

// refusedToAll returns "" if the server blocks the crawler with every identity, or if the policy does not disallow the
// path for any identity. Otherwise it returns a text with the identities that the server does not block. It uses an
// independent evaluation of the policy.
func refusedToAll(spec *policy.Spec, token, host, path string) string {
	var open []string
	closed := false
	for _, id := range []policy.Identity{policy.Unknown, policy.Verified, policy.Impostor} {
		a := policytest.Decide(spec, policytest.Question{Token: token, Identity: id, Host: host, Path: path, Usage: policy.Crawl, Now: policytest.Now})
		closed = closed || a.Verdict == policy.Disallowed
		if a.Verdict != policy.Disallowed || a.Mode != policy.ModeBlock {
			open = append(open, id.String())
		}
	}
	if !closed || open == nil {
		return ""
	}
	return fmt.Sprintf("the policy does not block a client that is %s", strings.Join(open, " or "))
}
