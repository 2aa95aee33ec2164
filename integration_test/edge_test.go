// SPDX-License-Identifier: Apache-2.0

package integration_test

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/caddyserver/caddy/v2"
)

const googlebotAgent = "Mozilla/5.0 (compatible; Googlebot/2.1; +http://www.google.com/bot.html)"

// The policy sets the answer to a blocked crawler.
func TestEdgeAnswer(t *testing.T) {
	rules := `
rules:
  - for: GPTBot
    disallow:
      crawl: /
    enforce: block
`
	s := start(t, "version: 1\nenforcement: {status: 429, retry-after: 90, message: come back later}"+rules, htmlUpstream(page("")), `
	robots_policy POLICY {
		block_with error
	}
	reverse_proxy UPSTREAM
	handle_errors {
		respond "{err.status_code} {err.message}"
	}`)
	r := s.get("/", "User-Agent", gptBot)
	if r.StatusCode != 429 || r.Header.Get("Retry-After") != "90" || r.body != "429 come back later" || r.Header.Get("Cache-Control") != "no-store" {
		t.Errorf("%s %v %q", r.Status, r.Header, r.body)
	}
	r = s.do(http.MethodHead, "/", "User-Agent", gptBot)
	if r.StatusCode != 429 || r.body != "" {
		t.Errorf("HEAD: %s %q", r.Status, r.body)
	}
	if r = s.do(http.MethodPost, "/", "User-Agent", gptBot); r.StatusCode != 429 {
		t.Errorf("POST: %s", r.Status)
	}
}

// The policy's message is the body of a block, whatever error routes the site has. The exception is "block_with error".
func TestEdgeMessage(t *testing.T) {
	s := startSites(t, `version: 1
enforcement: {message: "ask <licenses@example.com>, please"}
rules:
  - for: GPTBot
    disallow:
      crawl: /
    enforce: block
`, htmlUpstream(page("")), map[string]string{
		"plain.test":  "encode gzip\nrobots_policy POLICY\nreverse_proxy UPSTREAM",
		"routes.test": "robots_policy POLICY\nreverse_proxy UPSTREAM\nhandle_errors {\nrespond \"an error page\"\n}",
		"errors.test": "robots_policy POLICY {\nblock_with error\n}\nreverse_proxy UPSTREAM\nhandle_errors {\nrespond \"an error page\"\n}",
	})
	for _, c := range []struct{ method, host, body string }{
		{"GET", "plain.test", "ask <licenses@example.com>, please\n"},
		{"POST", "plain.test", "ask <licenses@example.com>, please\n"},
		{"HEAD", "plain.test", ""},
		{"GET", "routes.test", "ask <licenses@example.com>, please\n"},
		{"GET", "errors.test", "an error page"},
	} {
		r := s.do(c.method, "/", "Host", c.host, "User-Agent", gptBot, "Accept-Encoding", "gzip")
		if r.StatusCode != 403 || r.body != c.body || !strings.EqualFold(r.Header.Get("Content-Type"), "text/plain; charset=utf-8") || r.Header.Get("Cache-Control") != "no-store" {
			t.Errorf("%s %s: %s %v %q", c.method, c.host, r.Status, r.Header, r.body)
		}
	}
}

// A client whose connection is closed does not get an answer, and Caddy continues to run.
func TestEdgeClose(t *testing.T) {
	s := start(t, `version: 1
enforcement: {action: close}
rules:
  - for: GPTBot
    disallow:
      crawl: /
    enforce: block
`, htmlUpstream(page("")), "robots_policy POLICY\nreverse_proxy UPSTREAM")
	conn, err := net.Dial("tcp", s.addr)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	fmt.Fprintf(conn, "GET / HTTP/1.1\r\nHost: %s\r\nUser-Agent: %s\r\n\r\n", s.addr, gptBot)
	if data, err := io.ReadAll(bufio.NewReader(conn)); len(data) > 0 || err != nil && !strings.Contains(err.Error(), "reset") {
		t.Errorf("%q %v", data, err)
	}
	if r := s.get("/"); r.StatusCode != 200 {
		t.Errorf("afterwards: %s", r.Status)
	}
}

// If robots_policy blocks a request and also runs inside handle_errors, it does not block the error page again. The
// crawler gets the error page with the status of the first error.
func TestEdgeErrorPages(t *testing.T) {
	s := startLogged(t, slicePolicy, htmlUpstream(page("")), `
	robots_policy POLICY {
		block_with error
	}
	reverse_proxy UPSTREAM
	handle_errors {
		robots_policy POLICY
		respond "the page about {err.status_code}"
	}`)
	if r := s.get("/", "User-Agent", gptBot); r.StatusCode != 403 || r.body != "the page about 403" || r.Header.Get("Cache-Control") != "no-store" {
		t.Errorf("%s %v %q", r.Status, r.Header, r.body)
	}
	s.get("/second", "User-Agent", gptBot)
	if got := s.lines("caddy.log", "crawler blocked", 2); len(got) != 2 || got[0]["uri"] != "/" || got[1]["uri"] != "/second" {
		t.Errorf("two blocks: %v", got)
	}
}

