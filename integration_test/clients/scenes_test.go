// SPDX-License-Identifier: Apache-2.0

package clients

import (
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/robotspolicy/caddy-robots-policy/internal/testkit"
	"github.com/robotspolicy/caddy-robots-policy/policy"
	"github.com/robotspolicy/caddy-robots-policy/policyfile"
)

// scene is one crawler's visit to the site under one policy.
type scene struct {
	policy string   // file name below examples
	host   string   // the requested host; if empty, the server's address, because all hosts have the same policy
	agent  string   // the crawler's product token; empty for an unlisted one
	seeds  []string // pages where the crawler begins, in addition to the front page
	block  string   // settings of the directive

	// Some of the paths that the crawler requests, and some that it does not request, written by hand.
	asks, shuns []string
	behind      []string // paths that the crawler requests, unless it obeys nofollow in pages
}

// unlisted is a client that is not in the catalog, and that no policy names.
const unlisted = "ExampleReader"

var scenes = []scene{
	{
		policy: "policies/newspaper.yaml",
		asks:   []string{"/", "/news/bridge.html", "/premium/letters.html", "/drafts/sources.html", "/v1/"}, shuns: []string{"/admin/", "/internal/", "/api/weather.json", "/search?q=bridge"},
	},
	{
		policy: "policies/archive.yaml", agent: "GPTBot",
		asks: []string{"/", "/public/first-issue.html", "/cart"}, shuns: []string{"/documents/", "/documents/charter.html", "/photographs/regatta.png", "/checkout/"},
	},
	{
		policy: "policies/newspaper.yaml", agent: "Googlebot",
		asks: []string{"/", "/news/council.html", "/archive/1926.html"}, shuns: []string{"/admin/", "/search?q=help"},
	},
	{policy: "policies/newspaper.yaml", agent: "GPTBot", shuns: []string{"/", "/news/", "/style.css"}},
	{
		policy: "policies/shop.yaml",
		asks:   []string{"/products/", "/products/calendar.html", "/admin/"}, shuns: []string{"/cart", "/account", "/checkout/terms", "/products/?sort=price", "/products/?filter=paper", "/products/?page=2&sort=name"},
	},
	{
		policy: "policies/shop.yaml", agent: "CriteoBot",
		asks: []string{"/products/calendar.html", "/checkout/terms"}, shuns: []string{"/cart", "/account", "/checkout/"},
	},
	{policy: "policies/shop.yaml", agent: "AhrefsBot", shuns: []string{"/", "/products/"}},
	{
		policy: "policies/archive.yaml",
		asks:   []string{"/documents/charter.html", "/photographs/regatta.png", "/exhibition/"}, shuns: []string{"/checkout/", "/checkout/terms"},
	},
	{
		policy: "policies/documentation.yaml",
		asks:   []string{"/v1/", "/v2/", "/v3/", "/search", "/api/weather.json"}, shuns: []string{"/search?q=bridge", "/search?q=help"},
	},
	{policy: "policies/documentation.yaml", agent: "Bingbot", asks: []string{"/v2/", "/search"}, shuns: []string{"/search?q=help"}},
	{
		policy: "policies/five-titles.yaml", host: "www.daily.example",
		asks: []string{"/news/bridge.html", "/recipes/soup.html"}, shuns: []string{"/login", "/admin/", "/news/bridge.html?print=1"},
	},
	{policy: "policies/five-titles.yaml", host: "www.daily.example", agent: "GPTBot", seeds: []string{"/recipes/"}, shuns: []string{"/", "/recipes/"}},
	{
		policy: "policies/five-titles.yaml", host: "www.cookery.example", agent: "GPTBot", seeds: []string{"/recipes/"},
		asks: []string{"/recipes/", "/recipes/soup.html"}, shuns: []string{"/", "/news/", "/style.css", "/recipes/soup.html?print=1"},
	},
	{
		policy: "policies/five-titles.yaml", host: "www.journal.example", agent: "Googlebot",
		asks: []string{"/drafts/sources.html"}, shuns: []string{"/login", "/news/harbour.html?print=1"},
	},
	{policy: "policies/five-titles.yaml", host: "www.magazine.example", agent: "CCBot", shuns: []string{"/", "/archive/"}},
	{policy: "policies/five-titles.yaml", host: "www.classifieds.example", agent: "AhrefsBot", shuns: []string{"/", "/news/"}},
	{policy: "policies/staging.yaml", host: "www.example.com", asks: []string{"/admin/", "/search?q=help"}, shuns: []string{"/internal/"}},
	{policy: "policies/staging.yaml", host: "www.example.com", agent: "GPTBot", asks: []string{"/news/bridge.html"}, shuns: []string{"/internal/"}},
	{policy: "policies/staging.yaml", host: "staging.example.com", asks: []string{"/"}, behind: []string{"/news/", "/style.css"}, shuns: []string{"/internal/"}},
	{policy: "policies/staging.yaml", host: "a.preview.example.com", agent: "Googlebot", asks: []string{"/"}, behind: []string{"/news/bridge.html"}, shuns: []string{"/internal/"}},
	{policy: "policies/staging.yaml", host: "staging.example.com", agent: "GPTBot", shuns: []string{"/", "/news/"}},
	{policy: "site-policy.yaml", asks: []string{"/drafts/tomorrow.html", "/news/bridge.html"}, behind: []string{"/drafts/sources.html"}, shuns: []string{"/admin/", "/search?q=help", "/search?q=bridge"}},
	{policy: "site-policy.yaml", agent: "Googlebot", asks: []string{"/drafts/tomorrow.html", "/search?q=help"}, shuns: []string{"/admin/", "/search?q=bridge"}},
	{policy: "site-policy.yaml", agent: "CCBot", shuns: []string{"/", "/drafts/tomorrow.html"}},
}

