// SPDX-License-Identifier: Apache-2.0

package robotsserve

import (
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/robotspolicy/caddy-robots-policy/internal/testkit"
	"github.com/robotspolicy/caddy-robots-policy/internal/testkit/crawlertest"
	"github.com/robotspolicy/caddy-robots-policy/internal/testkit/policytest"
	"github.com/robotspolicy/caddy-robots-policy/policy"
)

// noAuthority removes the statements whose pattern begins with "//", because Python's urlparse treats the text after
// "//" as a host. See TestPythonReadsAuthorities.
func noAuthority(spec *policy.Spec) {
	for i := range spec.Rules {
		spec.Rules[i].Statements = slices.DeleteFunc(spec.Rules[i].Statements, func(s policy.Statement) bool {
			return strings.HasPrefix(s.Pattern.String(), "//")
		})
	}
}

// startParser starts an external parser. It skips the test if the parser is not installed.
func startParser(t *testing.T, p *crawlertest.Parser) *crawlertest.Process {
	t.Helper()
	process, err := p.Start()
	if err != nil {
		t.Fatal(err)
	}
	if process == nil {
		t.Skipf("%s is not installed: see CONTRIBUTING.md", p.Name)
	}
	t.Cleanup(func() {
		if err := process.Close(); err != nil {
			t.Error(err)
		}
	})
	return process
}

func TestOtherReadersAgreeWithDecide(t *testing.T) {
	testkit.Slow(t)
	for _, parser := range crawlertest.Parsers {
		t.Run(parser.Name, func(t *testing.T) {
			process := startParser(t, &parser)
			r := rand.New(rand.NewPCG(*seed, 3))
			counts := map[string]int{}
			for _, k := range kinds {
				if parser.Prefixes && k.name != "plain" || k.name == "ends in $" || k.name == "percent-encoded and case" {
					continue
				}
				for range *policies / 3 {
					spec := policytest.Random(r, k.options)
					if k.change != nil {
						k.change(r, spec)
					}
					publish(t, r, spec)
					if parser.Authority {
						noAuthority(spec)
					}
					checkParser(t, r, &parser, process, spec, k.name, counts)
				}
			}
			classes := []string{"not-flattenable"}
			if parser.Prefixes || parser.TimedOnly {
				classes = nil // without wildcards there are no exceptions
			}
			tally(counts).check(t, parser.Name, classes...)
		})
	}
}

func checkParser(t *testing.T, r *rand.Rand, parser *crawlertest.Parser, process *crawlertest.Process, spec *policy.Spec, kind string, counts map[string]int) {
	t.Helper()
	p := compile(t, spec)
	host := policytest.Hosts[r.IntN(len(policytest.Hosts))]
	f := render(t, p, host)
	var asks, of [][2]string
	for range 6 {
		path := path(r, kind)
		if path == "/robots.txt" || parser.Authority && strings.HasPrefix(path, "//") {
			continue
		}
		for _, token := range tokens {
			if agent := agentOf(f, p, token); agent != "" && !mistaken(f, agent) {
				asks, of = append(asks, [2]string{agent, path}), append(of, [2]string{token, path})
			}
		}
	}
	if parser.Rejects != nil && parser.Rejects.Match(f.Body) {
		counts["rejected"]++
		return
	}
	answers, err := process.Ask(string(f.Body), asks)
	if err != nil {
		t.Fatal(err)
	}
	for i, got := range answers {
		if parser.TimedOnly {
			break
		}
		token, path := of[i][0], of[i][1]
		want := decide(p, token, host, path)
		counts["decisions"]++
		if !want {
			counts["disallowed"]++
		}
		if got == want {
			continue
		}
		if want && followsAnother(p, token, asks[i][0]) {
			continue
		}
		if !want || !lost(f, token, path) && !lost(f, asks[i][0], path) {
			t.Fatalf("%q may fetch %q: %s says %v, the policy %v of\n%s\n%s", token, path, parser.Name, got, want, f.Body, describe(spec))
		}
		counts["not-flattenable"]++
	}
}

// TestPythonReadsAuthorities shows why noAuthority is necessary. If this test fails, noAuthority can be deleted.
func TestPythonReadsAuthorities(t *testing.T) {
	testkit.Slow(t)
	for _, parser := range crawlertest.Parsers {
		if !parser.Authority {
			continue
		}
		t.Run(parser.Name, func(t *testing.T) {
			answers, err := startParser(t, &parser).Ask("User-agent: *\nDisallow: ///\n", [][2]string{{"ZetaBot", "/a"}, {"ZetaBot", "///a"}})
			if err != nil {
				t.Fatal(err)
			}
			if slices.Equal(answers, []bool{true, false}) {
				t.Errorf("%s reads \"Disallow: ///\" as RFC 9309 does: %v", parser.Name, answers)
			}
		})
	}
}
