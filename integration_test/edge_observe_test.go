// SPDX-License-Identifier: Apache-2.0

package integration_test

import (
	"strconv"
	"strings"
	"testing"
)

// counts holds the values of a process's metrics at one time. Each key is a metric with its labels, as a line in the
// Prometheus format shows them before the value.
type counts map[string]float64

func (s *server) counts() counts {
	s.t.Helper()
	c := counts{}
	for l := range strings.Lines(s.get("/metrics").body) {
		if i := strings.LastIndexByte(strings.TrimSpace(l), ' '); i > 0 && l[0] != '#' {
			c[l[:i]], _ = strconv.ParseFloat(strings.TrimSpace(l[i:]), 64)
		}
	}
	return c
}

// counted returns how much a counter has grown since the counts in before were read.
func (s *server) counted(before counts, line string) float64 {
	s.t.Helper()
	return s.counts()[line] - before[line]
}

func requests(crawler, channel, decision, rule string) string {
	return `caddy_robots_policy_decisions_total{channel="` + channel + `",crawler="` + crawler + `",decision="` + decision + `",rule="` + rule + `"}`
}

const observedBody = `
	metrics /metrics
	robots_policy POLICY
	reverse_proxy UPSTREAM`

const observedPolicy = `version: 1
rules:
  - for: everyone
    disallow:
      crawl: /admin/
      index: /drafts/
  - name: no counting bots
    for: CountingBot
    disallow:
      crawl: /closed/
    enforce: block
  - name: watched
    for: WatchedBot
    disallow:
      crawl: /closed/
    enforce: log
`

// Requests of crawlers are counted. After a reload of Caddy's configuration, the counters continue from their old
// values.
func TestEdgeMetrics(t *testing.T) {
	s := startLogged(t, observedPolicy, htmlUpstream(page("")), observedBody)
	before := s.counts()
	body := strings.ReplaceAll(observedBody, "UPSTREAM", s.addr) // not requested after the reload
	for range 2 {
		s.get("/closed/", "User-Agent", "CountingBot/1.0")
	}
	s.get("/closed/", "User-Agent", "WatchedBot/1.0")
	s.get("/admin/", "User-Agent", "CountingBot/1.0")
	s.get("/drafts/", "User-Agent", "CountingBot/1.0")
	s.get("/robots.txt", "User-Agent", "CountingBot/1.0")
	s.get("/closed/", "User-Agent", "Firefox/143.0")
	for line, want := range map[string]float64{
		requests("CountingBot", "blocking", "blocked", "no counting bots"):                        2,
		requests("WatchedBot", "blocking", "would_block", "watched"):                              1,
		requests("CountingBot", "blocking", "disallowed", "everyone"):                             1,
		requests("CountingBot", "blocking", "allowed", ""):                                        1,
		requests("CountingBot", "headers", "sent", ""):                                            1,
		requests("CountingBot", "page", "sent", ""):                                               1,
		requests("CountingBot", "robots_txt", "served", ""):                                       1,
		`caddy_robots_policy_crawler_identity_total{crawler="CountingBot",identity="unverified"}`: 4,
	} {
		if got := s.counted(before, line); got != want {
			t.Errorf("%s: %v, want %v", line, got, want)
		}
	}
	s.load(s.logged(body))
	client.CloseIdleConnections() // the server of the previous configuration closes these connections
	s.get("/closed/", "User-Agent", "CountingBot/1.0")
	if got := s.counted(before, requests("CountingBot", "blocking", "blocked", "no counting bots")); got != 3 {
		t.Errorf("after a reload: %v", got)
	}
	// Two handlers in one configuration share the counters.
	s.load(s.logged("@a path /a/*\nrobots_policy @a POLICY\n" + body))
	client.CloseIdleConnections() // the server of the previous configuration closes these connections
	s.get("/closed/", "User-Agent", "CountingBot/1.0")
	if got := s.counted(before, requests("CountingBot", "blocking", "blocked", "no counting bots")); got != 4 {
		t.Errorf("with two handlers: %v", got)
	}
}

// A crawler fetches robots.txt, and then requests a path that this file disallows for it. The server counts and logs
// this violation, whether it blocks the request or not.
func TestEdgeViolations(t *testing.T) {
	s := startLogged(t, strings.ReplaceAll(observedPolicy, "WatchedBot", "RudeBot"), htmlUpstream(page("")), observedBody)
	before := s.counts()
	violations := `caddy_robots_policy_violations_total{crawler="RudeBot",identity="unverified",rule="watched"}`
	s.get("/closed/", "User-Agent", "RudeBot/1.0")
	if got := s.counted(before, violations); got != 0 {
		t.Errorf("before it has read robots.txt: %v", got)
	}
	robots := s.get("/robots.txt", "User-Agent", "Mozilla/5.0 (compatible; RudeBot/2.0)")
	s.get("/open/", "User-Agent", "RudeBot/1.0")
	if got := s.counted(before, violations); got != 0 {
		t.Errorf("for an allowed path: %v", got)
	}
	s.get("/closed/x?y", "User-Agent", "RudeBot/1.0")
	s.get("/closed/", "User-Agent", "CountingBot/1.0") // this crawler has not read robots.txt
	s.get("/closed/", "User-Agent", "RudeBot/1.0", "Host", "other.example")
	if got := s.counted(before, violations); got != 1 {
		t.Errorf("%v violations", got)
	}
	lines := s.lines("caddy.log", "crawler violates robots.txt", 1)
	if len(lines) != 1 || lines[0]["crawler"] != "RudeBot" || lines[0]["uri"] != "/closed/x?y" || lines[0]["rule"] != "watched" ||
		lines[0]["robots_txt"] != strings.Trim(robots.Header.Get("Etag"), `"`) || lines[0]["fetched"] == nil ||
		!strings.HasSuffix(lines[0]["policy"].(string), "policy.yaml:15") {
		t.Errorf("%v", lines)
	}
	// After a reload of Caddy's configuration, the server still knows which crawlers have read robots.txt.
	s.load(s.logged(strings.ReplaceAll(observedBody, "UPSTREAM", "127.0.0.1:1")))
	client.CloseIdleConnections() // the server of the previous configuration closes these connections
	s.get("/closed/", "User-Agent", "RudeBot/1.0")
	if got := s.counted(before, violations); got != 2 {
		t.Errorf("after a reload: %v", got)
	}
}
