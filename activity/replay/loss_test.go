// SPDX-License-Identifier: Apache-2.0

package replay

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/robotspolicy/caddy-robots-policy/activity"
	"github.com/robotspolicy/caddy-robots-policy/claim"
	"github.com/robotspolicy/caddy-robots-policy/internal/testkit"
	"github.com/robotspolicy/caddy-robots-policy/internal/testkit/policytest"
	"github.com/robotspolicy/caddy-robots-policy/pathpattern"
	"github.com/robotspolicy/caddy-robots-policy/policy"
	"github.com/robotspolicy/caddy-robots-policy/policyfile"
	"github.com/robotspolicy/caddy-robots-policy/site"
)

// lossPolicy returns a random policy that can make search engines lose something. intended sets the key "intended" of
// all its rules.
func lossPolicy(r *rand.Rand, intended bool) *policy.Spec {
	spec := policytest.Random(r, policytest.Options{
		Usages: []policy.Usage{
			policy.Crawl, policy.Crawl, policy.Crawl, policy.Index, policy.Search, policy.Present, policy.PresentSnippet, policy.PresentLink,
			policy.TrainAI, policy.Follow, policy.Preserve, policy.PresentThumbnail,
		},
		Modes: true, NoPurposes: true, Limits: []string{"until-2001-02-03", "until-2999-12-31"},
	})
	for i := range spec.Rules { // the server treats several slashes like one
		for j := range spec.Rules[i].Statements {
			pattern := &spec.Rules[i].Statements[j].Pattern
			*pattern = pathpattern.MustParse(oneSlash(pattern.String()))
		}
	}
	spec.Enforcement.Mode = []policy.Mode{policy.ModeOff, policy.ModeBlock}[r.IntN(2)]
	spec.Publish.ContentUsage = []policy.Switch{policy.Off, policy.On, policy.On}[r.IntN(3)]
	for i := range spec.Rules {
		spec.Rules[i].Intended = intended
	}
	if r.IntN(3) == 0 {
		policytest.AddDirectives(r, spec, true)
	}
	if rule := &spec.Rules[r.IntN(len(spec.Rules))]; intended && r.IntN(3) == 0 && rule.Enforce != policy.ModeOff {
		rule.Limit = policy.Limit{Requests: 10, Per: time.Minute, Burst: 10}
		rule.IntendedChecks, rule.Intended = []string{"limits-search", "blocks-search", "disallows-search", "site-not-indexed"}, false
	}
	return spec
}

func oneSlash(path string) string {
	for strings.Contains(path, "//") {
		path = strings.ReplaceAll(path, "//", "/")
	}
	return path
}

// For each kind of loss and each crawler, the reported losses equal the count of an independent evaluator, which shares
// no code with package policy.
func TestSearchLossEqualsAnIndependentCount(t *testing.T) {
	testkit.Slow(t)
	t.Parallel()
	pairs, found := 15, map[string]int{}
	if testkit.Long() {
		pairs = 500
	}
	r := rand.New(rand.NewPCG(29, 1))
	tried, intendedLosses := 0, 0
	for n := 0; n < pairs; tried++ {
		intended := r.IntN(3) == 0
		specs := [2]*policy.Spec{lossPolicy(r, intended), lossPolicy(r, intended)}
		var sites [2]*site.Site
		for i, spec := range specs {
			sites[i], _ = site.Load("random.yaml", policyfile.Print(spec))
		}
		if sites[0] == nil || sites[1] == nil {
			continue // a policy that blocks all search engines everywhere cannot be loaded
		}
		n++
		visits := lossVisits(r)
		var texts [2]func(string) string
		for i := range texts {
			texts[i] = func(host string) string { text, _ := sites[i].Robots.Text(host); return text }
		}
		report, err := Run(t.Context(), Options{
			Old: sites[0], New: sites[1],
			Stored: func(_ context.Context, _, _ time.Time, each func(activity.Totals) error) (claim.Coverage, error) {
				for i := range visits {
					if err := each(visits[i]); err != nil {
						return claim.Coverage{}, err
					}
				}
				return claim.Coverage{}, nil
			},
		})
		if err != nil {
			t.Fatal(err)
		}
		got, want := reported(&report.SearchLoss), counted(specs, texts, visits, intended)
		if !maps.Equal(got, want) {
			t.Fatalf("pair %d: got %v\nwant %v\nold:\n%s\nnew:\n%s", n, got, want, policyfile.Print(specs[0]), policyfile.Print(specs[1]))
		}
		for kind, n := range want {
			if n > 0 {
				found[strings.Fields(kind)[0]]++
			}
		}
		if report.SearchLoss.Intended > 0 {
			intendedLosses++
		}
	}
	t.Logf("%d pairs of %d: %v, intended in %d", pairs, tried, found, intendedLosses)
	for _, kind := range append(countedWords, "requests", "unverified", "intended") {
		if testkit.Long() && found[kind] < pairs/100 {
			t.Errorf("%s: occurs only in %d of %d pairs", kind, found[kind], pairs)
		}
	}
}

