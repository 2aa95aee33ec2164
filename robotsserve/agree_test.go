// SPDX-License-Identifier: Apache-2.0

package robotsserve

import (
	"flag"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/temoto/robotstxt"

	"github.com/robotspolicy/caddy-robots-policy/internal/testkit"
	"github.com/robotspolicy/caddy-robots-policy/internal/testkit/crawlertest"
	"github.com/robotspolicy/caddy-robots-policy/internal/testkit/policytest"
	"github.com/robotspolicy/caddy-robots-policy/pathpattern"
	"github.com/robotspolicy/caddy-robots-policy/policy"
)

var (
	policies = flag.Int("policies", testkit.Rounds(8, 20), "random policies of each agreement test")
	seed     = flag.Uint64("seed", 1, "seed of the random policies")
)

// tokens are the crawlers that the tests ask about. The last one is an unlisted client.
var tokens = append(slices.Clone(policytest.Tokens[:len(policytest.Tokens)-1]), "NobodyBot")

func compile(t testing.TB, spec *policy.Spec) *policy.Policy {
	t.Helper()
	p := policy.Compile(spec)
	return p
}

// render renders the policy, and fails the test if a problem is an error.
func render(t testing.TB, p *policy.Policy, host string) *File {
	t.Helper()
	f, problems := Render(p, host, Options{})
	for _, pr := range problems {
		if pr.Severity == policy.Error {
			t.Fatalf("%+v", pr)
		}
	}
	return f
}

// lost reports whether the file reports that it is stricter than the policy for a crawler and path.
func lost(f *File, agent, path string) bool {
	for _, l := range f.Losses {
		if l.Paths.Match(pathpattern.NormalizePath(path)) && slices.ContainsFunc(l.Crawlers, func(c string) bool { return sameGroup(f, c, agent) }) {
			return true
		}
	}
	return false
}

// sameGroup reports whether two crawlers obey the same lines.
func sameGroup(f *File, a, b string) bool {
	lines := func(token string) []Line {
		for _, g := range f.drawn.groups {
			if slices.ContainsFunc(g.tokens, func(t string) bool { return strings.EqualFold(t, token) }) {
				return g.lines
			}
		}
		return f.drawn.groups[0].lines
	}
	return keyOf(lines(a)) == keyOf(lines(b))
}

// agentOf returns the name that a crawler looks for to find its group, according to its operator's documentation. It
// returns "" if no group applies to the crawler.
func agentOf(f *File, p *policy.Policy, token string) string {
	info := p.CrawlerInfo(p.Crawler(token))
	if info.Token == "" {
		info.Token = token
	}
	agent, _ := f.drawn.obeyed(info, nil)
	if agent == "*" {
		return token
	}
	return agent
}

// followsAnother reports whether a crawler obeys the group of a crawler of another operator.
func followsAnother(p *policy.Policy, token, agent string) bool {
	id := p.Crawler(token)
	return agent != "" && !strings.EqualFold(token, agent) && p.Family(id) != p.Crawler(agent)
}

// mistaken reports whether no group names the crawler, but some readers would choose a group for a shorter name that is
// a part of the crawler's name.
func mistaken(f *File, agent string) bool {
	agent = strings.ToLower(agent)
	for _, g := range f.drawn.groups {
		for _, t := range g.tokens {
			if strings.EqualFold(t, agent) {
				return false
			}
		}
	}
	return slices.ContainsFunc(f.drawn.groups, func(g *group) bool {
		return slices.ContainsFunc(g.tokens, func(t string) bool { return strings.Contains(agent, strings.ToLower(t)) })
	})
}

func decide(p *policy.Policy, token, host, path string) bool {
	return p.Decide(policy.Query{
		Crawler: p.Crawler(token), Identity: policy.Verified, Host: host, Path: path, Now: policytest.Now,
	}).Verdict != policy.Disallowed
}

