// SPDX-License-Identifier: Apache-2.0

// Package console tests the pages of the console on a running Caddy. The tests use the pages in a browser, as publishers do.
package console

import (
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/caddyserver/caddy/v2"
	"golang.org/x/crypto/bcrypt"

	"github.com/robotspolicy/caddy-robots-policy/integration_test/internal/browser"
	"github.com/robotspolicy/caddy-robots-policy/integration_test/internal/caddytest"
	"github.com/robotspolicy/caddy-robots-policy/internal/testkit"
)

func TestMain(m *testing.M) { caddytest.Main(m, func(bool) {}) }

const policyText = `version: 1
sitemaps: [/sitemap.xml]

rules:
  - for: everyone
    disallow:
      crawl: /admin/
      train-ai: /
    allow:
      search: /

  - name: no AI training
    for: category:ai-training
    disallow: {crawl: /}
    enforce: block

  - name: premium is for subscribers
    for: everyone
    disallow: {crawl: /premium/}

  - name: search engines
    for: [Googlebot, Bingbot]
    identity: verified
    allow: {crawl: /premium/}

  - name: slow down SEO tools
    for: [AhrefsBot, SemrushBot]
    crawl-delay: 10

  - name: staging
    for: everyone
    hosts: staging.example.com
    disallow: {crawl: /}
    enforce: block
    intended: [blocks-search]

enforcement: {mode: log, impostors: block}

expect:
  - Googlebot may crawl https://www.example.com/news/
  - category:ai-training may not crawl /
`

// newsroom is a Caddy with the console, a policy in the storage, and an activity database with a month of invented
// requests.
type newsroom struct {
	t       *testing.T
	console string // address of the pages, with a final slash
	site    string
	dir     string
	policy  string // file of the policy in the storage
}

// open starts a newsroom whose policy is text. more is added to the block of robots_policy.
func open(t *testing.T, text, more string) *newsroom {
	t.Helper()
	n := prepare(t, text)
	if err := os.CopyFS(filepath.Join(n.dir, "activity"), os.DirFS(n.month(text))); err != nil {
		t.Fatal(err)
	}
	n.load("activity "+filepath.Join(n.dir, "activity"), more)
	return n
}

// months maps policies to activity databases with a month of invented data.
var months = map[string]string{}

// month returns an activity database with a month of invented data. Tests with the same policy share one database,
// because inventing the data takes seconds.
func (n *newsroom) month(policy string) string {
	n.t.Helper()
	if dir := months[policy]; dir != "" {
		return dir
	}
	dir, err := os.MkdirTemp(caddy.DefaultStorage.Path, "month") // TestMain removes this storage
	if err != nil {
		n.t.Fatal(err)
	}
	share := "0.4"
	switch {
	case !testkit.Thorough():
		share = "0.05"
	case !testkit.Long():
		share = "0.1"
	}
	demo := caddytest.Command(n.dir, "robots-policy", "demo", dir, "--policy", n.policy, "--source", "storage:robots/site.yaml",
		"--host", "www.example.com,news.example.com", "--share", share)
	if out, err := demo.CombinedOutput(); err != nil {
		n.t.Fatalf("demo: %v\n%s", err, out)
	}
	months[policy] = dir
	return dir
}

// prepare does the same as open, but without a month of data, and without starting Caddy.
func prepare(t *testing.T, text string) *newsroom {
	t.Helper()
	dir := t.TempDir()
	n := &newsroom{t: t, dir: dir, policy: filepath.Join(dir, "storage", "robots", "site.yaml")}
	if err := os.MkdirAll(filepath.Dir(n.policy), 0o700); err != nil {
		t.Fatal(err)
	}
	if text != "" { // otherwise, there is no policy yet
		if err := os.WriteFile(n.policy, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	addrs := caddytest.FreeAddrs(t, 2)
	_, port, _ := strings.Cut(addrs[0], ":")
	n.console, n.site = "http://localhost:"+port+"/", "http://"+addrs[1]
	t.Cleanup(func() { _ = caddy.Stop() })
	return n
}

// load makes Caddy load the newsroom's configuration. activity is the line that sets the activity database, and more
// has further lines for the block of the console.
func (n *newsroom) load(activity, more string) {
	n.t.Helper()
	hash, err := bcrypt.GenerateFromPassword([]byte("secret"), bcrypt.MinCost)
	if err != nil {
		n.t.Fatal(err)
	}
	if err := caddytest.Load(fmt.Sprintf(`{
	admin off
	persist_config off
	auto_https off
	storage file_system %s
	robots_policy {
		%s
		console %s {
			title "The Example Gazette"
			write
			%s
		}
	}
}
http://:%s {
	robots_policy storage:robots/site.yaml {
		reload 1s
	}
	handle /crawlers/* {
		basic_auth {
			vera %[6]s
			edda %[6]s
			paul %[6]s
			mallory %[6]s
		}
		robots_policy_console {
			hosts *
		}
	}
	handle /open/* {
		robots_policy_console {
			hosts *
		}
	}
	respond "<!doctype html><title>a page</title>" 200
}
`, filepath.Join(n.dir, "storage"), activity, strings.Trim(strings.TrimPrefix(n.console, "http://"), "/"), more, n.site[strings.LastIndexByte(n.site, ':')+1:], hash)); err != nil {
		n.t.Fatal(err)
	}
}

// visit sends a request to the site as a crawler.
func (n *newsroom) visit(agent, host, path string, more ...string) int {
	n.t.Helper()
	r, err := http.NewRequestWithContext(n.t.Context(), http.MethodGet, n.site, nil)
	if err != nil {
		n.t.Fatal(err)
	}
	r.URL.Opaque = path // the target is sent unchanged, without escapes
	r.Host = host
	r.Header.Set("User-Agent", agent)
	for i := 0; i+1 < len(more); i += 2 {
		r.Header.Set(more[i], more[i+1])
	}
	response, err := http.DefaultClient.Do(r)
	if err != nil {
		return 0 // Go's client rejects requests that no client can send
	}
	defer response.Body.Close()
	return response.StatusCode
}

// chromium starts a browser, or skips the test.
func chromium(t *testing.T) *browser.Browser {
	t.Helper()
	if testing.Short() {
		t.Skip("a browser takes long")
	}
	program, err := exec.LookPath("chromium")
	if err != nil {
		t.Skip("no Chromium: apt-get install chromium")
	}
	return browser.Start(t, program)
}

// settled waits until the sent requests are in the totals, which takes about a second.
func settled() { time.Sleep(2500 * time.Millisecond) }
