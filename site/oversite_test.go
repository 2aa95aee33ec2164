// SPDX-License-Identifier: Apache-2.0

package site_test

import (
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/robotspolicy/caddy-robots-policy/robotsrule"
	"github.com/robotspolicy/caddy-robots-policy/site"
)

// An allow entry with over-site removes restrictions that the site itself sets for a page. Different servers may read a
// request's path as different paths. The entry removes the restrictions only if it decides about each of these paths.
func TestOverSite(t *testing.T) {
	t.Parallel()
	s := load(t, `version: 1
rules:
  - for: everyone
    allow:
      index: [{paths: /news/, over-site: true}, {paths: /dated/, over-site: true, time-limit: until-2026-06-30}]
      present-snippet: {paths: /news/, over-site: true}
    disallow:
      index: /news/drafts/
  - for: everyone
    allow: {index: /news/plain/}
  - for: Googlebot
    disallow: {index: /news/other/}
  - for: everyone
    hosts: closed.example.com
    disallow: {index: /}
    intended: true
`)
	now := time.Date(2026, 6, 1, 12, 0, 0, 0, time.UTC)
	both := robotsrule.LiftIndex | robotsrule.LiftSnippet
	for _, tt := range []struct {
		host, path string
		want       robotsrule.Lift
	}{
		{"", "/news/a", both},
		{"", "/news/drafts/a", robotsrule.LiftSnippet},
		{"", "/news/plain/a", robotsrule.LiftSnippet},
		{"", "/news/other/a", both},
		{"", "/other", 0},
		{"", "/dated/a", robotsrule.LiftIndex},
		{"closed.example.com", "/news/a", robotsrule.LiftSnippet},
		{"", "/x/../news/a", 0},
		{"", "/news/%2e%2e/other", 0},
	} {
		pg := s.Page(tt.host, tt.path, now)
		got := robotsrule.Lift(0)
		if pg.Values != nil {
			got = pg.Values.Lift
		}
		if got != tt.want {
			t.Errorf("%s%s: lifts %d, want %d", tt.host, tt.path, got, tt.want)
		}
	}
	if pg := s.Page("", "/dated/a", now.AddDate(0, 2, 0)); pg.Values != nil && pg.Values.Lift != 0 {
		t.Error("an entry whose date has passed lifts")
	}
	e := s.Explain(site.Question{Agent: "Bingbot", URL: &url.URL{Scheme: "https", Host: "www.example.com", Path: "/news/a"}, Now: now})
	var out strings.Builder
	if err := e.WriteText(&out); err != nil {
		t.Fatal(err)
	}
	if text := out.String(); strings.Count(text, "which removes the site's own noindex and unavailable_after") != 2 {
		t.Errorf("explain does not say what is lifted:\n%s", text)
	}
}
