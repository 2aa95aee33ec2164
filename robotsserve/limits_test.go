// SPDX-License-Identifier: Apache-2.0

package robotsserve

import (
	"bytes"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/robotspolicy/caddy-robots-policy/internal/testkit"
	"github.com/robotspolicy/caddy-robots-policy/pathpattern"
	"github.com/robotspolicy/caddy-robots-policy/policy"
	"github.com/robotspolicy/caddy-robots-policy/robotstxt"
)

func codes(problems []policy.Problem) (all []string) {
	for _, p := range problems {
		all = append(all, fmt.Sprintf("%v %s %d", p.Severity, p.Code, p.Pos.Line))
	}
	return all
}

func crawlRule(line int, audience string, allow bool, patterns ...string) policy.Rule {
	r := policy.Rule{Pos: policy.Pos{Line: line, Column: 1}, For: []policy.Audience{policy.ParseAudience(audience)}}
	for i, p := range patterns {
		r.Statements = append(r.Statements, policy.Statement{
			Pos: policy.Pos{Line: line + i + 1, Column: 1}, Allow: allow, Usage: policy.Crawl, Pattern: pathpattern.MustParse(p),
		})
	}
	return r
}

// Crawlers with the same rules share a group. So even 10,000 paths for each of 1,000 crawlers result in a file that is
// not larger than crawlers read.
func TestManyRulesForManyCrawlers(t *testing.T) {
	f := render(t, compile(t, bigSpec(10000, 1000, policy.Crawl)), "www.example.com")
	t.Logf("%d bytes", len(f.Body))
	if n := bytes.Count(f.Body, []byte("User-agent: ")); n != 1001 {
		t.Errorf("%d crawlers are named", n)
	}
	if n := bytes.Count(f.Body, []byte("\n\n")); n != 2 {
		t.Errorf("%d empty lines between groups", n)
	}
}

func TestTooLarge(t *testing.T) {
	var patterns []string
	for i := range 30000 {
		patterns = append(patterns, fmt.Sprintf("/a/long/enough/path/%d/", i))
	}
	spec := &policy.Spec{Rules: []policy.Rule{crawlRule(1, "AlphaBot", false, "/x"), crawlRule(7, "everyone", false, patterns...)}}
	f, problems := Render(compile(t, spec), "", Options{})
	if got := codes(problems); !slices.Equal(got, []string{"error robots-txt-too-large 7"}) || len(f.Body) < robotstxt.MaxSize {
		t.Errorf("%q, %d bytes", got, len(f.Body))
	}
	spec.Rules[1].Hosts = []policy.Host{"big.example.com"}
	if got := codes(NewServer(compile(t, spec), ServeOptions{}).Check()); !slices.Equal(got, []string{"error robots-txt-too-large 7"}) {
		t.Errorf("checking all hosts: %q", got)
	}
	if _, problems := Render(compile(t, spec), "www.example.com", Options{}); len(problems) > 0 {
		t.Errorf("another host: %v", problems)
	}
}

// The work is not proportional to the number of rules times the number of crawlers. This is tested with many crawlers,
// each disallowed in a separate rule, and with a file that is far too large.
func TestManyClasses(t *testing.T) {
	testkit.Slow(t)
	if testing.Short() {
		t.Skip("takes long with the race detector")
	}
	for _, c := range []struct {
		allow bool
		own   string
		codes []string
	}{{false, "/", nil}, {true, "/x/", []string{"error robots-txt-too-large 2"}}} {
		spec := bigSpec(2000, 1, policy.Crawl)
		spec.Rules[0].Statements = nil
		for i := range 200 {
			spec.Rules = append(spec.Rules, crawlRule(5000+10*i, fmt.Sprintf("Other%d", i), c.allow, c.own, fmt.Sprintf("/own%d/", i)))
		}
		f, problems := Render(compile(t, spec), "", Options{})
		if got := codes(problems); !slices.Equal(got, c.codes) {
			t.Errorf("%s: %q, %d bytes", c.own, got, len(f.Body))
		}
	}
}

