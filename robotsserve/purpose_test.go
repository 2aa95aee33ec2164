// SPDX-License-Identifier: Apache-2.0

package robotsserve

import (
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/robotspolicy/caddy-robots-policy/internal/testkit/crawlertest"
	"github.com/robotspolicy/caddy-robots-policy/internal/testkit/policytest"
	"github.com/robotspolicy/caddy-robots-policy/pathpattern"
	"github.com/robotspolicy/caddy-robots-policy/policy"
	"github.com/robotspolicy/caddy-robots-policy/robotstxt"
)

// readPurposes reads a file like a crawler that supports User-Agent-Purpose and that no group names. Such a crawler
// combines the groups of its purposes, if there are any.
func readPurposes(body string, purposes []string) *crawlertest.RobotsTxt {
	f := &crawlertest.RobotsTxt{Groups: map[string][]crawlertest.RobotsLine{}}
	for block := range strings.SplitSeq(strings.ReplaceAll(body, "\r\n", "\n"), "\n\n") {
		plain := crawlertest.ReadRobotsTxt(block)
		for line := range strings.Lines(block) {
			if p, ok := strings.CutPrefix(strings.TrimSpace(line), "User-Agent-Purpose: "); ok && slices.ContainsFunc(purposes, func(q string) bool { return strings.EqualFold(p, q) }) {
				for _, rules := range plain.Groups {
					f.Groups["purpose"] = append(f.Groups["purpose"], rules...)
					break
				}
			}
		}
		if rules, ok := plain.Groups["*"]; ok {
			f.Groups["*"] = rules
		}
	}
	return f
}

// A crawler combines the groups of all its purposes ("If there is more than one group matching",
// draft-illyes-rep-purpose-00). The result must agree with the policy's decisions for this crawler.
func TestPurposeGroupsAgreeWithDecide(t *testing.T) {
	r := rand.New(rand.NewPCG(*seed, 6))
	counts := map[string]int{}
	for range *policies {
		spec := policytest.Random(r, policytest.Options{Usages: []policy.Usage{policy.Crawl}})
		for i := range spec.Rules {
			for j := range spec.Rules[i].For {
				if a := &spec.Rules[i].For[j]; a.Kind == policy.ForPurpose {
					a.Name = pick(r, "News", "research", "sport")
				}
			}
		}
		spec.Publish.UserAgentPurpose = policy.On
		p := compile(t, spec)
		host := policytest.Hosts[r.IntN(len(policytest.Hosts))]
		f, _ := Render(p, host, Options{})
		if !strings.Contains(string(f.Body), "User-Agent-Purpose") {
			continue
		}
		counts["published"]++
		for _, purposes := range [][]string{{"news"}, {"research"}, {"sport"}, {"news", "research"}, {"news", "research", "sport"}, {"other"}} {
			naive := readPurposes(string(f.Body), purposes)
			known := slices.ContainsFunc(purposes, func(p string) bool {
				return strings.Contains(strings.ToLower(string(f.Body)), "user-agent-purpose: "+p)
			})
			for range 4 {
				path := policytest.Path(r)
				if path == "/robots.txt" || !known && purposes[0] != "other" {
					continue
				}
				want := p.Decide(policy.Query{Purposes: purposes, Host: host, Path: path, Identity: policy.Verified}).Verdict != policy.Disallowed
				counts["decisions"]++
				if len(purposes) > 1 {
					counts["of several purposes"]++
				}
				got := naive.Allowed("purpose", pathpattern.NormalizePath(path))
				if got != want && want && slices.ContainsFunc(f.Losses, func(l Loss) bool {
					holds := slices.Contains(purposes, l.Purpose) || !known && slices.Contains(l.Crawlers, "*")
					return holds && l.Paths.Match(pathpattern.NormalizePath(path))
				}) {
					counts["not-flattenable"]++
					continue
				}
				if got != want && (len(purposes) == 1 || !usagePurposes(spec)) {
					t.Fatalf("a crawler for %q may fetch %q on %q: the file says %v, the policy %v\n%s\n%s", purposes, path, host, got, want, f.Body, describe(spec))
				}
			}
		}
	}
	t.Log(counts)
	if counts["published"] == 0 || counts["of several purposes"] == 0 {
		t.Error("the generator is too narrow")
	}
}

// usagePurposes reports whether a rule depends on the purpose of use. If there is such a rule, the decision for a
// client with several purposes can differ from the decision for each of these purposes alone.
func usagePurposes(spec *policy.Spec) bool {
	return slices.ContainsFunc(spec.Rules, func(r policy.Rule) bool { return len(r.UsagePurposes) > 0 })
}

