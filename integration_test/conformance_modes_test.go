// SPDX-License-Identifier: Apache-2.0

package integration_test

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
)

const (
	googleAgent = "Mozilla/5.0 (compatible; Googlebot/2.1; +http://www.google.com/bot.html)"
	firefox     = "Mozilla/5.0 (X11; Linux x86_64; rv:143.0) Gecko/20100101 Firefox/143.0"
)

// exemptPolicy exempts one crawler from the rules for everyone.
const exemptPolicy = `version: 1
rules:
  - for: everyone
    disallow:
      index: /drafts/
      train-ai: /
  - for: Googlebot
    allow:
      index: /drafts/
    disallow:
      follow: /drafts/
    robots-tag: notranslate
`

// Headers for all crawlers cannot express that one crawler is exempt from a rule. With tailored headers, each crawler
// gets its own rules in the headers and in the page. The field Vary tells caches that the response depends on the
// crawler.
func TestTailored(t *testing.T) { bothDoors(t, testTailored) }

func testTailored(t *testing.T, d door) {
	s := d.startSites(t, exemptPolicy, http.HandlerFunc(pageUpstream), map[string]string{
		"each.test":   "robots_policy POLICY {\nheaders tailored\n}\nreverse_proxy UPSTREAM",
		"some.test":   "encode gzip\nrobots_policy POLICY {\nheaders tailored x-robots-tag\nmeta off\n}\nreverse_proxy UPSTREAM",
		"shared.test": "robots_policy POLICY\nreverse_proxy UPSTREAM",
	})
	for _, c := range []struct {
		host, agent string
		tag, x      string
		elements    string
	}{
		{"each.test", googleAgent, "*;nofollow;notranslate", "nofollow, notranslate", `<meta name="robots" content="nofollow, notranslate">`},
		{"each.test", "bingbot/2.0", "*;noindex", "noindex", `<meta name="robots" content="noindex">`},
		{"each.test", firefox, "*;noindex", "noindex", `<meta name="robots" content="noindex">`},
		{"some.test", googleAgent, "", "nofollow, notranslate", ""},
		{"some.test", firefox, "", "noindex", ""},
		// Other crawlers follow Googlebot's group. The headers name these crawlers in addition to Googlebot, because
		// they are not documented to obey rules for the name Googlebot in headers. Meta tags do not name them, because
		// they are not documented to read meta tags with their own names.
		{
			"shared.test", googleAgent, "*;noindex, amazonbot;noarchive, google-inspectiontool;nofollow;notranslate, googlebot;nofollow;notranslate, googlebot-image;nofollow;notranslate, googlebot-mobile;nofollow;notranslate, googlebot-video;nofollow;notranslate", "noindex",
			`<meta name="robots" content="noindex"><meta name="Googlebot" content="nofollow, notranslate"><meta name="Amazonbot" content="noarchive">`,
		},
	} {
		if s.lacks(c.host) {
			continue
		}
		for _, method := range []string{"GET", "HEAD"} {
			r := s.do(method, "/drafts/x", "Host", c.host, "User-Agent", c.agent, "Etag", `"v1"`)
			if r.Header.Get("Robots-Tag") != c.tag || r.Header.Get("X-Robots-Tag") != c.x {
				t.Errorf("%s %s to %s: %v", method, c.host, c.agent, r.Header)
			}
			if method == "GET" && strings.Replace(r.body, c.elements, "", 1) != page("") {
				t.Errorf("%s to %s: %q", c.host, c.agent, r.body)
			}
			vary := strings.Join(r.Header.Values("Vary"), ", ")
			if (strings.Count(vary, "User-Agent") == 1) != (c.host != "shared.test") || !strings.Contains(vary, "Cookie") {
				t.Errorf("%s to %s: Vary: %q", c.host, c.agent, vary)
			}
		}
	}
	// If the policy has no rule for a path, the answer has the field Vary nevertheless. Without it, a cache could
	// conclude that all crawlers get the same answers on this site.
	if r := s.get("/open/x", "Host", "each.test"); r.Header.Get("Vary") != "Cookie, User-Agent" && !slices.Contains(r.Header.Values("Vary"), "User-Agent") {
		t.Errorf("Vary: %q", r.Header.Values("Vary"))
	}
	// Each crawler gets its own entity tag.
	mine := s.get("/drafts/x", "Host", "each.test", "User-Agent", googleAgent, "Etag", `"v1"`).Header.Get("Etag")
	for agent, want := range map[string]int{googleAgent: 304, firefox: 200, "bingbot/2.0": 200} {
		if r := s.get("/drafts/x", "Host", "each.test", "User-Agent", agent, "Etag", `"v1"`, "If-None-Match", mine); r.StatusCode != want {
			t.Errorf("%s asks with the entity tag %s of Googlebot: %s, want %d", agent, mine, r.Status, want)
		}
	}
}

