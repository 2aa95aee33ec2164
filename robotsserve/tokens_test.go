// SPDX-License-Identifier: Apache-2.0

package robotsserve

import (
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/robotspolicy/caddy-robots-policy/internal/testkit/crawlertest"
	"github.com/robotspolicy/caddy-robots-policy/internal/testkit/policytest"
	"github.com/robotspolicy/caddy-robots-policy/pathpattern"
	"github.com/robotspolicy/caddy-robots-policy/policy"
	"github.com/robotspolicy/caddy-robots-policy/robotstxt"
)

// The group of a control token disallows the paths that the policy disallows for crawling or for training. If the
// policy does not state anything about crawling a path, the site's own file decides. The group of a usage token
// disallows the paths that the policy disallows for at least one client.
func TestTokenGroupsAgreeWithDecide(t *testing.T) {
	r := rand.New(rand.NewPCG(*seed, 31))
	n := tally{}
	for range *policies {
		spec := policytest.Random(r, policytest.Options{Usages: []policy.Usage{policy.Crawl, policy.TrainAI, policy.TrainAI, policy.AIUse, policy.Other}})
		spec.Publish = policy.Publish{ContentUsage: policy.On, Controls: policy.Auto, UsageTokens: policy.UsageTokens{"No-Training", "No-Answers", "No-Search"}}
		spec.Crawlers = slices.Clone(spec.Crawlers)
		spec.Crawlers[3].ControlsTraining, spec.Crawlers[3].Main = true, []string{"", "BetaBot", "AlphaBot"}[r.IntN(3)] // Beta-Extended
		p := compile(t, spec)
		host := policytest.Hosts[r.IntN(len(policytest.Hosts))]
		other := ""
		if r.IntN(2) == 0 {
			other = foreignFile(r, true)
		}
		f, _, _ := Merge(p, host, robotstxt.Parse([]byte(other)), Options{})
		read, theirs, everyone := crawlertest.ReadRobotsTxt(string(f.Body)), crawlertest.ReadRobotsTxt(other), policytest.NewEveryone(spec)
		check := func(token, path string, want bool) {
			n["decisions"]++
			switch got := read.Allowed(token, path); {
			case got == want:
			case want && lost(f, token, path):
				n["not-flattenable"]++
			default:
				t.Fatalf("%s may have %q on %q: the file says %v, want %v\n%s\ntheirs\n%s\n%s", token, path, host, got, want, f.Body, other, describe(spec))
			}
		}
		for range 8 {
			path := policytest.Path(r)
			if path == "/robots.txt" {
				continue
			}
			asked := policytest.Question{Token: "Beta-Extended", Identity: policy.Verified, Host: host, Path: path, Usage: policy.Crawl}
			want := policytest.Decide(spec, asked).Verdict
			if want == policy.Unstated && !theirs.Allowed("Beta-Extended", path) {
				want = policy.Disallowed
			}
			if !policytest.MayTrain(spec, asked) {
				want = policy.Disallowed
			}
			check("Beta-Extended", path, want != policy.Disallowed)
			for i, token := range spec.Publish.UsageTokens {
				if strings.Contains(string(f.Body), token) {
					check(token, path, everyone.Verdict(host, path, policy.RightsUsages()[i]) != policy.Disallowed)
				}
			}
		}
	}
	n.check(t, "control tokens and usage tokens", "not-flattenable")
}

// The group of a control token allows the paths that the policy allows for both crawling and training. The group of a
// usage token allows the paths that the policy does not disallow for any kind of client.
func TestTokenGroupsOpenWhatEveryVoiceOpens(t *testing.T) {
	spec := &policy.Spec{
		Crawlers: []policy.Crawler{{Token: "Example-Extended", RobotsOnly: true, ControlsTraining: true}, {Token: "ExampleBot"}},
		Publish:  policy.Publish{Controls: policy.Auto, UsageTokens: policy.UsageTokens{"No-Training"}},
	}
	everyone := []policy.Audience{{Kind: policy.ForEveryone}}
	all, news := pathpattern.All, pathpattern.MustParse("/news/")
	spec.Rules = []policy.Rule{{For: everyone, Statements: []policy.Statement{
		{Usage: policy.Crawl, Pattern: all},
		{Usage: policy.TrainAI, Pattern: all},
		{Usage: policy.Crawl, Pattern: news, Allow: true},
		{Usage: policy.TrainAI, Pattern: news, Allow: true},
	}}, {For: []policy.Audience{{Kind: policy.ForToken, Name: "ExampleBot"}}, Statements: []policy.Statement{{Usage: policy.Crawl, Pattern: all}}}}
	f, problems := Render(compile(t, spec), "", Options{})
	if len(problems) > 0 {
		t.Error(problems)
	}
	read := crawlertest.ReadRobotsTxt(string(f.Body))
	for _, token := range []string{"Example-Extended", "No-Training"} {
		if !read.Allowed(token, "/news/x") || read.Allowed(token, "/x") {
			t.Errorf("%s:\n%s", token, f.Body)
		}
	}
}