var kinds = []struct {
	name    string
	options policytest.Options
	change  func(r *rand.Rand, s *policy.Spec)
}{
	{"any", policytest.Options{Usages: []policy.Usage{policy.Crawl}}, nil},
	{"plain", policytest.Options{Usages: []policy.Usage{policy.Crawl}, NoWildcards: true}, nil},
	{"many rules", policytest.Options{Usages: []policy.Usage{policy.Crawl}, MaxRules: 20, NoHosts: true}, nil},
	{"ends in $", policytest.Options{Usages: []policy.Usage{policy.Crawl}}, repattern(func(r *rand.Rand) string {
		return "/" + pick(r, "", "a", "b", "*", "*/", "*a", "a*", "ab") + pick(r, "$", "$", "*$", "b$", "*b$", "")
	})},
	{"ties", policytest.Options{Usages: []policy.Usage{policy.Crawl}, MaxRules: 12, NoHosts: true}, repattern(func(r *rand.Rand) string {
		return "/" + pick(r, "a*b", "*ab", "ab*", "a*a", "aa*", "*ba", "b*a", "a/*", "*/a", "abab")
	})},
	{"with asterisks at the end", policytest.Options{Usages: []policy.Usage{policy.Crawl}}, repattern(func(r *rand.Rand) string {
		return pick(r, "/", "/a", "/a*", "/a*$", "/*", "/*$", "*", "/a/*", "/*/a", "*/a", "/aa", "/a*a*", "/a*/*")
	})},
	{"percent-encoded and case", policytest.Options{Usages: []policy.Usage{policy.Crawl}}, repattern(func(r *rand.Rand) string {
		return "/" + pick(r, "%41", "A", "a", "%C3%A9", "%e2%82%ac", "%2F", "/", "%2a", "%24", "b*") + pick(r, "", "/", "$", "*%41", "A*")
	})},
}

func pick(r *rand.Rand, from ...string) string { return from[r.IntN(len(from))] }

func repattern(pattern func(r *rand.Rand) string) func(*rand.Rand, *policy.Spec) {
	return func(r *rand.Rand, s *policy.Spec) {
		for i := range s.Rules {
			seen := map[string]bool{}
			s.Rules[i].Statements = slices.DeleteFunc(s.Rules[i].Statements, func(st policy.Statement) bool { return st.Usage != policy.Crawl })
			for j := range s.Rules[i].Statements {
				s.Rules[i].Statements[j].Pattern = pathpattern.MustParse(pattern(r))
			}
			// In a policy file, a rule cannot both allow and disallow the same path, so only the first entry for a path
			// is kept.
			s.Rules[i].Statements = slices.DeleteFunc(s.Rules[i].Statements, func(st policy.Statement) bool {
				said := seen[st.Pattern.String()]
				seen[st.Pattern.String()] = true
				return said
			})
		}
	}
}

func path(r *rand.Rand, kind string) string {
	if kind == "percent-encoded and case" {
		p := "/"
		for range r.IntN(4) {
			p += pick(r, "%41", "A", "a", "%C3%A9", "\u00e9", "%E2%82%AC", "%2F", "/", "*", "$", "b")
		}
		return p
	}
	return policytest.Path(r)
}

// tally counts a reader's decisions under the key "decisions", and the accepted exceptions under their class.
type tally map[string]int

// check fails the test if more than 2 % of the decisions are exceptions. If there is no exception of one of the
// classes, it also fails the test, because the random policies then do not cover this class.
func (n tally) check(t *testing.T, reader string, classes ...string) {
	t.Helper()
	excepted := 0
	for _, class := range classes {
		excepted += n[class]
		if n[class] == 0 && *policies >= 400 {
			t.Errorf("%s: no decision is an exception of the class %q, so the test does not cover it", reader, class)
		}
	}
	t.Logf("%s: %d of %d decisions are exceptions: %v", reader, excepted, n["decisions"], n)
	if excepted*50 > n["decisions"] {
		t.Errorf("%s: more than 2 %% of the decisions are exceptions", reader)
	}
}