// Each channel can be switched off without affecting the others.
func TestChannelsOff(t *testing.T) { bothDoors(t, testChannelsOff) }

func testChannelsOff(t *testing.T, d door) {
	own := `<meta name="robots" content="index, max-snippet:10"><meta name="googlebot" content="noarchive">`
	sites := map[string]string{}
	for _, headers := range []string{"off", "robots-tag", "x-robots-tag content-usage"} {
		for _, meta := range []string{"off", "merge", "replace"} {
			sites[siteName(headers+" "+meta)] = "robots_policy POLICY {\nheaders " + headers + "\nmeta " + meta + "\n}\nreverse_proxy UPSTREAM"
		}
	}
	s := d.startSites(t, conformancePolicy, http.HandlerFunc(pageUpstream), sites)
	for _, headers := range []string{"off", "robots-tag", "x-robots-tag content-usage"} {
		for meta, want := range map[string]string{
			"off":     page(own),
			"merge":   page(`<meta name="robots" content="noindex, max-snippet:10"><meta name="googlebot" content="noarchive">`),
			"replace": page(`<meta name="robots" content="noindex, max-snippet:50">`),
		} {
			r := s.get("/drafts/x", "Host", siteName(headers+" "+meta), "Head", own, "Etag", `"v1"`)
			got := fieldsOf(r.Header)
			for _, name := range fieldNames {
				on := slices.Contains(strings.Fields(headers), strings.ToLower(name))
				if on != (len(got[name]) > 0) {
					t.Errorf("headers %s: %v", headers, got)
				}
			}
			body := strings.NewReplacer(crawlersElements, "", amazonsElement, "").Replace(r.body)
			if body != want {
				t.Errorf("meta %s:\n%q, want\n%q", meta, body, want)
			}
			if changed := r.Header.Get("Etag") != `"v1"`; changed != (meta != "off") {
				t.Errorf("meta %s: ETag %s", meta, r.Header.Get("Etag"))
			}
		}
	}
}

// The directive's option "enforce" limits the mode of blocking, whatever mode the policy file has.
func TestEnforceCap(t *testing.T) { bothDoors(t, testEnforceCap) }

