// SPDX-License-Identifier: Apache-2.0

package replay

import (
	"context"
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
	"github.com/robotspolicy/caddy-robots-policy/policy"
	"github.com/robotspolicy/caddy-robots-policy/policyfile"
	"github.com/robotspolicy/caddy-robots-policy/site"
)

// blindSpots are functions that hide a part of the traffic from the replay. Each returns the remaining rows, and the
// gaps that a database with these rows would report.
var blindSpots = map[string]func(r *rand.Rand, rows []activity.Totals) ([]activity.Totals, []claim.Gap){
	"none": func(_ *rand.Rand, rows []activity.Totals) ([]activity.Totals, []claim.Gap) { return rows, nil },
	"not recorded": func(r *rand.Rand, rows []activity.Totals) ([]activity.Totals, []claim.Gap) {
		left := slices.DeleteFunc(rows, func(activity.Totals) bool { return r.IntN(3) == 0 })
		return left, []claim.Gap{{Name: "not-recorded", What: "some requests could not be recorded"}}
	},
	"a server is silent": func(_ *rand.Rand, rows []activity.Totals) ([]activity.Totals, []claim.Gap) {
		return rows[:len(rows)/2], []claim.Gap{{Name: "unsent", What: "web-2 is silent"}}
	},
	"paths are no longer stored": func(r *rand.Rand, rows []activity.Totals) ([]activity.Totals, []claim.Gap) {
		return rows[r.IntN(len(rows)):], []claim.Gap{{Name: "unstored-paths", What: "paths are no longer stored"}}
	},
	"paths are summed up": func(r *rand.Rand, rows []activity.Totals) ([]activity.Totals, []claim.Gap) {
		for i := range rows {
			if r.IntN(2) == 0 {
				rows[i].Path = activity.OtherPath
			}
		}
		return rows, nil
	},
}

// The test makes random policies, random traffic and random blind spots. It compares the claim SearchKeeps with the
// truth, which independent code computes from the complete traffic.
func TestSearchKeepsAgainstTheTruth(t *testing.T) {
	testkit.Slow(t)
	t.Parallel()
	pairs := 20
	if testkit.Long() {
		pairs = 300
	}
	r := rand.New(rand.NewPCG(51, 1))
	spots := slices.Sorted(maps.Keys(blindSpots))
	outcomes, falseRed, hidden := map[string]int{}, 0, 0
	for n := 0; n < pairs; {
		intended := r.IntN(3) == 0
		specs := [2]*policy.Spec{lossPolicy(r, intended), lossPolicy(r, intended)}
		if r.IntN(4) == 0 {
			specs[1] = specs[0] // here nothing changes for search engines
		}
		var sites [2]*site.Site
		for i, spec := range specs {
			sites[i], _ = site.Load("random.yaml", policyfile.Print(spec))
		}
		if sites[0] == nil || sites[1] == nil {
			continue // a policy that blocks all search engines everywhere cannot be loaded
		}
		n++
		var texts [2]func(string) string
		for i := range texts {
			texts[i] = func(host string) string { text, _ := sites[i].Robots.Text(host); return text }
		}
		all := lossVisits(r)
		lost := counted(specs, texts, all, intended)["requests"] > 0
		spot := spots[n%len(spots)]
		rows, gaps := blindSpots[spot](r, slices.Clone(all))
		report, err := Run(t.Context(), Options{Old: sites[0], New: sites[1], Stored: func(_ context.Context, _, _ time.Time, each func(activity.Totals) error) (claim.Coverage, error) {
			for i := range rows {
				if err := each(rows[i]); err != nil {
					return claim.Coverage{}, err
				}
			}
			return claim.Coverage{Gaps: gaps}, nil
		}})
		if err != nil {
			t.Fatal(err)
		}
		outcome := report.Search.Outcome()
		outcomes[spot+": "+outcome.String()]++
		explain := func(what string) {
			t.Errorf("pair %d, %s: %s: %s\n%s\nold:\n%s\nnew:\n%s", n, spot, what, report.Search.Text(), strings.Join(report.Search.Lines(), "\n"), policyfile.Print(specs[0]), policyfile.Print(specs[1]))
		}
		if outcome == claim.CannotBeJudged && lost {
			hidden++ // without the gap, the claim would wrongly hold
		}
		switch {
		case outcome == claim.Holds && lost:
			explain("the claim wrongly holds")
		case outcome == claim.CannotBeJudged && spot == "none":
			explain("the claim cannot be judged, although no traffic was hidden")
		case outcome == claim.Fails && !lost && !losesWhole(specs, texts):
			if falseRed++; falseRed > pairs/50 {
				explain("the claim wrongly fails, for more than 2 % of the pairs")
			}
		}
	}
	t.Logf("%d pairs: %v; wrongly failing: %d; losses hidden by a gap: %d", pairs, outcomes, falseRed, hidden)
	if testkit.Long() && hidden == 0 {
		t.Error("no blind spot hid a loss, so this test shows nothing")
	}
}

// losesWhole reports whether a search engine loses nearly a whole host, according to the independent evaluator.
func losesWhole(specs [2]*policy.Spec, texts [2]func(string) string) bool {
	ages := time.Date(4000, 1, 1, 0, 0, 0, 0, time.UTC)
	for _, host := range []string{"www.example.com", "a.b.example.com", "b.example.com", "example.com", "example.org"} {
		for _, token := range []string{"AlphaBot", "AlphaBot-Image", "ZetaBot"} {
			for _, identity := range []policy.Identity{policy.Verified, policy.Unknown} {
				always := map[string]bool{}
				for i, c := range "abcdefghijklmnopqrstuvwxyz0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ" {
					q := policytest.Question{Token: token, Identity: identity, Host: host, Path: "/" + strings.Repeat(string(c), 3), Now: policytest.Now}
					lost := policytest.Lost(specs, texts, q, ages)
					maps.DeleteFunc(lost, func(word string, _ bool) bool { return !slices.Contains(countedWords, word) })
					if i == 0 {
						always = lost
					}
					maps.DeleteFunc(always, func(word string, _ bool) bool { return !lost[word] })
				}
				if len(always) > 0 {
					return true
				}
			}
		}
	}
	return false
}