// For crawlers that follow a crawler of another operator, rendering does not compare each line with every other line.
func TestFollowersOfAGroupOfManyLines(t *testing.T) {
	var patterns []string
	for i := range 10_000 {
		patterns = append(patterns, fmt.Sprintf("/section-%d/", i))
	}
	spec := &policy.Spec{
		Crawlers: []policy.Crawler{{Token: "FindBot", Operator: "Find", Category: "search"}},
		Rules:    []policy.Rule{crawlRule(1, "everyone", false, patterns...), crawlRule(20_000, "FindBot", false, "/own/")},
	}
	for i := range 20 {
		spec.Crawlers = append(spec.Crawlers, policy.Crawler{Token: fmt.Sprintf("Other%d", i), Operator: fmt.Sprintf("O%d", i), Follows: []string{"FindBot"}})
	}
	p := compile(t, spec)
	_, d, _, _ := drawMerged(p, "", robotstxt.Parse(nil))
	t.Logf("work %d", d.work)
	if most := 1 << 22; d.work > most {
		t.Errorf("work %d, want at most %d", d.work, most)
	}
	f := render(t, p, "")
	if bytes.Contains(f.Body, []byte("Other")) {
		t.Error("the crawlers are named, although the group that they follow disallows everything that the group of * disallows")
	}
}

// Many crawlers and many hosts have their own rules, and there are many rules for everyone. Check then renders the
// files of only some hosts, including the host with the largest file. If there is no time left for a group, the group
// has no Allow lines. A warning reports this, and does not blame patterns with "*".
func TestTooMuchWork(t *testing.T) {
	testkit.Nightly(t)
	var patterns []string
	for i := range 2000 {
		patterns = append(patterns, fmt.Sprintf("/section-%d/", i))
	}
	spec := &policy.Spec{Rules: []policy.Rule{crawlRule(1, "everyone", false, patterns...)}}
	for i := range 300 {
		spec.Rules = append(spec.Rules, crawlRule(5000+10*i, fmt.Sprintf("Other%d", i), true, fmt.Sprintf("/own%d/", i)))
	}
	_, problems := Render(compile(t, spec), "", Options{})
	if len(problems) == 0 || !strings.Contains(problems[0].Message, "would take too long") || len(others(problems)) > 0 {
		t.Errorf("one host: %q", codes(problems))
	}
	for i := range 20 {
		r := crawlRule(9000+10*i, "Other0", false, "/h/")
		r.Hosts = []policy.Host{policy.Host(fmt.Sprintf("title-%d.example.com", i))}
		spec.Rules = append(spec.Rules, r)
	}
	large := crawlRule(9500, "everyone", false)
	for i := range 30000 {
		large.Statements = append(large.Statements, policy.Statement{Pos: large.Pos, Usage: policy.Crawl, Pattern: pathpattern.MustParse(fmt.Sprintf("/a/long/enough/path/%d/", i))})
	}
	large.Hosts = []policy.Host{"title-19.example.com"}
	spec.Rules = append(spec.Rules, large)
	got, rendered := NewServer(compile(t, spec), ServeOptions{}).check()
	if want := []string{"error robots-txt-too-large 9500", "warning hosts-not-rendered 9500"}; !slices.Equal(codes(others(got)), want) || rendered > 5 {
		t.Errorf("%q after %d files", codes(got), rendered)
	}
}

// others returns the problems that are not about missing Allow lines.
func others(problems []policy.Problem) []policy.Problem {
	return slices.DeleteFunc(slices.Clone(problems), func(p policy.Problem) bool { return p.Code == "not-flattenable" })
}

