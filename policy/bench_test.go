// SPDX-License-Identifier: Apache-2.0

package policy_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/temoto/robotstxt"

	"github.com/robotspolicy/caddy-robots-policy/pathpattern"
	"github.com/robotspolicy/caddy-robots-policy/policy"
)

// benchRules returns n patterns for the sections of a site, and for each pattern whether it is allowed. One in ten
// patterns has a wildcard.
func benchRules(n int) (patterns []string, allow []bool) {
	for i := range n {
		p := fmt.Sprintf("/section%d/topic%d/", i%100, i)
		if i%10 == 9 {
			p = fmt.Sprintf("/section%d/*/print%d$", i%100, i)
		}
		patterns = append(patterns, p)
		allow = append(allow, i%3 == 0)
	}
	return patterns, allow
}

func benchAgents(n int) []string {
	agents := make([]string, n)
	for i := range agents {
		agents[i] = "bot" + strings.Repeat(string(rune('a'+i%26)), 1+i%3) + fmt.Sprint(i)
	}
	return agents
}

// benchPolicy returns a policy with one rule for the given number of agents, and another rule with the same statements
// for everyone.
func benchPolicy(rules, agents int) *policy.Spec {
	patterns, allow := benchRules(rules)
	named := policy.Rule{Pos: policy.Pos{Line: 1, Column: 1}}
	for _, a := range benchAgents(agents) {
		named.For = append(named.For, policy.ParseAudience(a))
	}
	for i, p := range patterns {
		named.Statements = append(named.Statements, policy.Statement{Allow: allow[i], Usage: policy.Crawl, Pattern: pathpattern.MustParse(p)})
	}
	everyone := policy.Rule{Pos: policy.Pos{Line: 2, Column: 1}, For: []policy.Audience{{}}, Statements: named.Statements}
	return &policy.Spec{Rules: []policy.Rule{named, everyone}}
}

func benchRobots(rules, agents int) []byte {
	patterns, allow := benchRules(rules)
	var b strings.Builder
	group := func() {
		for i, p := range patterns {
			if allow[i] {
				b.WriteString("Allow: " + p + "\n")
			} else {
				b.WriteString("Disallow: " + p + "\n")
			}
		}
		b.WriteString("\n")
	}
	for _, a := range benchAgents(agents) {
		b.WriteString("User-agent: " + a + "\n")
	}
	group()
	b.WriteString("User-agent: *\n")
	group()
	return []byte(b.String())
}

var sizes = []struct{ rules, agents int }{
	{10, 1}, {10, 100}, {10, 1000}, {1000, 1}, {1000, 100}, {1000, 1000}, {10000, 1}, {10000, 1000},
}

func benchPaths(rules int) []string {
	i := rules / 2
	return []string{
		fmt.Sprintf("/section%d/topic%d/article-about-something.html", i%100, i),
		fmt.Sprintf("/section%d/elsewhere/article-about-something.html", i%100),
		"/index.html",
	}
}

// BenchmarkDecide decides about a crawler with a known ID, because a server finds the ID when it recognizes the
// User-Agent.
func BenchmarkDecide(b *testing.B) {
	for _, size := range sizes {
		name := fmt.Sprintf("rules=%d/crawlers=%d", size.rules, size.agents)
		paths := benchPaths(size.rules)
		agents := benchAgents(size.agents)
		agent := agents[len(agents)/2]
		b.Run("ours/"+name, func(b *testing.B) {
			p := policy.Compile(benchPolicy(size.rules, size.agents))
			crawler := p.Crawler(agent)
			b.ReportAllocs()
			for i := 0; b.Loop(); i++ {
				p.Decide(policy.Query{Crawler: crawler, Path: paths[i%len(paths)], Host: "www.example.com"})
			}
		})
		b.Run("temoto/"+name, func(b *testing.B) {
			data, err := robotstxt.FromBytes(benchRobots(size.rules, size.agents))
			if err != nil {
				b.Fatal(err)
			}
			group := data.FindGroup(agent)
			b.ReportAllocs()
			for i := 0; b.Loop(); i++ {
				group.Test(paths[i%len(paths)])
			}
		})
	}
}

