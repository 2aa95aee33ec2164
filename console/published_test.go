// SPDX-License-Identifier: Apache-2.0

package console

import (
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/robotspolicy/caddy-robots-policy/activity"
	"github.com/robotspolicy/caddy-robots-policy/activity/store"
	"github.com/robotspolicy/caddy-robots-policy/robotsserve"
	"github.com/robotspolicy/caddy-robots-policy/site"
)

// A version that came back was not in force all the time since it was first published.
func TestPublishedLeadOfAVersionThatCameBack(t *testing.T) {
	at := time.Date(2026, 11, 22, 22, 59, 0, 0, time.UTC)
	h := &history{policies: []numbered{
		{Version: store.Version{Number: "2", First: at.Add(5 * time.Minute)}},
		{Version: store.Version{Number: "1", First: at}, Live: true},
	}}
	v := &view{Running: new(running)}
	if got, want := v.publishedLead(&publishedData{}, h), "v1 is in force. It was first published on 22 Nov 2026, 22:59 UTC."; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

// What nobody can have seen is not claimed: without a read of robots.txt there is neither
// obedience nor a reader, and who read the text before has not read the one in force.
func TestReadersAreThoseOfTheText(t *testing.T) {
	const old, host = "version: 1\nrules:\n  - for: everyone\n    disallow: {crawl: /old/}\n", "www.example.com"
	dir, now := t.TempDir(), time.Now()
	s, err := store.Open(t.Context(), filepath.Join(dir, "activity"), store.Options{})
	if err != nil {
		t.Fatal(err)
	}
	visit := activity.Visit{Time: now.Add(-time.Hour), Host: host, Crawler: "GPTBot", Kind: "ai-training", Identity: activity.Claimed, Decision: activity.Allowed, Path: "/a"}
	s.Record(visit)
	before := robotsVersion(t, old)
	visit.Crawler, visit.Path, visit.RobotsTxt, visit.Robots = "Bingbot", "/robots.txt", true, before
	s.Record(visit)
	for _, v := range []store.Version{
		{Kind: store.PolicyVersion, Version: "old", Name: "storage:robots/site.yaml", First: now.Add(-2 * time.Hour), Text: old},
		{Kind: store.RobotsVersion, Version: before, Host: host, First: now.Add(-2 * time.Hour), Text: "old"},
	} {
		if err := s.Publish(t.Context(), v); err != nil {
			t.Fatal(err)
		}
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	pages := startCaddyWith(t, testPolicy, dir)
	for page, want := range map[string]string{
		"":                    `None by the 1 crawler that had read a robots.txt, of <data value="2">2</data> that came.`,
		"crawler?name=GPTBot": "Cannot be judged: it has read no robots.txt here",
	} {
		if body := get(t, pages, page).Body.String(); !strings.Contains(body, want) {
			t.Errorf("%s: no %q in %s", page, want, body)
		}
	}
	if body := get(t, pages, "published").Body.String(); strings.Contains(body, ", the current one") {
		t.Errorf("the text before counts as the one in force: %s", body)
	}
	if body := get(t, pages, "crawler?name=Bingbot").Body.String(); strings.Contains(body, ", the current one") || strings.Contains(body, "has read no robots.txt") {
		t.Errorf("Bingbot has read the text before: %s", body)
	}
}

// robotsVersion is the version of the robots.txt of a policy.
func robotsVersion(t *testing.T, text string) string {
	t.Helper()
	s, ds := site.Load("site.yaml", []byte(text))
	if s == nil {
		t.Fatal(ds)
	}
	f, _ := robotsserve.Render(s.Policy, "www.example.com", robotsserve.Options{})
	return robotsserve.Version(f.ETag)
}
