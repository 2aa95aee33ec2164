// SPDX-License-Identifier: Apache-2.0

package integration_test

import (
	"flag"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/caddyserver/caddy/v2"

	"github.com/robotspolicy/caddy-robots-policy/integration_test/internal/caddytest"
)

var update = flag.Bool("update", false, "write what is seen into the files that show it")

func TestMain(m *testing.M) { caddytest.Main(thenTable{m}, func(bool) { useTestResolver() }) }

// startExample runs Caddyfile.example on free ports and returns its address.
func startExample(t *testing.T) string {
	t.Helper()
	text, err := os.ReadFile("../Caddyfile.example")
	if err != nil {
		t.Fatal(err)
	}
	site, paper, admin := freeAddr(t), freeAddr(t), freeAddr(t)
	port := func(addr string) string { return addr[strings.LastIndexByte(addr, ':'):] }
	caddyfile := strings.NewReplacer(":8080", port(site), ":8081", port(paper), ":2019", port(admin),
		"admin localhost", "persist_config off\n\tadmin localhost", " examples/", " ../examples/", "caddy-data/", t.TempDir()+"/").Replace(string(text))
	if err := load(caddyfile); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := caddy.Stop(); err != nil {
			t.Error(err)
		}
	})
	return site
}

func firstDifference(want, got string) string {
	w, g := strings.Split(want, "\n"), strings.Split(got, "\n")
	for i := range w {
		if i >= len(g) || w[i] != g[i] {
			return fmt.Sprintf("line %d:\n- %s\n+ %s", i+1, w[i], strings.Join(g[min(i, len(g)):min(i+1, len(g))], ""))
		}
	}
	return fmt.Sprintf("%d lines, want %d", len(g), len(w))
}

// TestReadmePolicy serves the policy at the start of the README, and checks the statements in the table below it.
func TestReadmePolicy(t *testing.T) {
	text := ""
	for _, b := range shownBlocks(t) {
		if b.page == "../README.md" && b.language == "yaml" {
			text = b.text
			break
		}
	}
	s := newServer(t, t.TempDir(), text, nil)
	s.run(s.caddyfile("admin off", map[string]string{"": "robots_policy POLICY\nroot ../examples/site\ntry_files {path} {path}.html\nfile_server"}))
	robots := s.get("/robots.txt", "User-Agent", gptBot)
	for _, want := range []string{"User-agent: *\nDisallow: /admin/\n", "User-agent: ClaudeBot\n", "User-agent: GPTBot\n", "Content-Usage: train-ai=n\n"} {
		if robots.StatusCode != 200 || !strings.Contains(strings.ReplaceAll(robots.body, "\r", ""), want) {
			t.Errorf("robots.txt for GPTBot: %s, without %q:\n%s", robots.Status, want, robots.body)
		}
	}
	draft := s.get("/drafts/tomorrow.html", "User-Agent", someBrowser)
	if draft.Header.Get("X-Robots-Tag") != "noindex" || !strings.Contains(draft.body, `<meta name="robots" content="noindex">`) {
		t.Errorf("a draft: %v\n%.300s", draft.Header, draft.body)
	}
	home := s.get("/", "User-Agent", someBrowser)
	if home.StatusCode != 200 || home.Header.Get("Content-Usage") != "train-ai=n" || home.Header.Get("X-Robots-Tag") != "" {
		t.Errorf("the home page: %s %v", home.Status, home.Header)
	}
	for _, agent := range []string{gptBot, "ClaudeBot/1.0"} {
		if r := s.get("/", "User-Agent", agent); r.StatusCode != 403 {
			t.Errorf("%s: %s", agent, r.Status)
		}
	}
}