func BenchmarkCompile(b *testing.B) {
	for _, size := range sizes {
		b.Run(fmt.Sprintf("ours/rules=%d/crawlers=%d", size.rules, size.agents), func(b *testing.B) {
			spec := benchPolicy(size.rules, size.agents)
			b.ReportAllocs()
			for b.Loop() {
				policy.Compile(spec)
			}
		})
	}
}

// BenchmarkDecideWithin measures decisions by allow and disallow entries with wildcards. The disallow entries are for
// everyone, and the allow entries for one crawler. An allow entry applies only if its pattern lies within the pattern
// of a disallow entry, so each decision has to compare the patterns.
func BenchmarkDecideWithin(b *testing.B) {
	add := func(r *policy.Rule, allow bool, patterns ...string) {
		for _, p := range patterns {
			r.Statements = append(r.Statements, policy.Statement{Allow: allow, Usage: policy.Crawl, Pattern: pathpattern.MustParse(p)})
		}
	}
	everyone := policy.Rule{For: []policy.Audience{{}}}
	named := policy.Rule{For: []policy.Audience{policy.ParseAudience("abot")}}
	patterns, _ := benchRules(5000)
	for _, p := range patterns {
		add(&everyone, false, p)
		add(&named, true, strings.TrimSuffix(p, "$")+"*x")
	}
	add(&everyone, false, "/*?", "/*sort=", "/*.pdf", "/section*topic*sort=")
	add(&named, true, "/section50/*?*sort=", "/section50/*.pdf", "/section*?page=")
	p := policy.Compile(&policy.Spec{Rules: []policy.Rule{everyone, named}})
	for _, path := range []string{"/section50/topic1/index.html", "/section50/elsewhere?sort=up", "/section50/topic2550/a.pdf?page=3&sort=up"} {
		b.Run(path, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				p.Decide(policy.Query{Crawler: p.Crawler("abot"), Path: path, Host: "www.example.com"})
			}
		})
	}
}

func BenchmarkDecideHostile(b *testing.B) {
	var spec policy.Spec
	r := policy.Rule{For: []policy.Audience{{}}}
	for i := range 100 {
		r.Statements = append(r.Statements, policy.Statement{
			Usage: policy.Crawl, Pattern: pathpattern.MustParse("/*a*a*a*a*a*a*b" + fmt.Sprint(i)),
		})
	}
	spec.Rules = []policy.Rule{r}
	p := policy.Compile(&spec)
	for _, n := range []int{256, 512, 1024, 2047} {
		path := "/" + strings.Repeat("a", n) + "b"
		b.Run(fmt.Sprintf("bytes=%d", n), func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				p.Decide(policy.Query{Path: path})
			}
		})
	}
}

func TestDecideDoesNotAllocate(t *testing.T) {
	spec := benchPolicy(1000, 100)
	spec.Rules[1].Hosts = []policy.Host{"*.example.com"}
	spec.Rules[0].UsagePurposes = []string{"news"}
	p := policy.Compile(spec)
	for _, q := range []policy.Query{
		{Host: "WWW.example.com:443", Path: "/section0/topic500/x"},
		{Host: "www.example.com", Path: "/section0/caf\u00e9/%7Eprint/" + strings.Repeat("%41", 500)},
		{Host: "example.org", Path: "/", Usage: policy.PresentSnippet, Purposes: []string{"news"}},
		{Host: strings.Repeat("a.", 100) + "example.com", Path: "/section0/topic500/x", Usage: policy.TrainAI},
	} {
		if n := testing.AllocsPerRun(100, func() {
			q.Crawler = p.Crawler("botaaa2")
			p.Decide(q)
		}); n != 0 {
			t.Errorf("%+v: %v allocations", q, n)
		}
	}
}
