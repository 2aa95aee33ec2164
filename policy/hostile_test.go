// SPDX-License-Identifier: Apache-2.0

package policy_test

import (
	"fmt"
	"runtime"
	"strings"
	"testing"

	"github.com/robotspolicy/caddy-robots-policy/pathpattern"
	"github.com/robotspolicy/caddy-robots-policy/policy"
)

// hostileShapes are policies that are expensive to compile or to evaluate, each for a different reason. They have about
// 1 MiB of YAML, except the first one: it has 454 KB, and resembles the policy of a large publisher.
var hostileShapes = map[string]func() *policy.Spec{
	"454 KB, 2400 rules of 3 audiences and 2 hosts": func() *policy.Spec {
		return rules(2400, func(i int, r *policy.Rule) {
			for j := range 3 {
				r.For = append(r.For, policy.ParseAudience(fmt.Sprintf("Bot%c%c", 'a'+(i*3+j)%26, 'a'+(i/7+j)%26)))
			}
			r.Hosts = []policy.Host{policy.Host(fmt.Sprintf("h%d.example.com", i%500)), policy.Host(fmt.Sprintf("*.w%d.example.com", i%300))}
			for j := range 3 {
				state(r, j == 0, fmt.Sprintf("/section%d/%d/*.html", i%50, j))
			}
		})
	},
	"40,000 patterns with wildcards, allowed and disallowed to two audiences": func() *policy.Spec {
		return rules(2, func(i int, r *policy.Rule) {
			r.For = []policy.Audience{policy.ParseAudience([]string{"everyone", "Googlebot"}[i])}
			for j := range 20_000 {
				state(r, i == 1, fmt.Sprintf("/*a*%d*b", j))
			}
		})
	},
	"4,000 rules for everyone and another audience each": func() *policy.Spec {
		return rules(4000, func(i int, r *policy.Rule) {
			r.For = []policy.Audience{{}, policy.ParseAudience(fmt.Sprintf("operator:o%d", i))}
			for j := range 6 {
				state(r, j%2 == 0, fmt.Sprintf("/%d/%d/", i, j))
			}
		})
	},
	"20,000 hosts, nested and with wildcards": func() *policy.Spec {
		return rules(20_000, func(i int, r *policy.Rule) {
			r.For = []policy.Audience{{}}
			r.Hosts = []policy.Host{policy.Host("*." + strings.Repeat("a.", i%60) + fmt.Sprintf("h%d.example", i/60))}
			state(r, false, "/")
		})
	},
	"1,400 prefixes of each other for two audiences and two hosts": func() *policy.Spec {
		return rules(4, func(i int, r *policy.Rule) {
			r.For = []policy.Audience{policy.ParseAudience([]string{"everyone", "Googlebot"}[i%2])}
			if i >= 2 {
				r.Hosts = []policy.Host{"www.example.com"}
			}
			for j := range 700 {
				state(r, (i+j)%2 == 0, "/"+strings.Repeat("a", j)+[]string{"", "*", "$"}[j%3])
			}
		})
	},
	"500 audiences on 2,000 hosts": func() *policy.Spec {
		return rules(1, func(_ int, r *policy.Rule) {
			for i := range 500 {
				r.For = append(r.For, policy.ParseAudience(fmt.Sprintf("category:k%d", i)))
			}
			for i := range 2000 {
				r.Hosts = append(r.Hosts, policy.Host(fmt.Sprintf("h%d.example", i)))
			}
			for i := range 20_000 {
				state(r, false, fmt.Sprintf("/path/%d", i))
			}
		})
	},
}

func rules(n int, fill func(int, *policy.Rule)) *policy.Spec {
	s := &policy.Spec{Rules: make([]policy.Rule, n)}
	for i := range s.Rules {
		s.Rules[i].Pos = policy.Pos{Line: i + 1, Column: 1}
		fill(i, &s.Rules[i])
	}
	return s
}

func state(r *policy.Rule, allow bool, pattern string) {
	r.Statements = append(r.Statements, policy.Statement{Pos: r.Pos, Allow: allow, Usage: policy.Crawl, Pattern: pathpattern.MustParse(pattern)})
}

// BenchmarkCompileHostile reports the memory of a compiled policy, and all memory that compiling has allocated.
func BenchmarkCompileHostile(b *testing.B) {
	for name, shape := range hostileShapes {
		b.Run(name, func(b *testing.B) {
			spec := shape()
			var before, after runtime.MemStats
			runtime.GC()
			runtime.ReadMemStats(&before)
			var p *policy.Policy
			n := 0
			for b.Loop() {
				p = policy.Compile(spec)
				n++
			}
			total := before.TotalAlloc
			runtime.ReadMemStats(&after)
			b.ReportMetric(float64(after.TotalAlloc-total)/float64(n)/(1<<20), "MiB-allocated/op")
			runtime.GC()
			runtime.ReadMemStats(&after)
			b.ReportMetric(float64(after.HeapAlloc-before.HeapAlloc)/(1<<20), "MiB-kept")
			runtime.KeepAlive(p)
		})
	}
}

// Two rules have 20,000 overlapping patterns each. Every allow entry of the narrower rule still overrides the disallow
// entries of the wider rule.
func TestManyCrossingPatterns(t *testing.T) {
	t.Parallel()
	p := policy.Compile(hostileShapes["40,000 patterns with wildcards, allowed and disallowed to two audiences"]())
	for _, i := range []int{0, 19_999} {
		d := p.Decide(policy.Query{Crawler: p.Crawler("Googlebot"), Path: fmt.Sprintf("/xa/y%dzb", i)})
		if want := policy.Allowed; d.Verdict != want {
			t.Errorf("pattern %d: %v", i, d.Verdict)
		}
	}
}
