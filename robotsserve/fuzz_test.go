// SPDX-License-Identifier: Apache-2.0

package robotsserve

import (
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/robotspolicy/caddy-robots-policy/internal/testkit/crawlertest"
	"github.com/robotspolicy/caddy-robots-policy/internal/testkit/policytest"
	"github.com/robotspolicy/caddy-robots-policy/pathpattern"
	"github.com/robotspolicy/caddy-robots-policy/policy"
)

// FuzzRender puts two patterns into a random policy and checks the layout of the file. It also uses the patterns as
// paths, and compares the file with the policy's decisions about them.
func FuzzRender(f *testing.F) {
	f.Add(uint64(1), "/a*b$", "/a", "name")
	f.Add(uint64(2), "*/x", "/%2a%24", "two\nlines")
	f.Add(uint64(3), "/\u00e9?q=", "/*$", "\u2028User-agent: *")
	f.Fuzz(func(t *testing.T, n uint64, one, two, name string) {
		r := rand.New(rand.NewPCG(n, 10))
		spec := policytest.Random(r, policytest.Options{Usages: []policy.Usage{policy.Crawl}})
		publish(t, r, spec)
		spec.Rules[0].Name = name
		for i, text := range []string{one, two} {
			p, err := pathpattern.Parse(text)
			if err != nil || p.Len() > 200 {
				return
			}
			rule := &spec.Rules[i%len(spec.Rules)]
			said := false
			for _, s := range rule.Statements {
				said = said || s.Pattern == p
			}
			if !said {
				rule.Statements = append(rule.Statements, policy.Statement{Pos: policy.Pos{Line: 5000 + i, Column: 1}, Allow: i == 0, Usage: policy.Crawl, Pattern: p})
			}
		}
		p := compile(t, spec)
		file, problems := Render(p, "www.example.com", Options{})
		for _, pr := range problems {
			if pr.Severity == policy.Error {
				return
			}
		}
		checkLayout(t, file.Body)
		naive := crawlertest.ReadRobotsTxt(string(file.Body))
		for _, path := range []string{one, two, strings.NewReplacer("*", "", "$", "").Replace(one), strings.ReplaceAll(two, "*", "ab") + "a"} {
			if !strings.HasPrefix(path, "/") || path == "/robots.txt" {
				continue
			}
			norm := pathpattern.NormalizePath(path)
			for _, token := range tokens {
				want, agent := decide(p, token, "www.example.com", path), agentOf(file, p, token)
				if agent == "" {
					continue
				}
				if got := naive.Allowed(agent, norm); got != want && (!want || !lost(file, agent, path) && !lost(file, token, path) && !followsAnother(p, token, agent)) {
					t.Fatalf("%q may fetch %q: the file says %v, the policy %v\n%s\n%s", token, path, got, want, file.Body, describe(spec))
				}
			}
		}
	})
}