func TestGroupsAgreeWithDecide(t *testing.T) {
	t.Logf("seed %d, %d policies of each kind", *seed, *policies)
	naives, temotos, classes := tally{}, tally{}, map[string]int{}
	for _, k := range kinds {
		naives, temotos := naives, temotos
		if k.name == "ties" || k.name == "ends in $" || k.name == "percent-encoded and case" { // these patterns are chosen because they are hard to express, so the share of exceptions does not matter
			naives, temotos = tally{}, tally{}
		}
		t.Run(k.name, func(t *testing.T) {
			r := rand.New(rand.NewPCG(*seed, 1))
			counts := map[string]int{}
			for range *policies {
				spec := policytest.Random(r, k.options)
				if k.change != nil {
					k.change(r, spec)
				}
				publish(t, r, spec)
				p := compile(t, spec)
				host := policytest.Hosts[r.IntN(len(policytest.Hosts))]
				f := render(t, p, host)
				naive := crawlertest.ReadRobotsTxt(string(f.Body))
				temoto, err := robotstxt.FromBytes(f.Body)
				if err != nil {
					t.Fatalf("temoto: %v of\n%s", err, f.Body)
				}
				for range 8 {
					path := path(r, k.name)
					norm := pathpattern.NormalizePath(path)
					if path == "/robots.txt" {
						continue // always allowed, RFC 9309 section 2.2.2
					}
					for _, token := range tokens {
						want, agent := decide(p, token, host, path), agentOf(f, p, token)
						if agent == "" {
							counts["not addressed"]++
							continue
						}
						counts["decisions"]++
						naives["decisions"]++
						classify(classes, p, token, host, norm)
						if !want {
							counts["disallowed"]++
						}
						got := naive.Allowed(agent, norm)
						switch {
						case got == want:
						case want && followsAnother(p, token, agent):
							counts["follows the stricter group of another operator"]++
							continue
						case want && (lost(f, agent, path) || lost(f, token, path)):
							counts["not-flattenable"]++
							naives["not-flattenable"]++
						default:
							t.Fatalf("%q, as %q, may fetch %q on %q: the file says %v, the policy %v\n%s\n%s", token, agent, path, host, got, want, f.Body, describe(spec))
						}
						if k.name == "ties" || mistaken(f, agent) {
							continue // temoto does not find the longest match among patterns with wildcards
						}
						temotos["decisions"]++
						if got := temoto.TestAgent(norm, strings.ToLower(agent)); got != want {
							name := crawlertest.TemotoException(naive, agent, norm, got)
							if want && (lost(f, agent, path) || lost(f, token, path)) {
								name = "not-flattenable"
							}
							if want && name == "" && slices.ContainsFunc(f.Losses, func(l Loss) bool { return l.spelling }) {
								name = "not-flattenable" // temoto finds the pattern of a Loss anywhere in a path
							}
							if name == "" {
								t.Fatalf("temoto: %q may fetch %q on %q: the file says %v, the policy %v\n%s\n%s", token, path, host, got, want, f.Body, describe(spec))
							}
							counts["temoto: "+name]++
							temotos[name]++
						}
					}
				}
			}
			t.Log(counts)
			if counts["disallowed"] == 0 || counts["disallowed"] == counts["decisions"] {
				t.Error("the generator is too narrow")
			}
		})
	}
	checkClasses(t, classes)
	naives.check(t, "the longest match", "not-flattenable")
	temotos.check(t, "temoto", "not-flattenable") // the other classes exist only for temoto
}

// publish randomly switches on lines that are not about crawling. They must not change what readers of RFC 9309
// conclude.
func publish(t testing.TB, r *rand.Rand, spec *policy.Spec) {
	onOff := func() policy.Switch { return policy.Switch(r.IntN(2)) }
	spec.Publish = policy.Publish{ACAP: onOff(), UserAgentPurpose: onOff(), ContentUsage: onOff(), ContentSignal: onOff()}
	if r.IntN(2) == 0 {
		spec.Publish.License = "https://www.example.com/license.xml"
		policytest.AddDirectives(r, spec, true)
		spec.Sitemaps = []policy.Sitemaps{{Addresses: []string{"/sitemap.xml"}}}
	}
	for i := range spec.Rules {
		if r.IntN(4) == 0 {
			spec.Rules[i].Statements = append(spec.Rules[i].Statements, policy.Statement{Usage: policy.TrainAI, Pattern: pathpattern.All, Allow: r.IntN(2) == 0})
		}
		if r.IntN(6) == 0 {
			spec.Rules[i].CrawlDelay = 1500 * time.Millisecond
		}
	}
}

func describe(spec *policy.Spec) string {
	var b strings.Builder
	for _, r := range spec.Rules {
		for _, a := range r.For {
			b.WriteString(a.String() + " ")
		}
		for _, h := range r.Hosts {
			b.WriteString("@" + string(h) + " ")
		}
		if len(r.UsagePurposes) > 0 {
			b.WriteString("usage purposes " + strings.Join(r.UsagePurposes, " "))
		}
		b.WriteString("\n")
		for _, s := range r.Statements {
			b.WriteString("  " + yesNo(s.Allow, "allow ", "disallow ") + s.Usage.String() + " " + s.Pattern.String() + " " + strings.Join(s.Qualifiers.Strings(), " ") + "\n")
		}
	}
	return b.String()
}

func yesNo(yes bool, y, n string) string {
	if yes {
		return y
	}
	return n
}
