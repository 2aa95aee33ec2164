// SPDX-License-Identifier: Apache-2.0

package integration_test

import (
	"bufio"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/robotspolicy/caddy-robots-policy/internal/testkit"
)

var (
	claimedTest  = regexp.MustCompile("`((?:Test|Fuzz)[A-Z][A-Za-z0-9_]*)`")
	declaredTest = regexp.MustCompile(`(?m)^func ((?:Test|Fuzz)[A-Za-z0-9_]*)\(`)
)

// Every row of the threat model names tests that check it, and these tests exist.
func TestClaimsOfTheThreatModel(t *testing.T) {
	declared := map[string]bool{}
	err := filepath.WalkDir("..", func(path string, d os.DirEntry, err error) error {
		if err != nil || !strings.HasSuffix(path, "_test.go") {
			return err
		}
		source, err := os.ReadFile(path)
		for _, m := range declaredTest.FindAllSubmatch(source, -1) {
			declared[string(m[1])] = true
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile("../docs/contributing/threat-model.md")
	if err != nil {
		t.Fatal(err)
	}
	more, err := os.ReadFile("../docs/contributing/claims.md")
	if err != nil {
		t.Fatal(err)
	}
	text = append(text, more...)
	claims := 0
	for line := range strings.Lines(string(text)) {
		if !strings.HasPrefix(line, "| ") || strings.HasPrefix(line, "| --") || strings.HasPrefix(line, "| What ") || strings.HasPrefix(line, "| claim ") || strings.HasPrefix(line, "| Data | ") || strings.HasPrefix(line, "| blind spot ") ||
			strings.HasPrefix(line, "| all others | cannot matter: ") || strings.Contains(line, " | **open**: ") {
			continue
		}
		claims++
		names := claimedTest.FindAllStringSubmatch(line, -1)
		if len(names) == 0 {
			t.Errorf("a claim without a test: %s", line)
		}
		for _, m := range names {
			if !declared[m[1]] {
				t.Errorf("the test %s does not exist: %s", m[1], line)
			}
		}
	}
	if claims < 30 {
		t.Errorf("%d claims were found", claims)
	}
}

const securityPolicy = `version: 1
sitemaps: /sitemap.xml
rules:
  - for: everyone
    disallow:
      index: /drafts/
  - for: GPTBot
    disallow:
      crawl: /premium/
      follow: /drafts/
    enforce: block
`

// No text from a client's request is ever printed in a response. Blocked crawlers get an answer that no cache may
// store. All other clients get the same answer, whatever else their requests contain.
func TestAnswersDoNotDependOnTheClient(t *testing.T) {
	s := start(t, securityPolicy, htmlUpstream(page("")), "robots_policy POLICY\nreverse_proxy UPSTREAM")
	for _, path := range []string{"/robots.txt", "/drafts/x", "/news/x", "/premium/x"} {
		want := s.get(path, "User-Agent", "Mozilla/5.0 Firefox/143.0")
		for _, agent := range []string{"", "Googlebot/2.1", gptBot, "GPTBot\t\"><script>", strings.Repeat("x", 10<<10)} {
			r := s.get(path, "User-Agent", agent, "Referer", "https://marker.example/", "From", "marker", "Signature-Agent", `"https://marker.example/"`)
			if strings.Contains(agent, "GPTBot") && path == "/premium/x" {
				if r.StatusCode != 403 || r.Header.Get("Cache-Control") != "no-store" {
					t.Errorf("%s for %.20q: %s, Cache-Control %q", path, agent, r.Status, r.Header.Get("Cache-Control"))
				}
				continue
			}
			if r.body != want.body || r.StatusCode != 200 {
				t.Errorf("%s for %.20q: %s\n%s", path, agent, r.Status, r.body)
			}
			for _, name := range []string{"Robots-Tag", "X-Robots-Tag", "Content-Usage", "ETag", "Vary", "Cache-Control"} {
				if got, want := fmt.Sprint(r.Header[name]), fmt.Sprint(want.Header[name]); got != want {
					t.Errorf("%s for %.20q: %s %s, all others get %s", path, agent, name, got, want)
				}
			}
		}
	}
}

var authority = regexp.MustCompile(`^[A-Za-z0-9._:\[\]-]{1,261}$`)

// Whatever text a request has in Host, the answer contains the rules for all hosts, and not this text.
func TestHostileHosts(t *testing.T) {
	s := start(t, securityPolicy, htmlUpstream(page("")), "robots_policy POLICY\nreverse_proxy UPSTREAM")
	ask := func(host, target string) (int, http.Header, string) {
		conn, err := net.Dial("tcp", s.addr)
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
		fmt.Fprintf(conn, "GET %s HTTP/1.1\r\nHost: %s\r\nConnection: close\r\n\r\n", target, host)
		resp, err := http.ReadResponse(bufio.NewReader(conn), nil)
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close()
		body, err := io.ReadAll(resp.Body)
		if err != nil {
			t.Fatal(err)
		}
		return resp.StatusCode, resp.Header, string(body)
	}
	for _, host := range []string{
		"", "marker,x", "..%2fmarker", "marker..example", "-marker-", "[marker]", "marker:port", "marker.example:99999", "marker'(x)", "%00marker",
		"marker\"><script>", "marker\x01", "märker", "marker/../x", "marker@x", strings.Repeat("marker.", 2000),
	} {
		for _, target := range []string{"/robots.txt", "/drafts/x"} {
			status, header, body := ask(host, target)
			if status == http.StatusBadRequest {
				continue // Go's server has rejected the request
			}
			// The URL of a sitemap is the only place that may contain the host, and only if the host is valid.
			rest := body
			if authority.MatchString(host) {
				rest = strings.Replace(body, "Sitemap: http://"+host+"/sitemap.xml", "", 1)
			}
			if strings.Contains(rest, "marker") {
				t.Errorf("Host %.40q is printed in %s: %.200q", host, target, body)
			}
			if target == "/robots.txt" && (status != 200 || !strings.Contains(body, "Disallow: /premium/")) {
				t.Errorf("Host %.40q: %d %.200q", host, status, body)
			}
			if target != "/robots.txt" && (status != 200 || header.Get("X-Robots-Tag") != "noindex") {
				t.Errorf("Host %.40q: %d %v", host, status, header)
			}
		}
	}
}

// The server also decides about requests that are almost as large as Caddy accepts. If a path is too long to be
// interpreted, the strictest rules of the policy apply.
func TestLargeRequests(t *testing.T) {
	s := start(t, securityPolicy, htmlUpstream(page("")), "robots_policy POLICY\nreverse_proxy UPSTREAM")
	if r := s.get("/news/" + strings.Repeat("a/%2e%2e/", 2000)); r.StatusCode != 200 || r.Header.Get("X-Robots-Tag") == "" {
		t.Errorf("a long path: %s %q", r.Status, r.Header["X-Robots-Tag"])
	}
	if status := s.raw(strings.Repeat("/x/..", 3600)+"/premium/x", gptBot); status != 403 {
		t.Errorf("a path with many dot segments: %d", status)
	}
	agents := strings.Repeat("Mozilla/5.0 (compatible; Bot-1; Bot-2; +https://example.com/)\r\nUser-Agent: ", 200)
	if status := s.raw("/premium/x", agents+gptBot); status != 403 {
		t.Errorf("the last of many User-Agent lines: %d", status)
	}
}

// Handlers reuse memory. Data that one request leaves in this memory must never get into the response of another
// request. The test uses pages of all lengths and codings, with upstreams that fail during a response and clients that
// disconnect.
func TestNothingLeaksBetweenRequests(t *testing.T) {
	s := start(t, securityPolicy, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		id, _ := strconv.Atoi(r.URL.Query().Get("id"))
		var out io.Writer = w
		w.Header().Set("Content-Type", "text/html")
		if id%3 == 0 {
			w.Header().Set("Content-Encoding", "gzip")
			z := gzip.NewWriter(w)
			defer z.Close()
			out = z
		}
		mark := fmt.Sprintf("[%d]", id)
		_, _ = io.WriteString(out, "<!DOCTYPE html><html><head>"+strings.Repeat(mark, id%300))
		switch id % 7 {
		case 1:
			panic(http.ErrAbortHandler) // the response ends in the head of the page
		case 2:
			_ = http.NewResponseController(w).Flush()
			panic(http.ErrAbortHandler)
		}
		_, _ = io.WriteString(out, "<title></title></head><body>"+strings.Repeat(mark, id%9000)+"</body></html>")
	}), "robots_policy POLICY\nreverse_proxy UPSTREAM")
	clients, requests := 8, testkit.Rounds(20, 60)
	other := regexp.MustCompile(`\[\d+\]`)
	var wg sync.WaitGroup
	var whole atomic.Int32
	for c := range clients {
		wg.Go(func() {
			random := rand.New(rand.NewPCG(uint64(c), 1))
			for range requests {
				id := random.IntN(20000)
				path := []string{"drafts", "news"}[id%2]
				resp, err := client.Get(fmt.Sprintf("http://%s/%s/?id=%d", s.addr, path, id))
				if err != nil {
					continue // the upstream broke off
				}
				var body io.Reader = resp.Body
				if random.IntN(10) == 0 {
					body = io.LimitReader(body, 1000) // the client disconnects
				}
				text, err := readCoded(body, resp.Header.Get("Content-Encoding"))
				_ = resp.Body.Close()
				mark := fmt.Sprintf("[%d]", id)
				for _, found := range other.FindAllString(text, -1) {
					if found != mark {
						t.Errorf("%s is in the answer to request %d", found, id)
						return
					}
				}
				if err == nil && resp.StatusCode == 200 && strings.HasSuffix(text, "</html>") {
					want := "<!DOCTYPE html><html><head>" + strings.Repeat(mark, id%300) + "<title></title></head><body>" + strings.Repeat(mark, id%9000) + "</body></html>"
					if path == "drafts" {
						want = strings.Replace(want, "<head>", `<head><meta name="robots" content="noindex">`, 1)
					}
					if text != want {
						t.Errorf("the page of request %d is wrong: %.300q", id, text)
						return
					}
					whole.Add(1)
				}
			}
		})
	}
	wg.Wait()
	if n := whole.Load(); int(n) < clients*requests/3 {
		t.Errorf("only %d pages were complete", n)
	}
}

func readCoded(r io.Reader, coding string) (string, error) {
	if coding == "gzip" {
		z, err := gzip.NewReader(r)
		if err != nil {
			return "", errors.Join(err)
		}
		r = z
	}
	text, err := io.ReadAll(r)
	return string(text), err
}
