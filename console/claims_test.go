// SPDX-License-Identifier: Apache-2.0

package console

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/robotspolicy/caddy-robots-policy/activity"
	"github.com/robotspolicy/caddy-robots-policy/activity/store"
	"github.com/robotspolicy/caddy-robots-policy/claim"
	"github.com/robotspolicy/caddy-robots-policy/internal/caddyside/recorders"
)

// lacking is a store whose recorded requests have gaps.
type lacking struct {
	store.Queries
	gaps []claim.Gap
}

func (l lacking) Coverage(context.Context, time.Time, time.Time) (claim.Coverage, error) {
	return claim.Coverage{Gaps: l.gaps}, nil
}

// If recorded requests are missing, no page says that everything is fine. Requests are missing if they were not
// recorded, or if another server of the fleet is silent, has not sent all of its rows, or has a wrong clock. Users who
// may see only one site do not see the names of servers.
func TestNothingReassuresAboveAGap(t *testing.T) {
	s := startCaddyWith(t, testPolicy, t.TempDir())
	recorded(t, s, activity.Request{Time: time.Now(), Host: "www.example.com", Path: "/", Crawler: "Googlebot", Category: "search", Identity: activity.Verified, Decision: activity.Allowed})
	whole := lacking{runningStore(""), nil}
	if body, err := pageWith(t, s, whole, "", nil); err != nil || !strings.Contains(body, "No alert and no warning. The checks are listed below.") || !strings.Contains(body, "None was blocked, except by rules") {
		t.Fatalf("without a gap: %v, %s", err, body)
	}
	for _, g := range []claim.Gap{
		{Name: store.GapNotRecorded, What: "500,000 requests could not be recorded", Close: "replay the access log"},
		{Name: store.GapSilentServer, What: "the server node-7 of the fleet has been silent for 1m0s", Close: "start it"},
		{Name: store.GapUnsentRows, What: "the server node-7 of the fleet has not sent all", Close: "wait"},
		{Name: store.GapClocksApart, What: "the clock of the server node-7 is wrong", Close: "set its clock"},
	} {
		store := lacking{runningStore(""), []claim.Gap{g}}
		for page, not := range map[string]string{"": "No alert and no warning|v-verified\">1 request of verified search engines|No request is missing", "health": "No request is missing", "published": "Every crawler that reads robots.txt has read the newest version.</p>", "ask?agent=GPTBot&url=/news/": "GPTBot did not request this page", "crawler?name=GPTBot": "did not come"} {
			body, err := pageWith(t, s, store, page, nil)
			if err != nil || !strings.Contains(strings.ToLower(body), strings.ToLower(g.What)) && page != "published" {
				t.Errorf("%s: %v: nothing about %q in %s", page, err, g.What, body)
			}
			for word := range strings.SplitSeq(not, "|") {
				if strings.Contains(body, word) {
					t.Errorf("%s: %q beside %q", page, word, g.What)
				}
			}
		}
		v := viewOf(t, s, "")
		for _, test := range []struct {
			store lacking
			want  claim.Outcome
		}{{whole, claim.Holds}, {store, claim.CannotBeJudged}} {
			v.store = test.store
			for _, c := range []claim.Claim{v.judgeReaders(3, 0, v.Now), v.judgeBehavior(behavior{judged: 5})} {
				if c.Outcome() != test.want {
					t.Errorf("%s, with %q: %v, want %v", c.ID(), g.Name, c.Outcome(), test.want)
				}
			}
		}
		if c := v.judgeReaders(3, 1, v.Now.AddDate(0, 0, -1)); c.Outcome() != claim.Fails || !strings.HasSuffix(c.Text(), " as far as this is known") {
			t.Errorf("%s, with %q: %q accuses", c.ID(), g.Name, c.Text())
		}
		v.store, v.may = store, []string{"www.example.com"}
		if text := v.Unseen(); text == "" || strings.Contains(text, "node-7") {
			t.Errorf("a site is told: %q", text)
		}
	}
}

