// SPDX-License-Identifier: Apache-2.0

package console

import (
	"strings"
	"testing"
	"time"

	"github.com/robotspolicy/caddy-robots-policy/activity"
	"github.com/robotspolicy/caddy-robots-policy/activity/store"
	"github.com/robotspolicy/caddy-robots-policy/internal/caddyside/recorders"
	"github.com/robotspolicy/caddy-robots-policy/policy"
)

// recorded records requests in a running console, and waits until the pages show them.
func recorded(t *testing.T, s *server, requests ...activity.Request) {
	t.Helper()
	before := int64(0)
	sum := func() int64 {
		rows, err := runningStore("").Totals(t.Context(), viewOf(t, s, "?days=7").query())
		if err != nil || len(rows) == 0 {
			return 0
		}
		return rows[0].Requests
	}
	for range 100 {
		if runningStore("") != nil {
			break
		}
		time.Sleep(50 * time.Millisecond)
	}
	before = sum()
	for _, v := range requests {
		recorders.Running().Record(v)
	}
	for range 100 {
		if sum() == before+int64(len(requests)) {
			return
		}
		time.Sleep(50 * time.Millisecond)
	}
	t.Fatalf("%d requests, want %d more than %d", sum(), len(requests), before)
}

// Requests of an unverified client that uses a crawler's name do not affect the claims about the verified crawler. A
// page says "all blocked" only if all violations were blocked, and "obeyed" only if the crawler had read a robots.txt.
func TestClaimsAreOfOneIdentity(t *testing.T) {
	s := startCaddyWith(t, testPolicy, t.TempDir())
	live := viewOf(t, s, "").Running.Publication()
	now := time.Now()
	begins := now.UTC().Truncate(time.Hour).Format("2 Jan 2006, 15:04") + " UTC"
	request := func(crawler, kind string, identity activity.Identity, decision activity.Decision, change func(*activity.Request)) activity.Request {
		v := activity.Request{
			Time: now, Host: "www.example.com", Path: "/a", Crawler: crawler, Category: kind, Identity: identity, Decision: decision,
			Rule: "r", Publication: live.ID[:12], Number: live.Number, Robots: "t2",
		}
		change(&v)
		return v
	}
	times := func(n int, v activity.Request) (all []activity.Request) {
		for range n {
			all = append(all, v)
		}
		return all
	}
	reads := func(version, publication, number, form string) func(*activity.Request) {
		return func(v *activity.Request) {
			v.Path, v.RobotsTxt, v.Robots, v.Publication, v.Number, v.Form = "/robots.txt", true, version, publication, number, form
		}
	}
	violates := func(v *activity.Request) { v.Violation = true }
	var all []activity.Request
	for _, r := range [][]activity.Request{
		// The verified Googlebot has read the previous version. An unverified Googlebot has read the newest version,
		// and requests a page that this version disallows.
		times(1, request("Googlebot", "search", activity.Verified, activity.Allowed, reads("t1", "000000000000", "0.1", "https"))),
		times(41, request("Googlebot", "search", activity.Verified, activity.Allowed, func(v *activity.Request) { v.Robots = "t1" })),
		times(1, request("Googlebot", "search", activity.Unverified, activity.Allowed, reads("t2", live.ID[:12], live.Number, "https"))),
		times(7, request("Googlebot", "search", activity.Unverified, activity.Allowed, violates)),
		// Bingbot has read the robots.txt for http. This file differs from the robots.txt for https only in the URLs of
		// sitemaps, so the console must not regard it as an older version.
		times(1, request("Bingbot", "search", activity.Verified, activity.Allowed, reads("t2 by http", live.ID[:12], live.Number, "http"))),
		// The number of blocked requests is higher than the number of violations, but some of the violations were
		// served.
		times(1, request("AhrefsBot", "seo", activity.Unverified, activity.Allowed, reads("t2", live.ID[:12], live.Number, "https"))),
		times(30, request("AhrefsBot", "seo", activity.Unverified, activity.Blocked, func(*activity.Request) {})),
		times(17, request("AhrefsBot", "seo", activity.Unverified, activity.Blocked, violates)),
		times(6, request("AhrefsBot", "seo", activity.Unverified, activity.WouldBlock, violates)),
		times(3, request("Bingbot", "search", activity.Verified, activity.Allowed, func(v *activity.Request) { v.Path = store.OtherPath })),
		// A fetch of robots.txt by an impostor is never recorded as a read.
		times(39, request("GPTBot", "ai-training", activity.Impostor, activity.Blocked, func(v *activity.Request) { v.Robots = "" })),
	} {
		all = append(all, r...)
	}
	recorded(t, s, all...)
	for page, c := range map[string]struct{ has, hasNot string }{
		"crawler?name=Googlebot":                     {"It came 42 times|its identity is proven. It obeyed every robots.txt that it had read|8 requests</a>", "violations,|8 times"},
		"crawler?name=Googlebot&identity=unverified": {"its identity is not proven|7 violations", "its identity is proven|obeyed"},
		"crawler?name=AhrefsBot":                     {"23 violations, 17 of them blocked", "all blocked|obeyed"},
		"crawler?name=GPTBot&identity=impostor":      {"39 requests", "obeyed"},
		"ask?agent=Googlebot&url=https://www.example.com/a": {
			"This page was requested under the name Googlebot since " + begins + ", when the stored requests begin|Verified: 41 requests.|Unverified: 7 requests, 7 of them after reading that the page is disallowed.", "48 requests|did not request",
		},
		"ask?agent=GPTBot&url=https://www.example.com/a":     {"Impostors: 39 requests.", "Unverified: |Verified: "},
		"ask?agent=GPTBot&url=https://www.example.com/else":  {"GPTBot did not request this page since " + begins + ", when the stored requests begin.", "in the last 7 days.|requested under"},
		"ask?agent=Bingbot&url=https://www.example.com/else": {"Bingbot is not known to have requested this page since " + begins + ", when the stored requests begin.|The paths of 3 requests of this crawler are not stored", "did not request"},
		"who-may?crawler=Googlebot&section=www.example.com/": {"<span class=\"v v-verified\">Verified</span> requests for this section, last 7 days</h3><dl class=\"kv small\"><dt><span class=\"v v-allowed\">Allowed</span></dt><dd class=\"n\">42</dd>", ""},
		"who-came": {
			"<span class=\"v v-verified\">Verified</span><span class=\"sub\">by address list or DNS|<span class=\"v v-unverified\">Unverified</span><span class=\"sub\">can be verified by address list or DNS",
			"<span class=\"v v-unverified\">Unverified</span><span class=\"sub\">by ",
		},
		"who-came.csv": {
			"Googlebot,Google,search,verified,42,42,0,0,0,0,0,0,|Googlebot,Google,search,unverified,8,8,0,0,0,0,7,0,|GPTBot,OpenAI,ai-training,impostor,39,0,0,0,39,0,0,39,", "",
		},
		"published": {
			"1 crawler has not read it yet|identity=verified&amp;name=Googlebot\">Googlebot</a> <span class=\"v v-verified\">Verified</span><span class=\"sub\">www.example.com</span></th><td><span class=\"tag warn\">old</span> v0.1",
			"Every crawler|name=Bingbot\">Bingbot</a> <span class=\"v v-verified\">Verified</span><span class=\"sub\">www.example.com</span></th><td><span class=\"tag warn\">old",
		},
	} {
		body := get(t, s, page).Body.String()
		for want := range strings.SplitSeq(c.has, "|") {
			if !strings.Contains(body, want) {
				t.Errorf("%s: no %q in %s", page, want, body)
			}
		}
		for not := range strings.SplitSeq(c.hasNot, "|") {
			if not != "" && strings.Contains(body, not) {
				t.Errorf("%s: %q", page, not)
			}
		}
	}
	v := viewOf(t, s, "")
	if n := v.sectionTraffic(&asker{Name: impostors, id: v.Running.Site.Policy.Crawler("Googlebot"), identity: policy.Impostor}, &section{Host: "www.example.com", Path: "/"}); n == nil || n.Blocked != 39 {
		t.Errorf("the row of all impostors counts %+v", n)
	}
}