// A Loss in the group of a purpose names the purpose. Here no Allow line for "/ba" can be as long as "/*b*a$", so the
// group cannot express the policy.
func TestPurposeLosses(t *testing.T) {
	statement := func(allow bool, pattern string) []policy.Statement {
		return []policy.Statement{{Pos: policy.Pos{Line: len(pattern)}, Allow: allow, Pattern: pathpattern.MustParse(pattern)}}
	}
	p := compile(t, &policy.Spec{Publish: policy.Publish{UserAgentPurpose: policy.On}, Rules: []policy.Rule{
		{For: []policy.Audience{{}}, Statements: statement(false, "/*b*a$")},
		{For: []policy.Audience{{Kind: policy.ForPurpose, Name: "Research"}}, Statements: statement(true, "/ba$")},
	}})
	f, problems := Render(p, "", Options{})
	if len(f.Losses) != 1 || f.Losses[0].Purpose != "research" || f.Losses[0].Paths.String() != "/*b*a$" || f.Losses[0].Pos.Line != 4 {
		t.Errorf("%+v of\n%s", f.Losses, f.Body)
	}
	if len(problems) != 1 || problems[0].Code != "not-flattenable" {
		t.Errorf("%+v", problems)
	}
}

// The group of DeltaBot has no Allow line for /*a$. For most of its paths below /a, the policy disallows crawling, so
// the line is not missing there. But for paths that also match a third pattern, /a/, the policy allows crawling. A Loss
// must report that the file disallows these paths.
func TestLossWhereThreePatternsMeet(t *testing.T) {
	crawl := func(allow bool, pattern string) policy.Statement {
		return policy.Statement{Allow: allow, Usage: policy.Crawl, Pattern: pathpattern.MustParse(pattern)}
	}
	spec := &policy.Spec{
		Crawlers: []policy.Crawler{{Token: "DeltaBot", Operator: "Alpha", Category: "archive", Purposes: []string{"news"}}},
		Rules: []policy.Rule{
			{For: []policy.Audience{{Kind: policy.ForPurpose, Name: "news"}}, Statements: []policy.Statement{crawl(true, "/*a$"), crawl(false, "/a")}},
			{For: []policy.Audience{{Kind: policy.ForEveryone}}, Statements: []policy.Statement{crawl(true, "/a/")}},
			{For: []policy.Audience{{Kind: policy.ForEveryoneElse}}, Statements: []policy.Statement{crawl(false, "/a")}},
		},
	}
	f, _ := Render(compile(t, spec), "", Options{})
	if read := crawlertest.ReadRobotsTxt(string(f.Body)); read.Allowed("DeltaBot", "/a/xa") || len(f.Losses) != 1 || f.Losses[0].Paths.String() != "/*a$" {
		t.Errorf("%+v of\n%s", f.Losses, f.Body)
	}
}

// AlphaBot has its own rule, whose lines are the same as the lines for everyone. It gets a group nevertheless. Without
// the group, it would obey the groups of its purposes, which are only for crawlers that no rule names.
func TestPurposesOfCrawlersLikeEveryone(t *testing.T) {
	all := []policy.Statement{{Usage: policy.Crawl, Pattern: pathpattern.MustParse("/a")}}
	spec := &policy.Spec{
		Crawlers: policytest.Crawlers, Publish: policy.Publish{UserAgentPurpose: policy.On},
		Rules: []policy.Rule{
			{For: []policy.Audience{{}, {Kind: policy.ForToken, Name: "AlphaBot"}}, Statements: all},
			{For: []policy.Audience{{Kind: policy.ForPurpose, Name: "sport"}}, Statements: []policy.Statement{{Allow: true, Usage: policy.Crawl, Pattern: pathpattern.MustParse("/a")}}},
		},
	}
	f, _ := Render(compile(t, spec), "", Options{})
	checkLayout(t, f.Body)
	read, names := crawlertest.ReadWithPurposes(string(f.Body)).ForPurposes("AlphaBot", []string{"Sport"})
	if read.Allowed("AlphaBot", "/a") || names != nil {
		t.Errorf("AlphaBot obeys the groups of %q in\n%s", names, f.Body)
	}
	read, names = crawlertest.ReadWithPurposes(string(f.Body)).ForPurposes("BetaBot", []string{"Sport"})
	if !read.Allowed("BetaBot", "/a") || len(names) != 1 {
		t.Errorf("BetaBot obeys the groups of %q in\n%s", names, f.Body)
	}
}

