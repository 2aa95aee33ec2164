// SPDX-License-Identifier: Apache-2.0

package replay

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/robotspolicy/caddy-robots-policy/activity"
	"github.com/robotspolicy/caddy-robots-policy/claim"
)

// If search engines lose paths under a policy, the claim fails only if the traffic has requests for such paths, or if
// an engine loses nearly a whole host.
func TestSearchKeeps(t *testing.T) {
	t.Parallel()
	const open = "version: 1\nenforcement: off\nrules:\n  - for: everyone\n    allow: {crawl: /}\n"
	rule := func(text string) string { return open + "  - " + strings.ReplaceAll(text, "\n", "\n    ") + "\n" }
	dropped := claim.Gap{Name: "not-recorded", What: "500,000 requests could not be recorded", Count: 500_000}
	for _, c := range []struct {
		name     string
		old, new string // "" for no policy
		gaps     []claim.Gap
		traffic  bool
		limit    int64
		want     claim.Outcome
		says     string
	}{
		{"every page noindex after search was disallowed", rule("for: everyone\ndisallow: {search: /}"), rule("for: everyone\ndisallow: {index: /}"), nil, true, 0, claim.Fails, "the whole site is now kept out of the index"},
		{"a user-agent that catches Googlebot", open, rule("for: Scraper\ndisallow: {crawl: /news/}\nenforce: block") + "crawlers:\n  Scraper: {user-agent: Googlebot/2.1}\n", nil, true, 0, claim.Fails, "Googlebot"},
		{"the first policy disallows everything", "", "version: 1\nrules:\n  - for: everyone\n    disallow: {crawl: /}\n    enforce: off\n", nil, false, 0, claim.Fails, "nearly all pages of a host"},
		{"the first policy keeps everything out of the index", "", rule("for: everyone\ndisallow: {index: /}"), nil, false, 0, claim.Fails, "nearly all pages of a host"},
		{"the first policy closes a section", "", rule("for: everyone\ndisallow: {crawl: /admin/}"), nil, false, 0, claim.Holds, "the policy has this effect: /admin/"},
		{"the first policy closes a staging host to the index", "", rule("for: everyone\nhosts: dev.example.com\ndisallow: {index: /}"), nil, false, 0, claim.Holds, "apart from hosts that a rule keeps out of search results: dev.example.com"},
		{"the first policy blocks a host", "", rule("for: everyone\nhosts: dev.example.com\ndisallow: {crawl: /}"), nil, false, 0, claim.Fails, "dev.example.com"},
		{"an engine that never came loses the whole site", open, rule("for: Qwantbot\ndisallow: {crawl: /}\nenforce: off"), nil, true, 1000, claim.Fails, "Qwantbot"},
		{"an engine that never came loses a section", open, rule("for: Qwantbot\ndisallow: {crawl: /x/}"), nil, true, 0, claim.Holds, "not requested in this traffic: /x/"},
		{"an engine of AI search loses the whole site", open, rule("for: OAI-SearchBot\ndisallow: {crawl: /}"), nil, true, 0, claim.Holds, "AI search: the whole site is now disallowed for OAI-SearchBot"},
		{"requests within the limit", open, rule("for: Googlebot\ndisallow: {crawl: /news/}"), nil, true, 7, claim.Holds, "lose 7 requests"},
		{"requests beyond the limit", open, rule("for: Googlebot\ndisallow: {crawl: /news/}"), nil, true, 6, claim.Fails, "the limit is 6"},
		{"requests that were not recorded, and a loss", open, rule("for: Googlebot\ndisallow: {crawl: /shop/}"), []claim.Gap{dropped}, true, 0, claim.CannotBeJudged, "500,000 requests could not be recorded"},
		{"requests that were not recorded, and no loss", open, rule("for: GPTBot\ndisallow: {crawl: /}"), []claim.Gap{dropped}, true, 0, claim.Holds, "none of their requests"},
		{"a host that the whole site is taken from was lost before", rule("for: everyone\ndisallow: {crawl: /}"), rule("for: everyone\ndisallow: {crawl: /}\nname: again"), nil, true, 0, claim.Holds, "none"},
		{"intended", open, rule("for: Googlebot\ndisallow: {crawl: /}\nintended: true"), nil, true, 0, claim.Holds, "whose loss is intended"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			now := load(t, "new.yaml", c.new)
			var got claim.Claim
			if c.old == "" {
				got = Keeps(nil, now, nil, nil)
			} else if old := load(t, "old.yaml", c.old); !c.traffic {
				got = Keeps(old, now, nil, nil)
			} else {
				r, err := Run(t.Context(), Options{Old: old, New: now, Stored: func(_ context.Context, _, _ time.Time, each func(activity.Totals) error) (claim.Coverage, error) {
					return claim.Coverage{Gaps: c.gaps}, each(activity.Totals{
						Start: time.Now(), Crawler: "Googlebot", Category: "search", Identity: activity.Verified, Host: "www.example.com", Path: "/news/a", Requests: 7,
					})
				}})
				if err != nil {
					t.Fatal(err)
				}
				got = r.Keeps(c.limit, nil)
			}
			if text := strings.Join(append([]string{got.Text()}, got.Lines()...), "\n"); got.Outcome() != c.want || !strings.Contains(text, c.says) {
				t.Errorf("%v, want %v and %q:\n%s", got.Outcome(), c.want, c.says, text)
			}
		})
	}
}
