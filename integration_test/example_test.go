// SPDX-License-Identifier: Apache-2.0

package integration_test

import (
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/caddyserver/caddy/v2"

	"github.com/robotspolicy/caddy-robots-policy/activity/evidence"
)

// With Caddyfile.example, the requests of crawlers are stored, and the stored requests can be replayed.
func TestExampleStoresWhatCrawlersDo(t *testing.T) {
	dir := t.TempDir()
	text, err := os.ReadFile("../Caddyfile.example")
	if err != nil {
		t.Fatal(err)
	}
	site, paper, admin := freeAddr(t), freeAddr(t), freeAddr(t)
	port := func(addr string) string { return addr[strings.LastIndexByte(addr, ':'):] }
	if err := load(strings.NewReplacer(":8080", port(site), ":8081", port(paper), ":2019", port(admin),
		"admin localhost", "persist_config off\n\tadmin localhost", " examples/", " ../examples/", "caddy-data/", dir+"/").Replace(string(text))); err != nil {
		t.Fatal(err)
	}
	stopped := false
	defer func() {
		if !stopped {
			_ = caddy.Stop()
		}
	}()
	for _, path := range []string{"/robots.txt", "/admin/x"} {
		r, err := http.NewRequest(http.MethodGet, "http://"+site+path, nil)
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set("User-Agent", gptBot)
		resp, err := client.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		_ = resp.Body.Close()
	}
	stopped = true
	if err := caddy.Stop(); err != nil {
		t.Fatal(err)
	}
	var types []string
	if err := evidence.Read(filepath.Join(dir, "evidence"), func(_ string, e *evidence.Event, _ string) error {
		types = append(types, e.Type)
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	if got := strings.Join(types, " "); got != "start published served read violation stop" {
		t.Error("evidence:", got)
	}
	out, err := asCaddyCommand(t.TempDir(), "robots-policy", "replay", "../examples/site-policy.yaml", "--database", filepath.Join(dir, "activity")).CombinedOutput()
	if err != nil || !strings.Contains(string(out), "2 requests") || !strings.Contains(string(out), "GPTBot") {
		t.Errorf("%v\n%s", err, out)
	}
}
