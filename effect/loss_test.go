// SPDX-License-Identifier: Apache-2.0

package effect_test

import (
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/robotspolicy/caddy-robots-policy/effect"
	"github.com/robotspolicy/caddy-robots-policy/internal/testkit"
	"github.com/robotspolicy/caddy-robots-policy/internal/testkit/policytest"
	"github.com/robotspolicy/caddy-robots-policy/pathpattern"
	"github.com/robotspolicy/caddy-robots-policy/policy"
	"github.com/robotspolicy/caddy-robots-policy/policyfile"
	"github.com/robotspolicy/caddy-robots-policy/robotsrule"
)

// words are the names of all kinds of loss, which are the rows of the table in table.go.
var words = []string{
	"blocked", "crawl", "index", "unavailable", "search", "snippet", "link", "limit", "follow", "image", "preview", "video", "copy", "crawl-delay", "train-ai", "ai-use",
}

// The engine finds the same losses as an evaluator that does not share any code with it. The random policies lead to
// each kind of loss at least once.
func TestLossesEqualAnIndependentCount(t *testing.T) {
	t.Parallel()
	pairs, found := testkit.Rounds(60, 120), map[string]int{}
	if testkit.Long() {
		pairs = 20_000
	}
	r := rand.New(rand.NewPCG(49, 1))
	for n := 0; n < pairs; {
		var engines [2]*effect.Engine
		var specs [2]*policy.Spec
		var texts [2]func(string) string
		for i := range engines {
			specs[i] = randomSpec(r)
			if f, _ := policyfile.Load("random.yaml", policyfile.Print(specs[i])); f != nil {
				engines[i] = f.Effect
				texts[i] = func(host string) string { text, _ := f.Effect.Robots.Text(host); return text }
			}
		}
		if engines[0] == nil || engines[1] == nil {
			continue // the policy blocks all search engines everywhere, or has another error
		}
		n++
		for range 40 {
			q := policytest.Question{
				Token: []string{"AlphaBot", "AlphaBot-Image", "ZetaBot"}[r.IntN(3)], Identity: policy.Verified,
				Host: []string{"www.example.com", "a.b.example.com", "b.example.com", "example.org"}[r.IntN(4)], Path: oneSlash(policytest.Path(r)), Now: policytest.Now,
			}
			want := slices.Sorted(maps.Keys(policytest.Lost(specs, texts, q, time.Date(4000, 1, 1, 0, 0, 0, 0, time.UTC))))
			was := policy.Query{Identity: q.Identity, Host: q.Host, Path: q.Path, Now: q.Now}
			is := was
			was.Crawler, is.Crawler = engines[0].Policy.Crawler(q.Token), engines[1].Policy.Crawler(q.Token)
			lost := effect.Compare(engines[0], engines[1], was, is, ^effect.Loss(0)).Lost(^effect.Loss(0))
			text, _ := (lost.Loss | lost.Intended).MarshalText()
			got := strings.Fields(string(text))
			slices.Sort(got)
			if !slices.Equal(got, want) {
				t.Fatalf("pair %d: %s%s of %s: got %q, want %q\nold:\n%s\nnew:\n%s", n, q.Host, q.Path, q.Token, got, want, policyfile.Print(specs[0]), policyfile.Print(specs[1]))
			}
			for _, word := range got {
				found[word]++
			}
		}
	}
	t.Logf("%d pairs: %v", pairs, found)
	for _, word := range words {
		if found[word] == 0 {
			t.Errorf("%s is never lost", word)
		}
	}
}

func randomSpec(r *rand.Rand) *policy.Spec {
	spec := policytest.Random(r, policytest.Options{Modes: true, NoPurposes: true, Limits: []string{"until-2001-02-03", "until-2999-12-31"}})
	spec.Rules = spec.Rules[:min(len(spec.Rules), 1+r.IntN(4))]
	spec.Enforcement.Mode = []policy.Mode{policy.ModeOff, policy.ModeBlock}[r.IntN(2)]
	spec.Publish.ContentUsage = []policy.Switch{policy.Off, policy.On, policy.On}[r.IntN(3)]
	for i := range spec.Rules {
		rule := &spec.Rules[i]
		for j := range rule.Statements { // the server treats several slashes as one, which this test is not about
			s := &rule.Statements[j]
			s.Pattern = pathpattern.MustParse(oneSlash(s.Pattern.String()))
			if s.Allow && s.Usage == policy.PresentSnippet && r.IntN(2) == 0 {
				s.Qualifiers = &policy.Qualifiers{}
				_ = s.Qualifiers.SetQualifier(s.Usage, policy.QualifierMaxLength, []string{"1-chars", "2-chars", "2-words"}[r.IntN(3)])
			}
		}
		for range r.IntN(3) {
			set := robotsrule.Of(engineRules[r.IntN(len(engineRules))])
			name, _, _ := strings.Cut(set.String(), ":")
			rule.EngineRules = append(rule.EngineRules, policy.EngineRule{
				Pos: rule.Pos, Pattern: pathpattern.MustParse(oneSlash(policytest.Pattern(r, false))), Name: name, Rule: set,
			})
		}
		if r.IntN(4) == 0 {
			rule.CrawlDelay, rule.CrawlDelayPos = time.Duration(1+r.IntN(3))*time.Second, rule.Pos
		}
	}
	if rule := &spec.Rules[r.IntN(len(spec.Rules))]; r.IntN(2) == 0 && rule.CrawlDelay == 0 && rule.Enforce != policy.ModeOff {
		rule.Limit = policy.Limit{Requests: 10 * (1 + r.IntN(3)), Per: time.Minute, Burst: 10}
		rule.IntendedChecks = []string{effect.SafetyLimits}
	}
	for i := range spec.Rules { // an enforced delay would be a second limit
		if rule := &spec.Rules[i]; rule.CrawlDelay > 0 {
			rule.IntendedChecks = nil
		}
	}
	return spec
}

var engineRules = []string{
	"noindex", "nofollow", "nosnippet", "noarchive", "nocache", "noimageindex", "max-snippet:1", "max-snippet:2", "max-snippet:-1", "max-image-preview:none",
	"max-image-preview:standard", "max-image-preview:large", "max-video-preview:0", "max-video-preview:9", "notranslate", "unavailable_after: 2999-12-31T00:00:00Z",
	"unavailable_after: 2001-02-03T00:00:00Z",
}

func oneSlash(path string) string {
	for strings.Contains(path, "//") {
		path = strings.ReplaceAll(path, "//", "/")
	}
	return path
}
