// SPDX-License-Identifier: Apache-2.0

package integration_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"
)

// catalogStatus is the admin API's report about the catalog.
type catalogStatus struct {
	Catalog struct {
		AsOf     string `json:"as_of"`
		Source   string
		Crawlers int
		Error    string
	}
}

// If a newer catalog contains an additional crawler, a running server recognizes this crawler, and applies the rules
// for its category. This is tested with one policy for all hosts, and with a policy file for each host.
func TestCatalogUpdate(t *testing.T) {
	const policy = "version: 1\nrules:\n  - for: category:seo\n    disallow: {crawl: /}\n    enforce: block\n"
	s := startReloading(t, "metrics", policy, nil, "robots_policy POLICY\nrespond hello")
	body := "handle /own/* {\nrobots_policy DIR/hosts/{host}.yaml\nrespond hello\n}\nhandle {\nrobots_policy POLICY {\nreload off\n}\nrespond hello\n}"
	if err := os.Mkdir(filepath.Join(s.dir, "hosts"), 0o700); err != nil {
		t.Fatal(err)
	}
	s.write("hosts/127.0.0.1.yaml", policy)
	if err := s.reconfigure(body); err != nil {
		t.Fatal(err)
	}
	s.write("storage.caddyfile", "{\nstorage file_system "+filepath.Join(s.dir, "storage")+"\n}\n")
	crawlersCommand := func(args ...string) (int, string, string) {
		return runCommand(t, nil, append(append([]string{"crawlers"}, args...), "--config", filepath.Join(s.dir, "storage.caddyfile"), "--adapter", "caddyfile")...)
	}
	status := func(path, agent string) int { return s.get(path, "User-Agent", agent).StatusCode }
	expect := func(what, source string, fresh int) {
		t.Helper()
		for _, path := range []string{"/", "/own/x"} {
			if got := status(path, "NewlyAddedBot/1.0"); got != fresh {
				t.Errorf("%s: NewlyAddedBot gets %d for %s, want %d", what, got, path, fresh)
			}
			if got := status(path, "Mozilla/5.0 (compatible; AhrefsBot/7.0; +http://ahrefs.com/robot/)"); got != 403 {
				t.Errorf("%s: AhrefsBot gets %d for %s", what, got, path)
			}
		}
		var now catalogStatus
		s.ask(http.MethodGet, "/robots_policy/", &now)
		if now.Catalog.Source != source || now.Catalog.Crawlers < 500 || now.Catalog.AsOf == "" {
			t.Errorf("%s: %+v", what, now)
		}
	}
	expect("at first", "embedded", 200)

	_, exported, _ := runCommand(t, nil, "crawlers", "export")
	today := time.Now().UTC().Truncate(24 * time.Hour)
	dated := func(date string) string {
		return regexp.MustCompile(`as-of: \S+`).ReplaceAllString(exported[:200], "as-of: "+date) + exported[200:]
	}
	newer := dated(today.Format(time.DateOnly)) +
		"  NewlyAddedBot: {operator: Fresh, category: seo, honors: yes, source: field, examples: [NewlyAddedBot/1.0]}\n"
	web := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte(newer)) }))
	t.Cleanup(web.Close)
	s.write("short.yaml", newer[:strings.Index(newer, "\n  AddSearchBot:")+1])
	if code, _, errOut := crawlersCommand("update", filepath.Join(s.dir, "short.yaml")); code != 1 || !strings.Contains(errOut, "a catalog must be complete") {
		t.Errorf("%d %s", code, errOut)
	}
	s.write("future.yaml", dated("2999-01-01"))
	if code, _, errOut := crawlersCommand("update", "--allow-loss", filepath.Join(s.dir, "future.yaml")); code != 1 || !strings.Contains(errOut, "the date of the catalog (as-of: 2999-01-01) is after today") {
		t.Errorf("%d %s", code, errOut)
	}
	if code, out, _ := crawlersCommand("update", web.URL, "--dry-run"); code != 0 || !strings.Contains(out, "1 added, 0 removed\ndry run") {
		t.Errorf("%d %s", code, out)
	}
	s.ask(http.MethodPost, "/robots_policy/reload", nil)
	expect("nothing was written", "embedded", 200)
	if code, out, errOut := crawlersCommand("update", web.URL); code != 0 || !strings.Contains(out, "written to "+filepath.Join(s.dir, "storage", "robots_policy", "crawlers.yaml")+";") {
		t.Fatalf("%d %s%s", code, out, errOut)
	}
	if code, out, _ := crawlersCommand(); code != 0 || !strings.HasPrefix(out, "catalog of "+today.Format(time.DateOnly)+", storage:robots_policy/crawlers.yaml, ") {
		t.Errorf("%d %.200s", code, out)
	}
	s.ask(http.MethodPost, "/robots_policy/reload", nil)
	expect("it was updated", "storage:robots_policy/crawlers.yaml", 403)
	if err := s.reconfigure(body + "\nheader X-Again yes"); err != nil {
		t.Fatal(err)
	}
	expect("after a reload of Caddy", "storage:robots_policy/crawlers.yaml", 403)
	metrics := s.ask(http.MethodGet, "/metrics", nil).body
	for _, want := range []string{fmt.Sprintf(`caddy_robots_policy_catalog_timestamp_seconds{source="storage"} %v`, float64(today.Unix())), `caddy_robots_policy_part_failing{part="catalog"} 0`, "caddy_robots_policy_embedded_address_lists_timestamp_seconds 1."} {
		if !strings.Contains(metrics, want) {
			t.Errorf("no metric %s", want)
		}
	}
	if strings.Contains(metrics, "address_list_entries{") && regexp.MustCompile(`address_list_entries\{[^}]*\} 0\n`).MatchString(metrics) {
		t.Error("a list without entries is exported")
	}

	s.write("storage/robots_policy/crawlers.yaml", newer+"  Broken\n")
	var now catalogStatus
	if r := s.ask(http.MethodPost, "/robots_policy/reload", &now); r.StatusCode != http.StatusUnprocessableEntity || !strings.Contains(now.Catalog.Error, "yaml:") {
		t.Errorf("status %d after a damaged catalog: %+v", r.StatusCode, now)
	}
	expect("a damaged one", "storage:robots_policy/crawlers.yaml", 403)
	if len(s.log("an optional part of robots_policy does not work")) != 1 {
		t.Error("the damaged catalog was not logged exactly once")
	}
	if err := os.Remove(filepath.Join(s.dir, "storage/robots_policy/crawlers.yaml")); err != nil {
		t.Fatal(err)
	}
	s.ask(http.MethodPost, "/robots_policy/reload", nil)
	expect("it was removed", "embedded", 200)
}
