// SPDX-License-Identifier: Apache-2.0

package integration_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/caddyserver/caddy/v2"
)

const limitPolicy = `version: 1
rules:
  - name: training slowly
    for: category:ai-training
    limit: 60/h
  - for: CCBot
    crawl-delay: 3600
    enforce: block
  - for: Googlebot
    limit: 1/h
  - for: Bingbot
    limit: 1/h
    intended: [limits-search]
  - name: dry run
    for: SemrushBot
    limit: 1/h
    enforce: log
`

// A crawler that exceeds its limit gets 429, whatever addresses it uses. Other crawlers, and paths that are always
// allowed, are not affected.
func TestLimits(t *testing.T) {
	s := start(t, limitPolicy, htmlUpstream(page("")), "metrics /metrics\nrobots_policy POLICY {\nverify off\n}\nreverse_proxy UPSTREAM")
	before := s.counts()
	count := func(n int, path, agent string) (codes map[int]int, last response) {
		codes = map[int]int{}
		for range n {
			last = s.get(path, "User-Agent", agent, "X-Forwarded-For", "198.51.100.7")
			codes[last.StatusCode]++
		}
		return codes, last
	}
	codes, last := count(1000, "/x", gptBot)
	if codes[200] != 60 || codes[429] != 940 {
		t.Errorf("GPTBot: %v, want 60 answers and 940 times 429", codes)
	}
	seconds, err := strconv.Atoi(last.Header.Get("Retry-After"))
	if err != nil || seconds < 1 || seconds > 60 || last.Header.Get("Cache-Control") != "no-store" || !strings.Contains(last.body, "try again in") {
		t.Errorf("%v %q", last.Header, last.body)
	}
	if last.Header.Get("X-Robots-Tag") != "" {
		t.Error("the answer with status 429 has a rule about indexing")
	}
	for _, tt := range []struct {
		agent, path string
		n, ok       int
	}{
		{gptBot, "/robots.txt", 100, 100},
		{gptBot, "/.well-known/x", 100, 100},
		{"ClaudeBot/1.0", "/x", 61, 60},
		{"CCBot/2.0", "/x", 30, 20}, // the burst of the crawl-delay is smaller than the burst of the limit
		{"Googlebot/2.1", "/x", 20, 20},
		{"Bingbot/2.0", "/x", 20, 1},
		{"SemrushBot/7", "/x", 20, 20},
		{"Mozilla/5.0 (X11; Linux x86_64) Firefox/130.0", "/x", 100, 100},
	} {
		if codes, _ := count(tt.n, tt.path, tt.agent); codes[200] != tt.ok || tt.n > tt.ok && codes[429] != tt.n-tt.ok {
			t.Errorf("%s %s: %v, want %d of %d", tt.agent, tt.path, codes, tt.ok, tt.n)
		}
	}
	if got := s.counted(before, requests("GPTBot", "blocking", "limited", "training slowly")); got != 940 {
		t.Errorf("the metrics have %v limited requests", got)
	}
	if got := s.counted(before, requests("SemrushBot", "blocking", "would_limit", "dry run")); got != 19 {
		t.Errorf("the metrics have %v requests that would be limited", got)
	}
}

// The log names the limited client and the rule.
func TestLimitsInTheLog(t *testing.T) {
	s := startLogged(t, limitPolicy, htmlUpstream(page("")), "robots_policy POLICY {\nverify off\n}\nreverse_proxy UPSTREAM")
	for i := range 62 { // each request from another address
		s.get("/x", "User-Agent", gptBot, "X-Forwarded-For", fmt.Sprintf("198.51.100.%d", i))
	}
	s.get("/x", "User-Agent", "SemrushBot/7")
	s.get("/x", "User-Agent", "SemrushBot/7")
	lines := s.lines("caddy.log", "crawler limited", 1)
	if len(lines) == 0 {
		t.Fatal("nothing is logged")
	}
	if lines[0]["reason"] != "limited" || lines[0]["rule"] != "training slowly" || !strings.HasSuffix(fmt.Sprint(lines[0]["policy"]), ":5") {
		t.Errorf("%v", lines[0])
	}
	if len(s.lines("caddy.log", "crawler would be limited", 1)) == 0 {
		t.Error("the dry run is not logged")
	}
}

