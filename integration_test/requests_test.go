// SPDX-License-Identifier: Apache-2.0

package integration_test

import (
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/caddyserver/caddy/v2"

	"github.com/robotspolicy/caddy-robots-policy/activity/evidence"
	"github.com/robotspolicy/caddy-robots-policy/activity/store"
)

const visitsPolicy = `version: 1
enforcement: {mode: block}
rules:
  - name: AI out
    for: category:ai-training
    disallow: {crawl: [/]}
  - name: private
    for: everyone
    enforce: log
    disallow: {crawl: [/private/, "/*?secret="]}
`

// startRecording runs Caddy with every recorder. The files of the recorders are in the server's directory. upstream
// answers the requests that robots_policy does not block.
func startRecording(t *testing.T, upstream http.Handler) (s *server, caddyfile string) {
	t.Helper()
	return startRecordingWith(t, visitsPolicy, upstream)
}

func startRecordingWith(t *testing.T, text string, upstream http.Handler) (s *server, caddyfile string) {
	t.Helper()
	s = &server{t: t, addr: freeAddr(t), dir: t.TempDir()}
	s.write("policy.yaml", text)
	_, port, _ := net.SplitHostPort(s.addr)
	_, upstreamPort, _ := net.SplitHostPort(freeAddr(t))
	up := &http.Server{Addr: "127.0.0.1:" + upstreamPort, Handler: upstream}
	l, err := net.Listen("tcp", up.Addr)
	if err != nil {
		t.Fatal(err)
	}
	go func() { _ = up.Serve(l) }()
	t.Cleanup(func() { _ = up.Close() })
	caddyfile = fmt.Sprintf(`{
	admin off
	persist_config off
	auto_https off
	robots_policy {
		crawler_log
		evidence %[1]s/evidence
		activity %[1]s/activity
	}
	log requests {
		include http.robots_policy.crawler_log
		output file %[1]s/crawlers.log
	}
	log default {
		output discard
	}
}
http://:%[2]s {
	@unknown crawler unlisted
	header @unknown X-Unknown yes
	handle_errors {
		respond "error page"
	}
	# Two handlers record a request once, and count a page once.
	robots_policy %[1]s/policy.yaml
	robots_policy %[1]s/policy.yaml
	reverse_proxy %[3]s
}
`, s.dir, port, up.Addr)
	s.load(caddyfile)
	return s, caddyfile
}

func TestVisits(t *testing.T) {
	upstream := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/missing" {
			w.WriteHeader(http.StatusNotFound)
		}
		_, _ = w.Write([]byte("hello"))
	})
	s, caddyfile := startRecording(t, upstream)
	stopped := false
	stop := func() {
		if !stopped {
			stopped = true
			if err := caddy.Stop(); err != nil {
				t.Error(err)
			}
		}
	}
	defer stop()
	const googlebot = "Mozilla/5.0 (compatible; Googlebot/2.1; +http://www.google.com/bot.html)"
	requests := []struct{ path, agent, want string }{ // without the host
		{"/robots.txt", gptBot, "/robots.txt GPTBot ai-training unverified allowed status=200 robots_txt"},
		{"/x", gptBot, "/x GPTBot ai-training unverified blocked rule=AI out status=403 read violation"},
		{"/private/a?token=1", googlebot, "/private/a Googlebot search unverified would_block rule=private status=200"},
		{"/a?secret=1", googlebot, "/a?secret=1 Googlebot search unverified would_block rule=private status=200"},
		{"/missing", googlebot, "/missing Googlebot search unverified allowed status=404"},
		{"/y?token=1", "curl/8.5.0", "/y curl unlisted unverified allowed status=200"},
		{"/y", "Mozilla/5.0 (Windows NT 10.0; Win64; x64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/140.0.0.0 Safari/537.36", ""},
	}
	var want []string
	for _, r := range requests {
		s.get(r.path, "User-Agent", r.agent)
		if r.want != "" {
			want = append(want, r.want)
		}
	}
	s.load(caddyfile + "\n# reloaded\n")
	s.get("/z", "User-Agent", gptBot)
	want = append(want, "/z GPTBot ai-training unverified blocked rule=AI out status=403 read violation")
	stop()

	lines, err := os.ReadFile(filepath.Join(s.dir, "crawlers.log"))
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for line := range strings.Lines(string(lines)) {
		got = append(got, visitLine(t, line))
	}
	if g, w := strings.Join(got, "\n"), strings.Join(want, "\n"); g != w {
		t.Errorf("the log has\n%s\nwant\n%s", g, w)
	}
	checkEvidence(t, filepath.Join(s.dir, "evidence"))
	checkStore(t, filepath.Join(s.dir, "activity"), int64(len(want)))
}

