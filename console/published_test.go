// SPDX-License-Identifier: Apache-2.0

package console

import (
	"errors"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/robotspolicy/caddy-robots-policy/activity"
	"github.com/robotspolicy/caddy-robots-policy/activity/store"
	"github.com/robotspolicy/caddy-robots-policy/robotsserve"
	"github.com/robotspolicy/caddy-robots-policy/site"
)

// GPTBot has not read robots.txt, so no page says whether it obeyed. Bingbot has read only the robots.txt of the
// previous version, so no page says that it has read the robots.txt in force.
func TestReadersAreThoseOfTheText(t *testing.T) {
	const old, host = "version: 1\nrules:\n  - for: everyone\n    disallow: {crawl: /old/}\n", "www.example.com"
	dir, now := t.TempDir(), time.Now()
	s, err := store.Open(t.Context(), filepath.Join(dir, "activity"), store.Options{})
	if err != nil {
		t.Fatal(err)
	}
	visit := activity.Request{Time: now.Add(-time.Hour), Host: host, Crawler: "GPTBot", Category: "ai-training", Identity: activity.Unverified, Decision: activity.Allowed, Path: "/a"}
	s.Record(visit)
	before := robotsVersion(t, old)
	visit.Crawler, visit.Path, visit.RobotsTxt, visit.Robots = "Bingbot", "/robots.txt", true, before
	visit.Publication, visit.Number = "000000000000", "0.1"
	s.Record(visit)
	p := &activity.Publication{ID: strings.Repeat("0", 64), Number: "0.1", Name: "storage:robots/site.yaml", SHA256: strings.Repeat("0", 64), Time: now.Add(-2 * time.Hour), Text: old}
	if err := errors.Join(s.Publish(t.Context(), p, p.Time), s.Serve(t.Context(), p, site.Document{Host: host, Version: before, Text: "old"}, p.Time)); err != nil {
		t.Fatal(err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	pages := startCaddyWith(t, testPolicy, dir)
	for page, want := range map[string]string{
		"":                    `No violation in 1 request of crawlers that had read a robots.txt.</p><p class="small">1 request of crawlers cannot be judged`,
		"crawler?name=GPTBot": "Whether it obeyed robots.txt cannot be judged. The crawler had not read a robots.txt here",
	} {
		if body := get(t, pages, page).Body.String(); !strings.Contains(body, want) {
			t.Errorf("%s: no %q in %s", page, want, body)
		}
	}
	// The version in force is recorded within a second or two, even without requests.
	body := ""
	for range 100 {
		if body = get(t, pages, "published").Body.String(); strings.Contains(body, "v1 has been in force since") {
			break
		}
		time.Sleep(100 * time.Millisecond)
	}
	if !strings.Contains(body, "v1 has been in force since") || !strings.Contains(body, "Read by 1 crawler while it was in force") || strings.Count(body, "while it was in force") != 1 ||
		!strings.Contains(body, `<span class="tag warn">old</span> v0.1`) {
		t.Errorf("the text before counts as the one in force: %s", body)
	}
	if body := get(t, pages, "crawler?name=Bingbot").Body.String(); strings.Contains(body, ", the text in force") || strings.Contains(body, "has read no robots.txt") {
		t.Errorf("Bingbot has read the text before: %s", body)
	}
}

// robotsVersion returns the version of the robots.txt of a policy.
func robotsVersion(t *testing.T, text string) string {
	t.Helper()
	s, ds := site.Load("site.yaml", []byte(text))
	if s == nil {
		t.Fatal(ds)
	}
	f, _ := robotsserve.Render(s.Policy, "www.example.com", robotsserve.Options{})
	return robotsserve.Version(f.ETag)
}