// A crawler with two purposes combines their groups, and the preference with the longest path applies. So a line with a
// longer path in one group must not allow a usage that the other group disallows.
func TestPurposesOfOtherPreferences(t *testing.T) {
	prefer := func(name string, allow bool, pattern string) policy.Rule {
		return policy.Rule{
			For:        []policy.Audience{{Kind: policy.ForPurpose, Name: name}},
			Statements: []policy.Statement{{Allow: allow, Usage: policy.TrainAI, Pattern: pathpattern.MustParse(pattern)}},
		}
	}
	spec := &policy.Spec{
		Publish: policy.Publish{UserAgentPurpose: policy.On, ContentUsage: policy.On},
		Rules:   []policy.Rule{prefer("news", false, "/"), prefer("news", true, "/open/"), prefer("sport", false, "/open/")},
	}
	f, problems := Render(compile(t, spec), "", Options{})
	read := readPurposes(string(f.Body), []string{"news", "sport"})
	if got, n := read.Extension("content-usage", "purpose", "/open/x"); got != "train-ai=n" || n != 1 || strings.Contains(string(f.Body), "train-ai=y") {
		t.Errorf("%q, %d lines, in\n%s", got, n, f.Body)
	}
	if got := codes(problems); !slices.Equal(got, []string{"hint purpose-groups-differ 0"}) {
		t.Errorf("%q", got)
	}
}

// A crawler with two purposes obeys the longer Crawl-delay of the two groups.
func TestPurposesOfOtherDelays(t *testing.T) {
	rule := func(a policy.Audience, delay time.Duration) policy.Rule {
		return policy.Rule{For: []policy.Audience{a}, CrawlDelay: delay, Statements: []policy.Statement{{Usage: policy.Crawl, Pattern: pathpattern.MustParse("/x/")}}}
	}
	news, research := policy.Audience{Kind: policy.ForPurpose, Name: "news"}, policy.Audience{Kind: policy.ForPurpose, Name: "research"}
	for delay, want := range map[time.Duration][]string{time.Second: {"hint purpose-groups-differ 0"}, 10 * time.Second: nil} {
		spec := &policy.Spec{
			Publish: policy.Publish{UserAgentPurpose: policy.On},
			Rules:   []policy.Rule{rule(news, 10*time.Second), rule(research, delay)},
		}
		f, problems := Render(compile(t, spec), "", Options{})
		if got, _ := readPurposes(string(f.Body), []string{"news", "research"}).Extension("crawl-delay", "purpose", "/"); got != "10" {
			t.Errorf("%v: %q in\n%s", delay, got, f.Body)
		}
		if got := codes(problems); !slices.Equal(got, want) {
			t.Errorf("%v: %q", delay, got)
		}
	}
}

// If purposes have different preferences, the group of each purpose gets a single line for all paths. This line also
// disallows the usages that the site's own file disallows for all paths.
func TestPurposesOfOtherPreferencesMerged(t *testing.T) {
	rule := func(name string, statements ...policy.Statement) policy.Rule {
		return policy.Rule{For: []policy.Audience{{Kind: policy.ForPurpose, Name: name}}, Statements: statements}
	}
	spec := &policy.Spec{
		Publish: policy.Publish{UserAgentPurpose: policy.On, ContentUsage: policy.On},
		Rules: []policy.Rule{
			rule("news", policy.Statement{Usage: policy.Search, Pattern: pathpattern.MustParse("/bb")}),
			rule("sport", policy.Statement{Usage: policy.Crawl, Pattern: pathpattern.MustParse("/c")}),
		},
	}
	f, _, _ := Merge(compile(t, spec), "", robotstxt.Parse([]byte("User-agent: *\nDisallow: /a\nContent-Usage: train-ai=n\n")), Options{})
	for name, want := range map[string]string{"news": "search=n, train-ai=n", "sport": "train-ai=n"} {
		read := readPurposes(string(f.Body), []string{name})
		if got, _ := read.Extension("content-usage", "purpose", "/x"); got != want {
			t.Errorf("%s: %q, want %q, in\n%s", name, got, want, f.Body)
		}
	}
}

func TestPurposeNames(t *testing.T) {
	spec := &policy.Spec{Crawlers: policytest.Crawlers, Publish: policy.Publish{UserAgentPurpose: policy.On}}
	for _, name := range []string{"*", "2ai", "AlphaBot", "AlphaBot2", "fine-2"} {
		spec.Rules = append(spec.Rules, policy.Rule{
			For: []policy.Audience{{Kind: policy.ForPurpose, Name: name}}, Statements: []policy.Statement{{Pattern: pathpattern.All}},
		})
	}
	f, problems := Render(compile(t, spec), "", Options{})
	want := "User-agent: *\nDisallow:\n\nUser-agent: purpose-fine-2\nUser-Agent-Purpose: fine-2\nDisallow: /\n"
	if string(f.Body) != want {
		t.Errorf("got\n%s\nwant\n%s", f.Body, want)
	}
	if len(problems) != 4 {
		t.Errorf("%v", problems)
	}
}