// lossVisits returns random rows like the rows of an activity database.
func lossVisits(r *rand.Rand) (visits []activity.Totals) {
	tokens := []string{"AlphaBot", "AlphaBot-Image", "ZetaBot", "BetaBot"}
	identities := []activity.Identity{activity.Unverified, activity.Verified, activity.Impostor}[:1+r.IntN(3)]
	for range 60 {
		path, _, _ := strings.Cut(policytest.Path(r), "?")
		visits = append(visits, activity.Totals{
			Start: policytest.Now, Crawler: tokens[r.IntN(len(tokens))], Identity: identities[r.IntN(len(identities))],
			Host: []string{"www.example.com", "a.b.example.com", "b.example.com", "example.com", "example.org"}[r.IntN(5)],
			Path: oneSlash(path), Requests: 1 + r.Int64N(9),
		})
	}
	return visits
}

// reported returns the numbers of lost requests in a report, by kind of loss and crawler.
func reported(l *SearchLoss) map[string]int64 {
	n := map[string]int64{"requests": l.Requests, "intended": l.Intended, "unverified": l.Unverified}
	for _, c := range l.Crawlers {
		kind, _ := c.Loss.MarshalText()
		n[fmt.Sprintf("%s %s, intended %t", kind, c.Crawler, c.Intended)] += c.Requests
	}
	return n
}

// countedWords are the names of the kinds of loss that count against the search-loss limit.
var countedWords = []string{"blocked", "crawl", "index", "unavailable", "search", "snippet", "link", "limit"}

// counted computes the losses independently of package policy, row by row. Its result must equal the result of the
// function "reported" for the same two policies (specs), their robots.txt files (texts) and the same rows (visits).
// intended says whether the rules of the new policy are marked as intended.
func counted(specs [2]*policy.Spec, texts [2]func(string) string, visits []activity.Totals, intended bool) map[string]int64 {
	n := map[string]int64{"requests": 0, "intended": 0, "unverified": 0}
	verifiable := map[string]bool{}
	for _, v := range visits {
		if v.Identity != activity.Unverified {
			verifiable[v.Crawler] = true
		}
	}
	identities := map[activity.Identity]policy.Identity{activity.Unverified: policy.Unknown, activity.Verified: policy.Verified, activity.Impostor: policy.Impostor}
	for _, v := range visits {
		if v.Crawler == "BetaBot" || v.Identity == activity.Impostor {
			continue
		}
		q := policytest.Question{Token: v.Crawler, Identity: identities[v.Identity], Host: v.Host, Path: v.Path, Now: v.Start}
		ages := time.Date(4000, 1, 1, 0, 0, 0, 0, time.UTC) // a time when all dates have passed
		lost := policytest.Lost(specs, texts, q, ages)
		maps.DeleteFunc(lost, func(word string, _ bool) bool { return !slices.Contains(countedWords, word) })
		if len(lost) == 0 {
			continue
		}
		if v.Identity == activity.Unverified && verifiable[v.Crawler] {
			if !intended {
				n["unverified"] += v.Requests
			}
			continue
		}
		n[map[bool]string{false: "requests", true: "intended"}[intended]] += v.Requests
		for _, what := range slices.SortedFunc(maps.Keys(lost), cmp.Compare[string]) {
			n[fmt.Sprintf("%s %s, intended %t", what, v.Crawler, intended)] += v.Requests
		}
	}
	return n
}

