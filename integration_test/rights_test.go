// SPDX-License-Identifier: Apache-2.0

package integration_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/robotspolicy/caddy-robots-policy/internal/testkit/crawlertest"
)

const rightsPolicy = `version: 1
rules:
  - name: no training
    for: everyone
    disallow: {train-ai: /}
    allow: {train-ai: /press/, search: /}
  - for: GPTBot
    disallow: {crawl: /}
    enforce: block
publish:
  tdmrep: on
  rsl: on
  content-signal: reference
  usage-tokens: {train-ai: No-Training-Token}
rights:
  copyright: Example Media Ltd
  tdm-policy: https://www.example.com/tdm.json
`

// rightsUpstream is an upstream with its own tdmrep.json, headers and meta tags. Most of them are less strict than the
// policy.
func rightsUpstream(w http.ResponseWriter, r *http.Request) {
	switch r.URL.Path {
	case "/.well-known/tdmrep.json":
		w.Header().Set("Content-Type", "application/json")
		fmt.Fprint(w, `[{"location": "/press/photos/", "tdm-reservation": 1}, {"location": "/", "tdm-reservation": 0}]`)
	case "/robots.txt":
		fmt.Fprint(w, "User-agent: No-Training-Token\nAllow: /private/\n\nUser-agent: Google-Extended\nAllow: /private/\nDisallow: /press/photos/\n")
	case "/license.xml":
		fmt.Fprint(w, "the site's own")
	default:
		h := w.Header()
		h.Set("Content-Type", "text/html")
		h.Set("TDM-Reservation", "0")
		h.Set("Link", `</style.css>; rel=preload`)
		if r.URL.Path == "/press/photos/" {
			h.Set("TDM-Reservation", "1")
			h.Set("TDM-Policy", "https://photos.example/tdm")
		}
		fmt.Fprint(w, page(`<meta name="tdm-reservation" content="0">`))
	}
}

