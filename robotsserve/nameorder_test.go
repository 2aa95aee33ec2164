// SPDX-License-Identifier: Apache-2.0

package robotsserve

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/robotspolicy/caddy-robots-policy/internal/testkit/crawlertest"
	"github.com/robotspolicy/caddy-robots-policy/policy"
)

// Some readers obey the first group whose name is a part of a crawler's name. They must find the same lines as other
// readers. This is true even if each of two groups would have to be before the other one, because each has a name that
// contains a name of the other one.
func TestOrderOfNames(t *testing.T) {
	rule := func(line int, path string, tokens ...string) policy.Rule {
		r := crawlRule(line, tokens[0], false, path)
		for _, token := range tokens[1:] {
			r.For = append(r.For, policy.ParseAudience(token))
		}
		return r
	}
	both := render(t, compile(t, &policy.Spec{Rules: []policy.Rule{rule(1, "/a/", "Foo", "BarBaz"), rule(2, "/b/", "FooBar", "Baz")}}), "")
	const want = "User-agent: *\nDisallow:\n\nUser-agent: BarBaz\nDisallow: /a/\n\nUser-agent: FooBar\nDisallow: /b/\n\nUser-agent: Foo\nDisallow: /a/\n\nUser-agent: Baz\nDisallow: /b/\n"
	if string(both.Body) != want {
		t.Errorf("%s\nwant\n%s", both.Body, want)
	}
	for i := range 200 {
		r := rand.New(rand.NewPCG(uint64(i), 9))
		var rules []policy.Rule
		seen := map[string]bool{}
		for n := range 1 + r.IntN(6) {
			var tokens []string
			for range 1 + r.IntN(5) {
				token := ""
				for range 1 + r.IntN(4) {
					token += string("ab"[r.IntN(2)])
				}
				if !seen[token] {
					seen[token] = true
					tokens = append(tokens, token)
				}
			}
			if tokens != nil {
				rules = append(rules, rule(n, fmt.Sprintf("/%d/", n), tokens...))
			}
		}
		body := string(render(t, compile(t, &policy.Spec{Rules: rules}), "").Body)
		read := crawlertest.ReadRobotsTxt(body)
		for token := range seen {
			for name := range strings.SplitSeq(body, "\n") {
				if name, ok := strings.CutPrefix(name, "User-agent: "); ok && strings.Contains(token, name) {
					if got, want := fmt.Sprint(read.Group(name)), fmt.Sprint(read.Group(token)); got != want {
						t.Fatalf("%s would read the group of %s: %s, want %s\n%s", token, name, got, want, body)
					}
					break
				}
			}
		}
	}
}