// scenesOf returns the scenes of this run. In a short run, it returns only the first ones.
func scenesOf() []scene {
	if testing.Short() {
		return scenes[:2]
	}
	return scenes
}

// scenesFor returns the scenes that the nth crawler plays. In a long run, a crawler plays all scenes. Otherwise it
// plays every third scene, so that three consecutive crawlers together play all scenes.
func scenesFor(nth int) (some []scene) {
	if testing.Short() || testkit.Long() {
		return scenesOf()
	}
	for i, s := range scenes {
		if (i+nth)%3 == 0 {
			some = append(some, s)
		}
	}
	return some
}

func (s scene) String() string {
	name := s.agent
	if name == "" {
		name = "an unlisted client"
	}
	if s.host != "" {
		name += " on " + s.host
	}
	return name + " under " + s.policy
}

func readExample(t *testing.T, name string) string {
	t.Helper()
	text, err := os.ReadFile("../../examples/" + name)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

func loadPolicy(t *testing.T, name, text string) *policyfile.File {
	t.Helper()
	f, problems := policyfile.Load(name, []byte(text))
	for _, p := range problems {
		if p.Severity == policy.Error {
			t.Fatalf("%s: %+v", name, p)
		}
	}
	return f
}

// inPlaceOf changes the text of a policy: it writes the name of a crawler everywhere in place of the name in other. It
// also adds the new crawler to the section "crawlers", with the category of the old crawler.
func inPlaceOf(t *testing.T, text, other, crawler string) string {
	t.Helper()
	f := loadPolicy(t, other, text)
	kind := f.Policy.CrawlerInfo(f.Policy.Crawler(other)).Category
	text = strings.ReplaceAll(text, other, crawler)
	line := fmt.Sprintf("crawlers:\n  %s: {operator: Example, category: %s}\n", crawler, kind)
	if strings.Contains(text, "\ncrawlers:\n") {
		return strings.Replace(text, "crawlers:\n", line, 1)
	}
	return text + "\n" + line
}

// decide returns a policy's decision about a usage of a path for the crawler named agent.
func decide(p *policy.Policy, agent, host, path string, u policy.Usage) policy.Decision {
	return p.Decide(policy.Query{Crawler: p.Crawler(agent), Host: host, Path: path, Usage: u, Now: time.Now()})
}