func TestRightsRegisters(t *testing.T) {
	s := start(t, rightsPolicy, http.HandlerFunc(rightsUpstream), "robots_policy POLICY {\nrobots_txt merge\n}\nreverse_proxy UPSTREAM")

	t.Run("tdmrep.json", func(t *testing.T) {
		r := s.get("/.well-known/tdmrep.json", "User-Agent", gptBot)
		read, err := crawlertest.ReadTDMRep(r.body)
		if err != nil || r.StatusCode != http.StatusOK || r.Header.Get("Content-Type") != "application/json" {
			t.Fatalf("%s %v %v\n%s", r.Status, r.Header, err, r.body)
		}
		for path, want := range map[string]string{"/": "1", "/x": "1", "/press/a": "0", "/press/photos/a": "1"} {
			if got, _ := read.At(path); got != want {
				t.Errorf("%s: %q, want %q\n%s", path, got, want, r.body)
			}
		}
		if again := s.get("/.well-known/tdmrep.json?x", "If-None-Match", r.Header.Get("Etag")); again.StatusCode != http.StatusNotModified || again.body != "" {
			t.Errorf("condition: %s", again.Status)
		}
		if again := s.get("/%2ewell-known/tdmrep%2Ejson"); again.body != r.body {
			t.Errorf("encoded: %s %s", again.Status, again.body)
		}
	})

	t.Run("headers and pages", func(t *testing.T) {
		for path, want := range map[string][3]string{
			"/x":             {"1", "https://www.example.com/tdm.json", "1"},
			"/press/a":       {"0", "", "0"},
			"/press/photos/": {"1", "https://photos.example/tdm", "0"}, // the page itself has 0, and no rule of the policy contradicts this
		} {
			r := s.get(path)
			if got := [2]string{r.Header.Get("TDM-Reservation"), r.Header.Get("TDM-Policy")}; got != [2]string{want[0], want[1]} {
				t.Errorf("%s: header %q, want %q", path, got, want)
			}
			if n := strings.Count(r.body, `name="tdm-reservation"`); n != 1 || !strings.Contains(r.body, `<meta name="tdm-reservation" content="`+want[2]+`">`) {
				t.Errorf("%s: %s", path, r.body)
			}
			if got := strings.Join(r.Header.Values("Link"), " | "); got != `</style.css>; rel=preload | </license.xml>; rel="license"; type="application/rsl+xml"` {
				t.Errorf("%s: Link %s", path, got)
			}
		}
		if r := s.get("/x"); r.Header.Get("Content-Usage") != "train-ai=n, search=y" {
			t.Errorf("Content-Usage %q", r.Header.Get("Content-Usage"))
		}
	})

	t.Run("RSL", func(t *testing.T) {
		r := s.get("/license.xml", "User-Agent", gptBot)
		doc, err := crawlertest.ReadRSL(r.body)
		if err != nil || r.Header.Get("Content-Type") != "application/rsl+xml" {
			t.Fatalf("%s %v\n%s", r.Status, err, r.body)
		}
		for place, want := range map[string]string{"/x ai-train": "no", "/x search": "yes", "/press/x ai-train": "yes", "/x ai-input": ""} {
			path, usage, _ := strings.Cut(place, " ")
			if got := doc.At(path, usage); got != want {
				t.Errorf("%s: %q, want %q\n%s", place, got, want, r.body)
			}
		}
		if again := s.get("/license.xml", "If-None-Match", r.Header.Get("Etag")); again.StatusCode != http.StatusNotModified {
			t.Errorf("condition: %s", again.Status)
		}
	})

	t.Run("robots.txt", func(t *testing.T) {
		r := s.get("/robots.txt", "Host", "WWW.example.com")
		read := crawlertest.ReadRobotsTxt(lines(r.body))
		for place, want := range map[string]bool{
			"No-Training-Token /x": false, "No-Training-Token /press/x": true, "No-Training-Token /private/x": false,
			"Google-Extended /x": false, "Google-Extended /press/x": true, "Google-Extended /private/x": false, "Google-Extended /press/photos/x": false,
			"Applebot-Extended /x": false, "Applebot-Extended /press/x": true,
			"Googlebot /x": true, "Bingbot /press/": true,
		} {
			token, path, _ := strings.Cut(place, " ")
			if got := read.Allowed(token, path); got != want {
				t.Errorf("%s: %t, want %t\n%s", place, got, want, r.body)
			}
		}
		for _, line := range []string{"License: http://www.example.com/license.xml", "Content-Signal: search=yes, ai-train=no, use=reference", "Content-Usage: train-ai=n, search=y"} {
			if !strings.Contains(lines(r.body), line+"\n") {
				t.Errorf("no line %q in\n%s", line, r.body)
			}
		}
	})
}

// If the policy does not state anything, or does not publish a rights document, the site's own documents are served.
func TestRegistersThatSayNothing(t *testing.T) {
	s := start(t, "version: 1\nrules:\n  - {for: everyone, disallow: {crawl: /x/}}\npublish: {tdmrep: on, rsl: on}\n", http.HandlerFunc(rightsUpstream), "robots_policy POLICY\nreverse_proxy UPSTREAM")
	if r := s.get("/license.xml"); r.body != "the site's own" {
		t.Errorf("RSL: %s", r.body)
	}
	if r := s.get("/.well-known/tdmrep.json"); !strings.Contains(r.body, "/press/photos/") {
		t.Errorf("tdmrep.json: %s", r.body)
	}
	r := s.get("/a")
	if r.Header.Get("TDM-Reservation") != "0" || strings.Contains(strings.Join(r.Header.Values("Link"), ""), "license") {
		t.Errorf("%v", r.Header)
	}
	if r := s.get("/robots.txt"); strings.Contains(r.body, "License") {
		t.Errorf("%s", r.body)
	}
}
