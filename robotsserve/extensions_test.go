// SPDX-License-Identifier: Apache-2.0

package robotsserve

import (
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/dunglas/httpsfv"

	"github.com/robotspolicy/caddy-robots-policy/internal/testkit/crawlertest"
	"github.com/robotspolicy/caddy-robots-policy/internal/testkit/policytest"
	"github.com/robotspolicy/caddy-robots-policy/pathpattern"
	"github.com/robotspolicy/caddy-robots-policy/policy"
)

func TestAppDirectivesAgreeWithPolicy(t *testing.T) {
	for _, plain := range []bool{true, false} {
		r := rand.New(rand.NewPCG(*seed, 4))
		counts := map[string]int{}
		for range *policies {
			spec := policytest.Random(r, policytest.Options{Usages: []policy.Usage{policy.Crawl}, NoWildcards: plain})
			policytest.AddDirectives(r, spec, plain)
			p := compile(t, spec)
			host := policytest.Hosts[r.IntN(len(policytest.Hosts))]
			f, problems := Render(p, host, Options{})
			if slices.ContainsFunc(problems, func(p policy.Problem) bool { return p.Code == "app-directives-cross" }) {
				counts["cross in too many ways"]++
				if plain {
					t.Fatalf("%v of\n%s", problems, describe(spec))
				}
				continue
			}
			naive := crawlertest.ReadRobotsTxt(string(f.Body))
			for range 10 {
				path := policytest.Path(r)
				for _, token := range tokens {
					agent := agentOf(f, p, token)
					if agent == "" || followsAnother(p, token, agent) {
						continue
					}
					var want []string
					for _, app := range p.Apps() {
						d := p.AppDirective(policy.Query{Crawler: p.Crawler(token), Identity: policy.Verified, Host: host, Path: path}, app)
						if d != nil {
							want = append(want, d.Text)
						}
					}
					slices.Sort(want)
					got, lines := naive.Extension("app-directives", agent, path)
					if got != strings.Join(want, ", ") || lines > 1 {
						t.Fatalf("%q of %q on %q: the file says %q (%d lines), the policy %q\n%s", token, path, host, got, lines, want, f.Body)
					}
					counts["decisions"]++
					if len(want) > 1 {
						counts["of several applications"]++
					}
					if list, err := httpsfv.UnmarshalList([]string{got}); got != "" && (err != nil || len(list) != len(want)) {
						t.Fatalf("%q: %v", got, err)
					}
				}
			}
		}
		t.Log(counts)
		if counts["of several applications"] == 0 {
			t.Error("the generator is too narrow")
		}
	}
}

func TestContentUsageAgreesWithDecide(t *testing.T) {
	r := rand.New(rand.NewPCG(*seed, 5))
	counts := map[string]int{}
	for i := range *policies {
		usages := []policy.Usage{policy.TrainAI, policy.AIUse, policy.Search, policy.Other}
		spec := policytest.Random(r, policytest.Options{Usages: usages, NoWildcards: i%3 > 0})
		spec.Publish.ContentUsage, spec.Publish.ContentSignal = policy.On, policy.On
		p := compile(t, spec)
		host := policytest.Hosts[r.IntN(len(policytest.Hosts))]
		f, problems := Render(p, host, Options{})
		crossed := slices.ContainsFunc(problems, func(p policy.Problem) bool { return p.Code == "content-usage-cross" })
		naive := crawlertest.ReadRobotsTxt(string(f.Body))
		for range 10 {
			path := policytest.Path(r)
			for _, token := range tokens {
				agent := agentOf(f, p, token)
				if agent == "" || followsAnother(p, token, agent) {
					continue
				}
				got, lines := naive.Extension("content-usage", agent, path)
				signal, _ := naive.Extension("content-signal", agent, path)
				if lines > 1 {
					t.Fatalf("%d lines for %q of\n%s", lines, path, f.Body)
				}
				says := members(t, got)
				signals := strings.Split(signal, ", ")
				for k, u := range policy.RightsUsages() {
					d := p.Decide(policy.Query{Crawler: p.Crawler(token), Identity: policy.Verified, Host: host, Path: path, Usage: u})
					want := [...]string{"", "y", "n"}[d.Verdict]
					counts["decisions"]++
					counts["is "+want]++
					name := [...]string{"ai-train", "ai-input", "search"}[k]
					if d.Verdict == policy.Disallowed && slices.Contains(signals, name+"=yes") || d.Verdict == policy.Disallowed && !slices.Contains(signals, name+"=no") {
						t.Fatalf("%q of %q: %v is %v, but the signal %q\n%s", token, path, u, d.Verdict, signal, f.Body)
					}
					if d.Verdict != policy.Allowed && slices.Contains(signals, name+"=yes") {
						t.Fatalf("%q of %q: %v is %v, but the signal %q\n%s", token, path, u, d.Verdict, signal, f.Body)
					}
					switch {
					case says[u.String()] == want:
					case crossed && says[u.String()] == "n" || crossed && says[u.String()] == "" && want == "y":
						counts["content-usage-cross"]++
					default:
						t.Fatalf("%q of %q on %q: %v is %q, the policy says %q\n%s\n%s", token, path, host, u, says[u.String()], want, f.Body, describe(spec))
					}
				}
			}
		}
	}
	t.Log(counts)
	for _, is := range []string{"is y", "is n", "is "} {
		if counts[is] == 0 {
			t.Errorf("no answer %s: the generator is too narrow", is)
		}
	}
}