func testEnforceCap(t *testing.T, d door) {
	sites := map[string]string{}
	caps := []string{"off", "log", "block"}
	for _, c := range caps {
		sites[c+".test"] = "robots_policy POLICY {\nenforce " + c + "\n}\nrespond ok"
	}
	sites["default.test"] = "robots_policy POLICY\nrespond ok"
	s := d.startSites(t, `version: 1
rules:
  - {for: BlockBot, disallow: {crawl: /}, enforce: block}
  - {for: LogBot, disallow: {crawl: /}, enforce: log}
  - {for: OffBot, disallow: {crawl: /}, enforce: "off"}
crawlers:
  BlockBot: {category: seo}
  LogBot: {category: seo}
  OffBot: {category: seo}
`, nil, sites)
	for i, host := range append(caps, "default") {
		for j, mode := range []string{"OffBot", "LogBot", "BlockBot"} {
			path := "/" + host + "-" + mode
			want, logged := 200, 0
			if effective := min(i, j, 2); effective == 2 {
				want, logged = 403, 1
			} else if effective == 1 {
				logged = 1
			}
			for _, method := range []string{"GET", "HEAD", "POST", "OPTIONS"} {
				r := s.do(method, path+method, "Host", host+".test", "User-Agent", mode+"/1.0")
				if r.StatusCode != want {
					t.Errorf("%s %s of %s: %s, want %d", method, host, mode, r.Status, want)
				}
				text := "crawler would be blocked"
				if want == 403 {
					text = "crawler blocked"
				}
				if n := strings.Count(s.log(), fmt.Sprintf(`"uri":"%s%s"`, path, method)); n != logged {
					t.Errorf("%s of %s: %d log lines, want %d", host, mode, n, logged)
				} else if n == 1 && !strings.Contains(s.log(), text) {
					t.Errorf("no %q in the log", text)
				}
			}
		}
	}
}

// If a request is blocked, the response is not a page of the site. It must not be indexed, and caches must not store it
// and show it to people. This is true even if another handler writes the body.
func TestRefusal(t *testing.T) { bothDoors(t, testRefusal) }

func testRefusal(t *testing.T, d door) {
	errors := "handle_errors {\nROUTE\nheader Content-Type text/html\nrespond `" + page("") + "`\n}"
	sites := map[string]string{
		"bare.test":     "robots_policy POLICY\nreverse_proxy UPSTREAM",
		"handled.test":  "robots_policy POLICY\nreverse_proxy UPSTREAM\n" + strings.Replace(errors, "ROUTE\n", "", 1),
		"again.test":    "robots_policy POLICY\nreverse_proxy UPSTREAM\n" + strings.Replace(errors, "ROUTE", "robots_policy POLICY", 1),
		"headers.test":  "header Cache-Control max-age=3600\nheader X-Robots-Tag nofollow\nrobots_policy POLICY\nreverse_proxy UPSTREAM\n" + strings.Replace(errors, "ROUTE", "robots_policy POLICY", 1),
		"off.test":      "robots_policy POLICY {\nheaders off\n}\nreverse_proxy UPSTREAM",
		"tailored.test": "robots_policy POLICY {\nheaders tailored\n}\nreverse_proxy UPSTREAM",
	}
	s := d.startSites(t, slicePolicy, http.HandlerFunc(pageUpstream), sites)
	for host := range sites {
		if s.lacks(host) {
			continue
		}
		for _, method := range []string{"GET", "HEAD", "POST"} {
			r := s.do(method, "/x", "Host", host, "User-Agent", gptBot)
			f := fieldsOf(r.Header)
			list, err := readList(f["Robots-Tag"])
			want := rulesOf("noindex")
			if host == "headers.test" {
				want = rulesOf("noindex, nofollow") // together with the site's own rules in the older field
			}
			if r.StatusCode != 403 || !slices.Equal(r.Header.Values("Cache-Control"), []string{"no-store"}) {
				t.Errorf("%s %s: %s, Cache-Control: %q", method, host, r.Status, r.Header.Values("Cache-Control"))
			}
			if host == "off.test" {
				if len(f) > 0 {
					t.Errorf("%s %s: %v", method, host, f)
				}
			} else if err != nil || list.to("gptbot") != want || readX(f["X-Robots-Tag"]).to("gptbot") != want || len(f["X-Robots-Tag"]) != 1 {
				t.Errorf("%s %s: %v %v", method, host, f, err)
			}
			if r := s.do(method, "/x", "Host", host, "User-Agent", firefox); r.StatusCode != 200 {
				t.Errorf("%s %s of a browser: %s", method, host, r.Status)
			}
		}
		for _, path := range []string{"/robots.txt", "/robots.txt?x=1"} {
			if r := s.get(path, "Host", host, "User-Agent", gptBot); r.StatusCode != 200 {
				t.Errorf("%s: %s: %s", host, path, r.Status)
			}
		}
	}
}