// The metrics contain the claims that the pages show. In contrast to the pages, the metrics are always about this
// server only, even if it belongs to a fleet.
func TestClaimsForMetrics(t *testing.T) {
	s := startCaddyWith(t, testPolicy, t.TempDir())
	recorded(t, s, activity.Request{Time: time.Now(), Host: "www.example.com", Path: "/", Crawler: "Googlebot", Category: "search", Identity: activity.Verified, Decision: activity.Allowed})
	judged := func() claim.Claim { return runningActivity().Claims(t.Context())[0] }
	if c := judged(); c.ID() != "none-unrecorded" || !c.Holds() {
		t.Errorf("%s: %v: %s", c.ID(), c.Outcome(), c.Text())
	}
	if store, ok := runningActivity().store.Get(); ok {
		store.Missed(7)
	}
	recorded(t, s, activity.Request{Time: time.Now(), Host: "www.example.com", Path: "/", Crawler: "Googlebot", Category: "search", Identity: activity.Verified, Decision: activity.Allowed})
	if c := judged(); c.Outcome() != claim.CannotBeJudged || !strings.Contains(c.Missing(), "7 requests could not be recorded") {
		t.Errorf("with requests that were not recorded: %v: %s", c.Outcome(), c.Missing())
	}
}

// If the data of a claim could not be read, the claim cannot be judged.
func TestClaimsOfWhatCannotBeRead(t *testing.T) {
	s := startCaddyWith(t, testPolicy, t.TempDir())
	v := viewOf(t, s, "")
	v.store = broken{}
	for _, c := range []claim.Claim{v.judgeReaders(3, 0, v.Now), v.judgeBehavior(behavior{judged: 5}), v.recorded(), claim.Judge(noAlarm, alarmSubject{}), claim.Judge(noneBlocked, blockedSubject{}), claim.Judge(ready, readySubject{}), claim.Judge(inForce, inForceSubject{}), recorders.Look{}.Whole()} {
		if c.Outcome() != claim.CannotBeJudged {
			t.Errorf("%s, about what was not read: %v: %s", c.ID(), c.Outcome(), c.Text())
		}
	}
	v = viewOf(t, s, "")
	v.store = withoutPublications{runningStore("")}
	for _, c := range v.inOrder() {
		if c.ID() == "in-force" && c.Holds() {
			t.Errorf("with a history that cannot be read: %s", c.Text())
		}
	}
}

// Two rules without names are recorded under the same name, but only the first has "intended". Blocked requests of a
// search engine are reported only if the second rule blocked them.
func TestIntendedIsTheRuleItself(t *testing.T) {
	const rules = `version: 1
rules:
  - {for: everyone, disallow: {crawl: /staging/}, enforce: block, intended: [blocks-search]}
  - {for: everyone, disallow: {crawl: /shop/}, enforce: block}
`
	s := startCaddyWith(t, rules, t.TempDir())
	blocked := func(path string) activity.Request {
		return activity.Request{
			Time: time.Now(), Host: "www.example.com", Path: path, Crawler: "Googlebot", Category: "search", Identity: activity.Verified,
			Decision: activity.Blocked, Rule: "everyone",
		}
	}
	recorded(t, s, blocked("/staging/a"), blocked("/staging/b"), blocked("/staging/b"))
	if body := get(t, s, "").Body.String(); strings.Contains(body, "is being blocked") || !strings.Contains(body, "None was blocked, except by rules") {
		t.Errorf("what is intended: %s", body)
	}
	recorded(t, s, blocked("/shop/a"), blocked("/shop/b"))
	if body := get(t, s, "").Body.String(); !strings.Contains(body, "In the last 24 hours 2 requests of verified Googlebot were blocked") || strings.Contains(body, "None was blocked, except") {
		t.Errorf("what is not intended: %s", body)
	}
}

// If a server of the fleet is silent, the Health page does not claim that the fleet database has all requests of this
// server.
func TestSentAll(t *testing.T) {
	for _, c := range []struct {
		node store.Node
		want claim.Outcome
		says string
	}{
		{store.Node{Every: 30 * time.Second, Heard: time.Second}, claim.Holds, "yes"},
		{store.Node{Every: 30 * time.Second, Heard: time.Second, Behind: time.Hour}, claim.Fails, "up to 60 minutes ago"},
		{store.Node{Every: 30 * time.Second, Heard: time.Hour}, claim.CannotBeJudged, "not known, because the server has stopped sending totals"},
	} {
		if got := (fleetNode{c.node}).Sent(); got.Outcome() != c.want || got.Text() != c.says {
			t.Errorf("%+v: %v: %s", c.node, got.Outcome(), got.Text())
		}
	}
}