// The directive's option "enforce" limits the mode of blocking that the policy demands.
func TestEdgeCap(t *testing.T) {
	for cap, want := range map[string]struct {
		status, refused, would int
	}{"off": {200, 0, 0}, "log": {200, 0, 1}, "block": {403, 1, 0}} {
		s := startLogged(t, slicePolicy, htmlUpstream(page("")), "robots_policy POLICY {\nenforce "+cap+"\n}\nreverse_proxy UPSTREAM")
		if r := s.get("/", "User-Agent", gptBot); r.StatusCode != want.status {
			t.Errorf("%s: %s", cap, r.Status)
		}
		if n := len(s.lines("caddy.log", "crawler blocked", want.refused)); n != want.refused {
			t.Errorf("%s: %d blocks in the log", cap, n)
		}
		if n := len(s.lines("caddy.log", "crawler would be blocked", want.would)); n != want.would {
			t.Errorf("%s: %d would-be blocks in the log", cap, n)
		}
		if err := caddy.Stop(); err != nil {
			t.Fatal(err)
		}
	}
}

// The log line of a blocked request names the client, the page, the reason, and the line of the policy. If a crawler
// sends many requests, only some of them are logged, and each logged line contains the number of requests that were
// skipped before it.
func TestEdgeLog(t *testing.T) {
	s := startLogged(t, slicePolicy, htmlUpstream(page("")), "robots_policy POLICY\nreverse_proxy UPSTREAM")
	s.get("/news/?page=2", "User-Agent", gptBot, "X-Forwarded-For", "203.0.113.9", "Host", "news.example")
	lines := s.lines("caddy.log", "crawler blocked", 1)
	if len(lines) != 1 {
		t.Fatalf("%d lines", len(lines))
	}
	for name, want := range map[string]any{
		"level": "info", "crawler": "GPTBot", "operator": "OpenAI", "category": "ai-training", "identity": "unverified", "client_ip": "203.0.113.9",
		"host": "news.example", "uri": "/news/?page=2", "reason": "disallowed", "rule": "no AI training",
		"policy": filepath.Join(s.dir, "policy.yaml") + ":11",
	} {
		if got := lines[0][name]; got != want {
			t.Errorf("%s: %v, want %v", name, got, want)
		}
	}
	for range 300 {
		s.get("/", "User-Agent", gptBot)
	}
	s.get("/", "User-Agent", "CCBot/2.0 (https://commoncrawl.org/faq/)")
	lines = s.lines("caddy.log", "crawler blocked", 13)
	if len(lines) != 13 || lines[12]["crawler"] != "CCBot" || lines[11]["skipped"] != 99.0 {
		t.Errorf("%d lines: %v", len(lines), lines[len(lines)-1])
	}
}

// Access logs and other directives can use the placeholders of robots_policy, which hold its results for a request.
func TestEdgeFields(t *testing.T) {
	s := startLogged(t, slicePolicy, htmlUpstream(page("")), `
	log {
		output file DIR/access.log
		format json
	}
	robots_policy POLICY {
		block_with error
	}
	header X-Seen "{http.robots_policy.crawler}|{http.robots_policy.operator}|{http.robots_policy.category}|{http.robots_policy.identity}|{http.robots_policy.decision}|{http.robots_policy.action}|{http.robots_policy.rule}"
	handle_errors {
		respond "{http.robots_policy.crawler} {http.robots_policy.rule} {http.robots_policy.action}"
	}
	route {
		header >X-Late "{http.robots_policy.crawler}/{http.robots_policy.decision}/{http.robots_policy.action}/{http.robots_policy.identity}"
		reverse_proxy UPSTREAM
	}`)
	for _, c := range []struct {
		agent, path string
		late, body  string
		fields      map[string]any
	}{
		{"Firefox/143.0", "/", "///", page(""), nil},
		{googlebotAgent, "/admin/", "Googlebot/disallowed/off/unverified", page(""), map[string]any{
			"crawler": "Googlebot", "operator": "Google", "category": "search", "identity": "unverified", "decision": "disallowed", "action": "off", "rule": "everyone",
		}},
		{"LogBot/1", "/", "LogBot/disallowed/log/unverified", page(""), map[string]any{
			"crawler": "LogBot", "identity": "unverified", "decision": "disallowed", "action": "log", "rule": "LogBot",
		}},
		{gptBot, "/", "", "GPTBot no AI training block", map[string]any{
			"crawler": "GPTBot", "operator": "OpenAI", "category": "ai-training", "identity": "unverified", "decision": "disallowed", "action": "block", "rule": "no AI training",
		}},
	} {
		if err := os.Truncate(filepath.Join(s.dir, "access.log"), 0); err != nil && !errors.Is(err, os.ErrNotExist) {
			t.Fatal(err)
		}
		r := s.get(c.path, "User-Agent", c.agent)
		if r.Header.Get("X-Late") != c.late || r.body != c.body {
			t.Errorf("%s: %q %q", c.agent, r.Header.Get("X-Late"), r.body)
		}
		lines := s.lines("access.log", "handled request", 1)
		if len(lines) != 1 {
			t.Fatalf("%s: %d lines", c.agent, len(lines))
		}
		got, _ := lines[0]["robots_policy"].(map[string]any)
		if fmt.Sprint(got) != fmt.Sprint(c.fields) {
			t.Errorf("%s: the access log has %v, want %v", c.agent, got, c.fields)
		}
	}
}