// If a User-Agent names two crawlers, the limits of both apply. A request that one limit blocks does not count for the
// other limit.
func TestLimitsOfSeveralTokens(t *testing.T) {
	s := start(t, `version: 1
rules:
  - for: GPTBot
    limit: 10/h
  - for: ClaudeBot
    limit: 2/h
`, htmlUpstream(page("")), "robots_policy POLICY {\nverify off\n}\nreverse_proxy UPSTREAM")
	ok := func(agent string) (n int) {
		for range 20 {
			if s.get("/x", "User-Agent", agent).StatusCode == 200 {
				n++
			}
		}
		return n
	}
	for _, tt := range []struct {
		agent string
		want  int
	}{
		{"GPTBot/1.2 ClaudeBot/1.0", 2},
		{"GPTBot/1.2", 8},
		{"Googlebot/2.1 GPTBot/1.2", 0}, // after the name of a crawler without a limit
		{"Googlebot/2.1", 20},
	} {
		if got := ok(tt.agent); got != tt.want {
			t.Errorf("%s: %d of 20 requests pass, want %d", tt.agent, got, tt.want)
		}
	}
}

// A limited request is stored without its query, even if its User-Agent names a second crawler.
func TestLimitedVisitHasNoQuery(t *testing.T) {
	s, _ := startRecordingWith(t, `version: 1
rules:
  - for: Googlebot
    allow: {crawl: /x}
  - for: GPTBot
    limit: 1/h
`, htmlUpstream(page("")))
	for _, agent := range []string{"GPTBot/1.2", "GPTBot/1.2 Googlebot/2.1", "Googlebot/2.1 GPTBot/1.2"} {
		s.get("/x?token=1", "User-Agent", agent)
	}
	if err := caddy.Stop(); err != nil {
		t.Fatal(err)
	}
	lines, err := os.ReadFile(filepath.Join(s.dir, "crawlers.log"))
	if err != nil {
		t.Fatal(err)
	}
	if n := strings.Count(string(lines), `"decision":"limited"`); n != 2 || strings.Contains(string(lines), "token") {
		t.Errorf("%d limited requests:\n%s", n, lines)
	}
}

// If a request passes several handlers, the limits of each policy count it once.
func TestLimitsOfSeveralHandlers(t *testing.T) {
	s := newServer(t, t.TempDir(), limitPolicy, htmlUpstream(page("")))
	s.write("other.yaml", "version: 1\nrules:\n  - for: GPTBot\n    limit: 80/h\n")
	handler := func(file string) string { return "robots_policy " + file + " {\nverify off\n}\n" }
	s.run(s.caddyfile("admin off\nlog {\noutput discard\n}", map[string]string{
		"": "route {\n" + handler("POLICY") + handler("DIR/other.yaml") + handler("POLICY") + handler("DIR/other.yaml") + "reverse_proxy UPSTREAM\n}",
	}))
	codes := map[int]int{}
	for range 100 {
		codes[s.get("/x", "User-Agent", gptBot).StatusCode]++
	}
	if codes[200] != 60 || codes[429] != 40 {
		t.Errorf("%v, want 60 answers and 40 times 429", codes)
	}
}

// If a handler only logs or is switched off, its counting does not affect a later handler that blocks.
func TestLimitsBehindAnotherHandler(t *testing.T) {
	for _, outer := range []string{"off", "log", "block"} {
		t.Run(outer, func(t *testing.T) {
			s := start(t, limitPolicy, htmlUpstream(page("")),
				"route {\nrobots_policy POLICY {\nverify off\nenforce "+outer+"\n}\nrobots_policy POLICY {\nverify off\n}\nreverse_proxy UPSTREAM\n}")
			codes := map[int]int{}
			for range 100 {
				codes[s.get("/x", "User-Agent", gptBot).StatusCode]++
			}
			if codes[200] != 60 || codes[429] != 40 {
				t.Errorf("%v, want 60 answers and 40 times 429", codes)
			}
		})
	}
}
