// SPDX-License-Identifier: Apache-2.0

package clients

import (
	"maps"
	"os/exec"
	"slices"
	"strings"
	"testing"

	"github.com/robotspolicy/caddy-robots-policy/integration_test/internal/browser"
	"github.com/robotspolicy/caddy-robots-policy/internal/testkit"
	"github.com/robotspolicy/caddy-robots-policy/policy"
)

// seen holds the parts of a page that a browser sees.
type seen struct {
	URL    string
	Status int
	Metas  [][2]string // meta tags in the head: their names in lower case, and their contents
	Rest   string      // the page without these tags
	Mode   string
	Images int // number of images that the browser could show
}

const look = `(() => {
	const metas = [...document.head.querySelectorAll(":scope > meta[name]")].filter(m => m.name !== "description");
	const said = metas.map(m => [m.name.toLowerCase(), m.content]);
	metas.forEach(m => m.remove());
	return {
		URL: location.pathname + location.search, Status: performance.getEntriesByType("navigation")[0].responseStatus, Metas: said,
		Rest: document.documentElement.outerHTML, Mode: document.compatMode, Images: [...document.images].filter(i => i.naturalWidth > 0).length,
	};
})()`

// browsed lists the pages that the browser visits under each policy. Some of them are disallowed for crawlers, and one
// page contains a robots meta tag of its author.
var browsed = []string{
	"/", "/news/bridge.html", "/premium/letters.html", "/drafts/tomorrow.html", "/admin/", "/search?q=bridge",
	"/documents/charter.html", "/archive/1926.html", "/v1/", "/products/?sort=price",
}

// metas lists the robots rules that the meta tags of some pages must contain. The list is written by hand. The keys of
// the outer map are a policy and a host. A key of the inner map is a path, and its rules are for everyone. Or it is the
// name of a crawler and a path, as in "googlebot /v1/", and its rules are for this crawler.
var metas = map[string]map[string]string{
	"policies/newspaper.yaml ": {
		"/": "max-snippet:200", "/drafts/tomorrow.html": "noindex, max-snippet:200", "/premium/letters.html": "noarchive, noimageindex, max-snippet:200",
		"/archive/1926.html": "noarchive, max-snippet:200", "/news/bridge.html": "max-snippet:200, max-image-preview:large",
	},
	"policies/shop.yaml ": {"/": "", "/products/?sort=price": "", "/premium/letters.html": "noimageindex, max-snippet:400"},
	"policies/archive.yaml ": {
		"/": "", "/documents/charter.html": "noarchive, max-snippet:160",
	},
	"policies/documentation.yaml ":                     {"/": "", "/v1/": "noindex", "/premium/letters.html": "max-snippet:400, noimageindex"},
	"policies/five-titles.yaml www.daily.example":      {"/": "", "/archive/1926.html": ""},
	"policies/five-titles.yaml www.magazine.example":   {"/": "", "/archive/1926.html": "noarchive, max-snippet:160"},
	"policies/five-titles.yaml www.journal.example":    {"/drafts/tomorrow.html": "noindex", "/archive/1926.html": ""},
	"policies/staging.yaml www.example.com":            {"/": "", "/drafts/tomorrow.html": ""},
	"policies/staging.yaml staging.example.com":        {"/": "noindex, nofollow", "/premium/letters.html": "noindex, nofollow, noimageindex, max-snippet:400"},
	"policies/staging.yaml deep.a.preview.example.com": {"/v1/": "noindex, nofollow"},
	"site-policy.yaml ":                                {"/drafts/tomorrow.html": "noindex, nofollow, max-snippet:250", "/premium/letters.html": "noarchive, noimageindex, max-snippet:250"},
}