// A client with the User-Agent of a browser is treated as a person, even if it requests robots.txt and then many pages.
// Its requests are neither recorded nor matched by the matcher for unlisted clients.
func TestNoVisitsOfABrowser(t *testing.T) {
	s, _ := startRecording(t, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte("hello")) }))
	s.get("/robots.txt", "User-Agent", chromeAgent)
	for i := range 40 {
		if r := s.get(fmt.Sprintf("/page-%d", i), "User-Agent", chromeAgent); r.StatusCode != http.StatusOK || r.Header.Get("X-Unknown") != "" {
			t.Fatalf("page %d: %s, %s", i, r.Status, r.Header)
		}
	}
	if err := caddy.Stop(); err != nil {
		t.Fatal(err)
	}
	if lines, err := os.ReadFile(filepath.Join(s.dir, "crawlers.log")); err != nil && !os.IsNotExist(err) || len(lines) > 0 {
		t.Errorf("%v, the log has\n%s", err, lines)
	}
}

// visitLine returns a line of the crawler log as a short text. It also checks the fields that are not part of this
// text.
func visitLine(t *testing.T, line string) string {
	t.Helper()
	var v struct {
		Format                                                                  int
		Host, Path, Crawler, Category, Identity, Decision, Rule, Policy, Robots string
		Status, Bytes                                                           int
		RobotsTxt                                                               bool `json:"robots_txt"`
		Violation                                                               bool
		Time                                                                    float64
	}
	if err := json.Unmarshal([]byte(line), &v); err != nil {
		t.Fatalf("%s: %v", line, err)
	}
	if v.Format != 1 || v.Host != "127.0.0.1" || len(v.Policy) != 12 || v.Status == http.StatusOK && v.Bytes == 0 || v.Time == 0 {
		t.Errorf("%s", line)
	}
	text := fmt.Sprintf("%s %s %s %s %s", v.Path, v.Crawler, v.Category, v.Identity, v.Decision)
	if v.Rule != "" {
		text += " rule=" + v.Rule
	}
	text += fmt.Sprintf(" status=%d", v.Status)
	switch {
	case v.RobotsTxt:
		text += " robots_txt"
	case v.Robots != "":
		text += " read"
	}
	if v.Violation {
		text += " violation"
	}
	return text
}

func checkEvidence(t *testing.T, dir string) {
	t.Helper()
	c, err := evidence.Verify(dir, nil, nil)
	if err != nil || len(c.Problems) > 0 || !c.FromStart {
		t.Errorf("evidence: %+v, %v", c, err)
	}
	count := map[string]int{}
	if err := evidence.Read(dir, func(_ string, e *evidence.Event, _ string) error {
		count[e.Type]++
		if p := e.Published; p != nil && (!strings.Contains(p.Documents[0].Text, "User-agent: GPTBot\n") || p.Text != visitsPolicy || p.Number != "1" || p.Program == "" || p.Catalog == "") {
			t.Errorf("published: %+v", p)
		}
		return nil
	}); err != nil {
		t.Error(err)
	}
	if fmt.Sprint(count) != "map[published:1 read:1 start:1 stop:1 violation:2]" {
		t.Error("events:", count)
	}
}

func checkStore(t *testing.T, dir string, requests int64) {
	t.Helper()
	r, err := store.OpenReader(t.Context(), dir)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	rows, err := r.Totals(t.Context(), store.Query{From: time.Now().Add(-time.Hour), To: time.Now().Add(time.Hour), By: []store.Dimension{store.ByKind}})
	if err != nil {
		t.Fatal(err)
	}
	sum := int64(0)
	for _, row := range rows {
		sum += row.Requests
	}
	if sum != requests || len(rows) != 3 {
		t.Errorf("the database has %+v, want %d requests", rows, requests)
	}
	all, err := r.Publications(t.Context(), "")
	if err != nil || len(all) != 1 || all[0].Text != visitsPolicy || all[0].Label() != "v1" {
		t.Errorf("publications: %+v, %v", all, err)
	}
	reads, err := r.Reads(t.Context())
	if err != nil || len(reads) != 1 || reads[0].Host != "127.0.0.1" || reads[0].Label() != "v1" {
		t.Errorf("reads: %+v, %v", reads, err)
	}
}