// A Content-Signal line has "no" for a usage that is disallowed on some path. It does not have "no" if a stronger rule
// allows the usage on all of these paths.
func TestContentSignal(t *testing.T) {
	alpha, everyone := []policy.Audience{{Kind: policy.ForToken, Name: "AlphaBot"}}, []policy.Audience{{}}
	rule := func(audience []policy.Audience, allow bool, u policy.Usage, path string) policy.Rule {
		return policy.Rule{For: audience, Statements: []policy.Statement{{Allow: allow, Usage: u, Pattern: pathpattern.MustParse(path)}}}
	}
	for _, c := range []struct {
		name  string
		rules []policy.Rule
		want  string
	}{
		{"disallowed somewhere", []policy.Rule{rule(everyone, false, policy.TrainAI, "/a/")}, "ai-train=no"},
		{"allowed for a narrower audience", []policy.Rule{rule(everyone, false, policy.TrainAI, "/a/"), rule(alpha, true, policy.TrainAI, "/")}, "ai-train=no"},
		{"allowed there alone", []policy.Rule{rule(everyone, false, policy.TrainAI, "/a/"), rule(alpha, true, policy.TrainAI, "/a/")}, ""},
		{"allowed for a part", []policy.Rule{rule(everyone, false, policy.TrainAI, "/a/"), rule(alpha, true, policy.TrainAI, "/a/b/")}, "ai-train=no"},
		{"other than what is stated", []policy.Rule{rule(everyone, true, policy.Search, "/"), rule(alpha, false, policy.Other, "/a/")}, "search=yes, ai-input=no, ai-train=no"},
		{"a tie", []policy.Rule{rule(everyone, false, policy.Search, "/a/"), rule(everyone, true, policy.Search, "/a/")}, ""},
	} {
		spec := &policy.Spec{Crawlers: policytest.Crawlers, Rules: c.rules, Publish: policy.Publish{ContentSignal: policy.On}}
		f, _ := Render(compile(t, spec), "", Options{})
		if got, _ := crawlertest.ReadRobotsTxt(string(f.Body)).Extension("content-signal", "AlphaBot", "/"); got != c.want {
			t.Errorf("%s: %q, want %q, in\n%s", c.name, got, c.want, f.Body)
		}
	}
}

func members(t *testing.T, text string) map[string]string {
	says := map[string]string{}
	if text == "" {
		return says
	}
	dict, err := httpsfv.UnmarshalDictionary([]string{text})
	if err != nil {
		t.Fatalf("%q: %v", text, err)
	}
	for _, n := range dict.Names() {
		m, _ := dict.Get(n)
		says[n] = string(m.(httpsfv.Item).Value.(httpsfv.Token))
	}
	return says
}