// A browser is never blocked. Each page is the same as without the policy, except for the policy's meta tags in the
// head. The browser visits the pages in browsed under each policy. If ROBOTSPOLICY_LONG is set, it visits all pages.
func TestBrowser(t *testing.T) {
	if testing.Short() {
		t.Skip("starts a browser")
	}
	find(t, &crawler{name: "Chromium", version: []string{"chromium", "--version"}, install: "apt-get install chromium"})
	program, err := exec.LookPath("chromium")
	if err != nil {
		t.Fatal(err)
	}
	var scenes []scene
	settings := []setting{{}}
	for _, place := range slices.Sorted(maps.Keys(metas)) {
		name, host, _ := strings.Cut(place, " ")
		scenes = append(scenes, scene{policy: name, host: host})
		settings = append(settings, setting{policy: readExample(t, name)})
	}
	sites, stop := serve(t, settings)
	b := browser.Start(t, program)
	plain := map[string]seen{}
	for _, path := range browsed {
		var page seen
		b.Open(sites[0].named("")+path, look, &page)
		if page.Status != 200 || page.URL != path {
			t.Fatalf("without a policy: %s: %+v", path, page)
		}
		plain[path] = page
	}
	pages, byHand := 0, 0
	for i, s := range scenes {
		p := loadPolicy(t, s.policy, settings[i+1].policy).Policy
		for k, path := range browsed {
			if (i+k)%testkit.Rounds(4, 2) != 0 && !testkit.Long() {
				continue
			}
			var page seen
			b.Open(sites[i+1].named(s.host)+path, look, &page)
			pages++
			if was := plain[path]; page.Status != 200 || page.URL != was.URL || page.Rest != was.Rest || page.Mode != was.Mode || page.Images != was.Images {
				t.Errorf("%s: %s differs:\nwithout %+v\nwith    %+v", s, path, was, page)
			}
			says := sayings(t, page.Metas)["robots"]
			own := sayings(t, plain[path].Metas)["robots"]
			for u, rule := range map[policy.Usage]string{policy.Index: "noindex", policy.Follow: "nofollow", policy.Preserve: "noarchive"} {
				want := decide(p, unlisted, s.host, path, u).Verdict == policy.Disallowed || slices.Contains(own, rule)
				if slices.Contains(says, rule) != want {
					t.Errorf("%s: %s has %q; %s: %v, want %v", s, path, says, rule, !want, want)
				}
			}
			byHand += checkByHand(t, s, path, sayings(t, page.Metas))
		}
	}
	stop()
	requests := 0
	for i, s := range scenes {
		for _, e := range sites[i+1].read(t) {
			requests++
			if e.status != 200 && e.path != "/favicon.ico" {
				t.Errorf("%s: the browser got %d for %s", s, e.status, e.path)
			}
		}
	}
	t.Logf("%d pages under %d policies and hosts, %d requests, %d pages checked by hand-written expectations", pages, len(scenes), requests, byHand)
}

// checkByHand compares a page with the expectations written by hand, and returns how many of them it compared.
func checkByHand(t *testing.T, s scene, path string, says map[string][]string) (checked int) {
	t.Helper()
	for about, want := range metas[s.policy+" "+s.host] {
		name, of, named := strings.Cut(about, " ")
		if !named {
			name, of = "robots", about
		}
		if of != path {
			continue
		}
		checked++
		if want := sayings(t, [][2]string{{name, want}})[name]; !slices.Equal(says[name], want) {
			t.Errorf("%s: %s has for %s %q, want %q (by hand)", s, path, name, says[name], want)
		}
	}
	return checked
}

// sayings returns the sorted rules of meta tags, keyed by the names of the tags. Each name must occur only once.
func sayings(t *testing.T, metas [][2]string) map[string][]string {
	t.Helper()
	all := map[string][]string{}
	for _, m := range metas {
		if _, twice := all[m[0]]; twice {
			t.Errorf("two meta tags %s: %q", m[0], metas)
		}
		rules := []string{}
		for rule := range strings.SplitSeq(m[1], ",") {
			if rule = strings.ToLower(strings.TrimSpace(rule)); rule != "" {
				rules = append(rules, rule)
			}
		}
		slices.Sort(rules)
		all[m[0]] = rules
	}
	return all
}