// The rows of a database lack some data, such as the query of the requests. This is a gap only if the missing data
// could decide whether a search engine loses the requests under the new policy.
func TestSearchKeepsWithRowsThatLackData(t *testing.T) {
	t.Parallel()
	const in = "version: 1\nenforcement: block\nrules:\n  - for: everyone\n    allow: {crawl: /}\n"
	row := func(identity activity.Identity, host, path string, queries int64) activity.Totals {
		return activity.Totals{Start: time.Now().Add(-6 * 24 * time.Hour), Crawler: "Googlebot", Category: "search", Identity: identity, Host: host, Path: path, Requests: 7, Queries: queries}
	}
	const news, other, host = "/news/a", activity.OtherPath, "www.example.com"
	for _, c := range []struct {
		name string
		row  activity.Totals
		rule string
		want string // the name of the expected gap, "" if there is none, or "fails" if the claim fails
	}{
		{"folded, and it is blocked somewhere", row(activity.Verified, host, other, 0), "for: Googlebot\n    disallow: {crawl: /news/}", gapFolded},
		{"folded, and it is not to index something", row(activity.Verified, host, other, 0), "for: everyone\n    disallow: {index: /news/}", gapFolded},
		{"folded, of another crawler", row(activity.Verified, host, other, 0), "for: GPTBot\n    disallow: {crawl: /}", ""},
		{"folded, on another host", row(activity.Verified, host, other, 0), "for: Googlebot\n    hosts: dev.example.com\n    disallow: {crawl: /news/}", ""},
		{"folded, of an impostor", row(activity.Impostor, host, other, 0), "for: Googlebot\n    disallow: {crawl: /news/}", ""},
		{"folded, and intended", row(activity.Verified, host, other, 0), "for: Googlebot\n    disallow: {crawl: /news/}\n    intended: true", ""},
		{"the query decides", row(activity.Verified, host, news, 3), "for: Googlebot\n    disallow: {crawl: \"/news/*?print=\"}", gapQueries},
		{"the query of another path decides", row(activity.Verified, host, "/shop/", 3), "for: Googlebot\n    disallow: {crawl: \"/news/*?print=\"}", ""},
		{"the query does not matter", row(activity.Verified, host, news, 3), "for: Googlebot\n    disallow: {crawl: /news/}", "fails"},
		{"a name that only robots.txt has", row(activity.Verified, host, "/", 0), "for: Googlebot-News\n    disallow: {crawl: /}", "fails"},
		{"the engine's own rule", row(activity.Verified, host, other, 0), "for: everyone\n    robots-tag: [{paths: /news/, rules: noindex}]", gapFolded},
		{"an allow entry that has expired", row(activity.Verified, host, other, 0), "for: everyone\n    allow: {index: [{paths: /news/, time-limit: until-2020-01-31}]}", gapFolded},
		{"the query, in another case", row(activity.Verified, host, news, 3), "for: Googlebot\n    disallow: {crawl: \"/News/*?print=\"}", gapQueries},
		{"the activity database begins later", func() activity.Totals {
			v := row(activity.Verified, host, "/", 0)
			v.Start = time.Now().Add(-3 * 24 * time.Hour)
			return v
		}(), "for: Googlebot\n    disallow: {crawl: /news/}", ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			r, err := Run(t.Context(), Options{
				Old: load(t, "old.yaml", in), New: load(t, "new.yaml", in+"  - "+c.rule+"\n"), Since: time.Now().Add(-LossPeriod),
				Stored: func(_ context.Context, _, _ time.Time, each func(activity.Totals) error) (claim.Coverage, error) {
					for days := range 7 { // another search engine, which loses nothing, has requests on each day
						v := activity.Totals{Start: time.Now().Add(-time.Duration(days) * 24 * time.Hour), Crawler: "Bingbot", Category: "search", Identity: activity.Verified, Host: host, Path: "/robots.txt", Requests: 1}
						if v.Start.After(c.row.Start) {
							if err := each(v); err != nil {
								return claim.Coverage{}, err
							}
						}
					}
					return claim.Coverage{}, each(c.row)
				},
			})
			if err != nil {
				t.Fatal(err)
			}
			got := ""
			switch r.Search.Outcome() {
			case claim.Fails:
				got = "fails"
			case claim.CannotBeJudged:
				got = r.Search.Gaps()[0].Name
			case claim.Holds:
			}
			if got != c.want {
				t.Errorf("%s %q, want %q", got, r.Search.Lines(), c.want)
			}
			if accepted := r.Keeps(0, []string{gapFolded, gapQueries}); accepted.Holds() != (c.want != "fails") {
				t.Errorf("with the gaps accepted: %v", accepted.Outcome())
			}
		})
	}
}
