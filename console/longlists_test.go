// SPDX-License-Identifier: Apache-2.0

package console

import (
	"fmt"
	"html"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/robotspolicy/caddy-robots-policy/activity"
	"github.com/robotspolicy/caddy-robots-policy/activity/store"
	"github.com/robotspolicy/caddy-robots-policy/crawlers"
)

// maxPage is the maximum size of a page in bytes.
const maxPage = 60_000

var nextOnes = regexp.MustCompile(`href="\./([^"]*)">Next page`)

// Links lead to each of 1,500 unlisted clients and 500 hosts, the search finds each of them, and no page is too long.
func TestLongLists(t *testing.T) {
	const clients, hosts = 1500, 500
	dir, now := t.TempDir(), time.Now().UTC()
	s, err := store.Open(t.Context(), filepath.Join(dir, "activity"), store.Options{Queue: clients * 3})
	if err != nil {
		t.Fatal(err)
	}
	for i := range clients {
		s.Record(activity.Request{
			Time: now.Add(-time.Duration(i%48) * time.Hour), Host: fmt.Sprintf("h%03d.example.com", i%hosts), Path: "/", Crawler: fmt.Sprintf("client-%04d", i),
			Category: activity.CategoryUnlisted, Identity: activity.Unverified, Decision: activity.Allowed, Policy: sumOf(testPolicy)[:12], Status: 200,
		})
	}
	if dropped := s.Dropped(); dropped > 0 {
		t.Fatal(dropped)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	pages := startCaddyWith(t, testPolicy, dir)
	read := func(path string) string {
		t.Helper()
		w := get(t, pages, path)
		if w.Code != 200 || w.Body.Len() > maxPage {
			t.Fatalf("%s: status %d, %d bytes", path, w.Code, w.Body.Len())
		}
		return w.Body.String()
	}
	name := regexp.MustCompile(`<code>(client-\d{4})</code>`)
	seen, visited := map[string]bool{}, 0
	for path := "who-came"; path != ""; visited++ {
		body := read(path)
		for _, m := range name.FindAllStringSubmatch(body, -1) {
			seen[m[1]] = true
		}
		if path = ""; nextOnes.MatchString(body) {
			path = strings.TrimSuffix(html.UnescapeString(nextOnes.FindStringSubmatch(body)[1]), "#unlisted")
		}
	}
	t.Logf("%d clients on %d pages", len(seen), visited)
	if len(seen) != clients {
		t.Errorf("%d of %d clients are on %d pages", len(seen), clients, visited)
	}
	if body := read("who-came?q=client-1234"); len(name.FindAllString(body, -1)) != 1 || !strings.Contains(body, "<code>client-1234</code>") {
		t.Error("a search does not find a client")
	}
	body := read("")
	for i := range hosts {
		if !strings.Contains(body, fmt.Sprintf(`<option value="h%03d.example.com">`, i)) {
			t.Fatalf("host %d cannot be chosen", i)
		}
	}
	if body := read("who-came?host=h321.example.com"); len(name.FindAllString(body, -1)) != clients/hosts {
		t.Errorf("a host does not show its own clients: %v", name.FindAllString(body, -1))
	}
}

// Links lead to each of 150 crawlers and to the robots.txt that each has read. If the policy has 12 versions, a link on
// the page leads to all of them.
func TestLongListsOfCrawlers(t *testing.T) {
	const came, versions = 150, 12
	catalog, err := crawlers.Default()
	if err != nil {
		t.Fatal(err)
	}
	dir, now := t.TempDir(), time.Now().UTC()
	s, err := store.Open(t.Context(), filepath.Join(dir, "activity"), store.Options{})
	if err != nil {
		t.Fatal(err)
	}
	for i, c := range catalog.All()[:came] {
		s.Record(activity.Request{
			Time: now.Add(-time.Duration(i) * time.Minute), Host: "www.example.com", Path: "/robots.txt", Crawler: c.Token, Category: string(c.Category), Identity: activity.Unverified,
			Decision: activity.Allowed, Status: 200, RobotsTxt: true, Robots: "an older text",
		})
	}
	for i := range versions {
		text := fmt.Sprintf("version: 1 # %d\n", i)
		if err := s.Publish(t.Context(), &activity.Publication{ID: sumOf(text), SHA256: sumOf(text), Number: fmt.Sprint(i), Name: "storage:robots/site.yaml", Text: text}, now.AddDate(0, 0, i-versions)); err != nil {
			t.Fatal(err)
		}
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	pages := startCaddyWith(t, testPolicy, dir)
	rows := regexp.MustCompile(`<tr><th scope="row"><a href="\./crawler\?(?:days=90&amp;)?identity=unverified&amp;name=([^"]*)">`)
	for first, size := range map[string]int{"who-came?days=90": maxRows, "published": maxReaders} {
		seen, visited := map[string]bool{}, 0
		for path := first; path != "" && visited < 10; visited++ {
			body := get(t, pages, path).Body.String()
			found := rows.FindAllStringSubmatch(body, -1)
			if len(found) > size || len(body) > maxPage {
				t.Errorf("%s: %d rows, %d bytes", path, len(found), len(body))
			}
			for _, m := range found {
				seen[m[1]] = true
			}
			if path = ""; nextOnes.MatchString(body) {
				path = html.UnescapeString(nextOnes.FindStringSubmatch(body)[1])
			}
		}
		if len(seen) != came || visited != (came+size-1)/size {
			t.Errorf("%s: %d of %d crawlers on %d pages", first, len(seen), came, visited)
		}
	}
	older := regexp.MustCompile(`href="\./(published\?all=1)">(\d+) older versions`).FindStringSubmatch(get(t, pages, "published").Body.String())
	if len(older) == 0 {
		t.Fatal("no link to the older versions")
	}
	if body := get(t, pages, older[1]).Body.String(); strings.Count(body, "Open as a draft, and compare") < versions || strings.Contains(body, "older version") {
		t.Errorf("the older versions are not there: %s", body)
	}
}