// Hosts with the same rules share one rendered file.
func TestCheckRendersEachShapeOnce(t *testing.T) {
	for _, c := range []struct {
		name  string
		rules int
		hosts func(i int) []policy.Host
		want  int
	}{
		{"no hosts", 50, func(int) []policy.Host { return nil }, 1},
		{"one rule, many hosts", 1, func(int) (hosts []policy.Host) {
			for i := range 500 {
				hosts = append(hosts, policy.Host(fmt.Sprintf("h%d.example.com", i)))
			}
			return hosts
		}, 2},
		{"two hosts a rule", 50, func(i int) []policy.Host {
			return []policy.Host{policy.Host(fmt.Sprintf("a%d.example.com", i)), policy.Host(fmt.Sprintf("*.b%d.example.com", i))}
		}, 51},
		{"one below the wildcard of its rule, one not", 1, func(int) []policy.Host {
			return []policy.Host{"*.example.com", "www.example.com", "www.example.org"}
		}, 3},
		{"twice as many rules", 100, func(i int) []policy.Host {
			return []policy.Host{policy.Host(fmt.Sprintf("a%d.example.com", i)), policy.Host(fmt.Sprintf("*.b%d.example.com", i))}
		}, 101},
	} {
		t.Run(c.name, func(t *testing.T) {
			spec := &policy.Spec{}
			for i := range c.rules {
				r := crawlRule(1+i, "everyone", false, fmt.Sprintf("/own%d/", i))
				r.Hosts = c.hosts(i)
				spec.Rules = append(spec.Rules, r)
			}
			problems, rendered := NewServer(compile(t, spec), ServeOptions{}).check()
			if len(problems) > 0 || rendered != c.want {
				t.Errorf("%d files, want %d; %v", rendered, c.want, problems)
			}
		})
	}
}

func TestLineTooLong(t *testing.T) {
	spec := &policy.Spec{Rules: []policy.Rule{crawlRule(3, "AlphaBot", false, "/"+strings.Repeat("a", maxLine))}}
	_, problems := Render(compile(t, spec), "", Options{})
	if got := codes(problems); !slices.Equal(got, []string{"error line-too-long 3"}) {
		t.Errorf("%q", got)
	}
}

// If thousands of patterns overlap, the ACAP records are left out, and an error reports this. If fewer patterns
// overlap, at most three problems are reported for each allow entry that the records cannot express.
func TestACAPCrossingsAreBounded(t *testing.T) {
	rules := func(permissions, prohibitions int) []policy.Rule {
		host, everywhere := policy.Rule{For: []policy.Audience{{}}}, policy.Rule{For: []policy.Audience{{}}}
		for i := range permissions {
			host.Statements = append(host.Statements, policy.Statement{
				Pos: policy.Pos{Line: 1 + i}, Allow: true, Usage: policy.Index, Pattern: pathpattern.MustParse(fmt.Sprintf("/*p%d-*", i)),
			})
		}
		for i := range prohibitions {
			everywhere.Statements = append(everywhere.Statements, policy.Statement{
				Pos: policy.Pos{Line: 10000 + i}, Usage: policy.Index, Pattern: pathpattern.MustParse(fmt.Sprintf("/*d%d-*", i)),
			})
		}
		return []policy.Rule{host, everywhere}
	}
	for _, c := range []struct {
		permissions, prohibitions int
		code                      string
	}{{100, 10, "acap-undecidable"}, {10_000, 100, "acap-cross"}} {
		p := compile(t, &policy.Spec{Publish: policy.Publish{ACAP: policy.On}, Rules: rules(c.permissions, c.prohibitions)})
		_, problems := Render(p, "www.example.com", Options{})
		reported, times := map[string]int{}, map[policy.Pos]int{}
		for _, p := range problems {
			reported[p.Code]++
			times[p.Pos]++
			if times[p.Pos] > 3 {
				t.Errorf("%d permissions, %d prohibitions: %v", c.permissions, c.prohibitions, p)
			}
			if (p.Code == "acap-cross") != (p.Severity == policy.Error) {
				t.Errorf("%+v", p)
			}
		}
		if reported[c.code] == 0 || c.code == "acap-cross" && reported[c.code] != 1 || c.code != "acap-cross" && reported["acap-cross"] > 0 {
			t.Errorf("%d permissions, %d prohibitions: %v", c.permissions, c.prohibitions, reported)
		}
	}
}
