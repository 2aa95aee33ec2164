// SPDX-License-Identifier: Apache-2.0

package clients

import (
	"maps"
	"slices"
	"strings"
	"testing"
)

// rude is wget when it ignores robots.txt and uses the names of other crawlers.
var rude = crawler{name: "wget", version: []string{"wget", "--version"}, install: "apt-get install wget", browserLike: true, proxy: true}

// refusals lists, written by hand, the statuses of some answers to clients that ignore robots.txt.
var refusals = []struct {
	policy, host, agent, path string
	status                    int
}{
	{"policies/newspaper.yaml", "", "GPTBot", "/", 403},
	{"policies/newspaper.yaml", "", "GPTBot", "/robots.txt", 200},
	{"policies/newspaper.yaml", "", "GPTBot", "/images/bridge.png", 403},
	{"policies/newspaper.yaml", "", "Googlebot", "/admin/", 200}, // robots.txt disallows it, but the server does not block it
	{"policies/newspaper.yaml", "", "", "/admin/", 200},
	{"policies/archive.yaml", "", "GPTBot", "/documents/charter.html", 402},
	{"policies/archive.yaml", "", "GPTBot", "/photographs/regatta.png", 402},
	{"policies/archive.yaml", "", "GPTBot", "/public/first-issue.html", 200},
	{"policies/archive.yaml", "", "GPTBot", "/checkout/terms", 200}, // the rule only logs
	{"policies/archive.yaml", "", "GPTBot", "/robots.txt", 200},
	{"policies/shop.yaml", "", "AhrefsBot", "/products/", 200}, // only logged
	{"policies/five-titles.yaml", "www.daily.example", "GPTBot", "/recipes/", 403},
	{"policies/five-titles.yaml", "www.cookery.example", "GPTBot", "/recipes/", 200},
	{"policies/five-titles.yaml", "www.cookery.example", "GPTBot", "/", 403},
	{"policies/five-titles.yaml", "www.magazine.example", "CCBot", "/archive/1926.html", 403},
	{"policies/five-titles.yaml", "www.classifieds.example", "AhrefsBot", "/", 403},
	{"policies/staging.yaml", "www.example.com", "GPTBot", "/", 200},
	{"policies/staging.yaml", "staging.example.com", "GPTBot", "/", 403},
	{"policies/staging.yaml", "staging.example.com", "GPTBot", "/robots.txt", 200},
	{"policies/staging.yaml", "a.preview.example.com", "Googlebot", "/", 200},
	{"site-policy.yaml", "", "CCBot", "/news/bridge.html", 403},
}

// A client that ignores robots.txt is blocked exactly on the pages where the policy blocks it. It gets all other pages,
// and it always gets robots.txt.
func TestRefusals(t *testing.T) {
	find(t, &rude)
	paths := append(slices.Sorted(maps.Keys(linksOf(t))), "/robots.txt")
	all, stop := visits(t, &rude, scenesOf())
	for _, v := range all {
		j := v.job()
		base := strings.TrimSuffix(j.URLs[0], "/")
		j.URLs = nil
		for _, path := range paths {
			j.URLs = append(j.URLs, base+path)
		}
		wgetAs(t, j, "-e", "robots=off", "-O", "/dev/null")
	}
	stop()
	counts, byHand := map[int]int{}, 0
	for _, v := range all {
		got := map[string]int{}
		for _, e := range v.site.read(t) {
			if got[e.path] != 0 {
				t.Errorf("%s: %s was requested twice", v, e.path)
			}
			got[e.path] = e.status
			counts[e.status]++
		}
		for _, path := range paths {
			if got[path] != v.status(path) {
				t.Errorf("%s: %s was answered with %d, not %d", v, path, got[path], v.status(path))
			}
		}
		for _, r := range refusals {
			if r.policy == v.scene.policy && r.host == v.host && r.agent == v.agent {
				byHand++
				if got[r.path] != r.status {
					t.Errorf("%s: %s was answered with %d, want %d (by hand)", v, r.path, got[r.path], r.status)
				}
			}
		}
	}
	if !testing.Short() && byHand != len(refusals) {
		t.Errorf("%d of %d answers that are written by hand occurred", byHand, len(refusals))
	}
	t.Logf("answers by status: %v", counts)
}

// A crawl that ignores robots.txt ends at the blocked pages, because it does not get their links.
func TestRefusedCrawl(t *testing.T) {
	find(t, &rude)
	all, stop := visits(t, &rude, []scene{
		{policy: "policies/newspaper.yaml", agent: "GPTBot"},
		{policy: "policies/archive.yaml", agent: "GPTBot"},
		{policy: "policies/newspaper.yaml"},
	})
	for _, v := range all {
		wgetAs(t, v.job(), "-r", "-l", "10", "-e", "robots=off", "--delete-after", "-P", t.TempDir())
	}
	stop()
	links := linksOf(t)
	for i, want := range []map[int]bool{{403: true}, {200: true, 402: true}, {200: true}} {
		got, reached := map[int]bool{}, map[string]bool{}
		for _, e := range all[i].site.read(t) {
			got[e.status] = true
			reached[e.path] = e.status == 200
		}
		if !maps.Equal(got, want) {
			t.Errorf("%s: statuses %v, want %v", all[i], got, want)
		}
		if i == 2 {
			for path := range links {
				if !strings.HasSuffix(path, "sitemap.xml") && !reached[path] {
					t.Errorf("%s: did not request %s", all[i], path)
				}
			}
		}
	}
}
