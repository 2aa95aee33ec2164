// SPDX-License-Identifier: Apache-2.0

package site

import (
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/robotspolicy/caddy-robots-policy/policy"
)

const limitsPolicy = `version: 1
rules:
  - for: everyone
    limit: 60/m
    crawl-delay: 5
  - for: CCBot
    crawl-delay: 10
    enforce: log
  - for: Bingbot
    limit: {rate: 5/s, burst: 50}
    intended: [limits-search]
  - for: AhrefsBot
    limit: 1/d
    enforce: off
`

func TestLimits(t *testing.T) {
	t.Parallel()
	s, ds := Load("policy.yaml", []byte(limitsPolicy))
	if s == nil {
		t.Fatal(ds.Text())
	}
	for _, tt := range []struct{ crawler, path, want string }{
		{"GPTBot", "/x", "60/m block"},
		{"GPTBot", "/robots.txt", ""},
		{"GPTBot", "/.well-known/security.txt", ""},
		{"CCBot", "/x", "60/m block; one in 10s log"},
		{"Googlebot", "/x", ""}, // a search engine, and the rule does not have "intended"
		{"Bingbot", "/x", "5/s block"},
		{"AhrefsBot", "/x", ""},
	} {
		var got []string
		for _, l := range s.Limits(nil, policy.Query{Crawler: s.Policy.Crawler(tt.crawler), Host: "www.example.com", Path: tt.path, Now: time.Now()}) {
			got = append(got, l.String()+" "+l.Mode.String())
		}
		if text := strings.Join(got, "; "); text != tt.want {
			t.Errorf("%s %s: %q, want %q", tt.crawler, tt.path, text, tt.want)
		}
	}
	for crawler, want := range map[string]string{
		"GPTBot":    "unless this crawler makes more requests than 60/m. In that case, the answer is 429 Too Many Requests",
		"Bingbot":   "unless this crawler makes more requests than 5/s",
		"Googlebot": "the request passes",
	} {
		id := s.Policy.Crawler(crawler)
		at := NewTarget("www.example.com", "/x")
		e := s.explainEdge(policy.Query{Crawler: id, Host: "www.example.com", Path: "/x", Now: time.Now()}, &at, []Client{{Crawler: id}})
		if !strings.Contains(e.Summary, want) || (crawler == "Bingbot") != strings.Contains(strings.Join(texts(e.Reasons), " "), "up to 50 at once") {
			t.Errorf("%s: %+v", crawler, e)
		}
	}
}

// If a request names several crawlers, the limits of each crawler apply.
func TestLimitsOfSeveralCrawlers(t *testing.T) {
	t.Parallel()
	s, ds := Load("policy.yaml", []byte(limitsPolicy))
	if s == nil {
		t.Fatal(ds.Text())
	}
	var clients []Client
	for _, id := range s.RecognizeAll(nil, []string{"Googlebot/2.1 GPTBot/1.2 Bingbot/2.0"}) {
		clients = append(clients, Client{Crawler: id, Identity: policy.Verified})
	}
	at := NewTarget("www.example.com", "/x")
	var got []string
	for _, l := range s.LimitsOfAll(nil, &at, clients, policy.Query{Now: time.Now()}) {
		got = append(got, s.Policy.CrawlerInfo(l.Crawler).Token+" "+l.Identity.String()+" "+l.String())
	}
	if text := strings.Join(got, "; "); text != "GPTBot verified 60/m; Bingbot verified 5/s" {
		t.Error(text)
	}
	u := &url.URL{Scheme: "https", Host: "www.example.com", Path: "/x"}
	var out strings.Builder
	if err := s.Explain(Question{Agent: "Googlebot/2.1 GPTBot/1.2 Bingbot/2.0", URL: u, Now: time.Now()}).WriteText(&out); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		"the request passes, unless it exceeds one of these limits. In that case, the answer is 429 Too Many Requests",
		"limits the requests of GPTBot to 60/m", "limits the requests of Bingbot to 5/s",
	} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("no %q in\n%s", want, out.String())
		}
	}
}

// A policy with rate limits but without blocking also affects requests.
func TestMaxModeWithLimits(t *testing.T) {
	t.Parallel()
	for rules, want := range map[string]policy.Mode{
		"rules: [{for: GPTBot, limit: 60/h}]":                                         policy.ModeBlock,
		"rules: [{for: GPTBot, limit: 60/h}]\nenforcement: log":                       policy.ModeLog,
		"rules: [{for: GPTBot, limit: 60/h, enforce: off}]":                           policy.ModeOff,
		"rules: [{for: GPTBot, crawl-delay: 5}]":                                      policy.ModeOff,
		"rules: [{for: GPTBot, crawl-delay: 5, enforce: log}]":                        policy.ModeLog,
		"rules: [{for: GPTBot, disallow: {crawl: /}}]":                                policy.ModeOff,
		"rules: [{for: GPTBot, disallow: {crawl: /}, enforce: block}]":                policy.ModeBlock,
		"rules: [{for: GPTBot, limit: none}, {for: CCBot, limit: 1/s, enforce: log}]": policy.ModeLog,
	} {
		s, ds := Load("policy.yaml", []byte("version: 1\n"+rules+"\n"))
		if s == nil {
			t.Errorf("%s: %s", rules, ds.Text())
		} else if got := s.MaxMode(); got != want {
			t.Errorf("%s: %v, want %v", rules, got, want)
		}
	}
}

func texts(reasons []Reason) (all []string) {
	for _, r := range reasons {
		all = append(all, r.Says)
	}
	return all
}
