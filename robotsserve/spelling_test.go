// SPDX-License-Identifier: Apache-2.0

package robotsserve

import (
	"slices"
	"strings"
	"testing"

	"github.com/robotspolicy/caddy-robots-policy/internal/testkit/crawlertest"
	"github.com/robotspolicy/caddy-robots-policy/policy"
)

// If a pattern has a percent-encoded character, such as /b%24, the file has a second line with the decoded character,
// for readers that do not decode paths. If the second line disallows more than the policy, a Loss reports it. For an
// encoded "*", there is no second line, and a hint reports this.
func TestSecondSpellingsThatCloseMore(t *testing.T) {
	t.Parallel()
	for _, pattern := range []string{"/b%24$", "/b%24", "/b%24c$", "/b%2A$", "/b%2Ac", "/%24$", "/~e$"} {
		p := compile(t, &policy.Spec{Rules: []policy.Rule{crawlRule(1, "everyone", false, pattern)}})
		f, problems := Render(p, "", Options{})
		asterisk := slices.ContainsFunc(problems, func(p policy.Problem) bool {
			return strings.Contains(p.Message, "if * is not percent-encoded in the URL")
		})
		google := crawlertest.ReadGoogle(string(f.Body))
		for _, path := range []string{"/", "/b", "/b$", "/b$x", "/b$c", "/b$cx", "/b*", "/b*c", "/bx", "/bxc", "/$", "/$x", "/~e", "/~ex"} {
			normal := crawlertest.NormalPath(path)
			disallowed := p.Decide(policy.Query{Path: normal}).Verdict == policy.Disallowed
			reported := slices.ContainsFunc(f.Losses, func(l Loss) bool { return l.Paths.Match(normal) })
			if got := google.Allowed("FindBot", path); got == disallowed && (got && !(asterisk && strings.Contains(path, "*")) || !got && !reported) {
				t.Errorf("%s: %s is allowed: %v, which is not reported; losses %+v of\n%s", pattern, path, got, f.Losses, f.Body)
			}
		}
	}
}

// If robots.txt lacks some spellings of many paths, there is only one hint for each cause.
func TestSpellingsAreOneHint(t *testing.T) {
	t.Parallel()
	p := compile(t, &policy.Spec{Rules: []policy.Rule{
		crawlRule(1, "everyone", false, "/core/", "/*?[args]", "/*?[more]"), crawlRule(5, "everyone", true, "/core/*.css?", "/core/*.js?", "/core/a[1]"),
	}})
	f, problems := Render(p, "", Options{})
	var hints []string
	for _, h := range problems {
		hints = append(hints, h.Message)
	}
	if len(hints) != 2 || !slices.ContainsFunc(hints, func(m string) bool { return strings.Contains(m, "and 2 other paths in only one spelling") }) ||
		!slices.ContainsFunc(hints, func(m string) bool { return strings.Contains(m, `"/*?[args]" and 1 other path`) }) {
		t.Errorf("%q\n%s", hints, f.Body)
	}
}
