// SPDX-License-Identifier: Apache-2.0

package integration_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"regexp"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/robotspolicy/caddy-robots-policy/internal/caddyside/catalogstore"
)

// A running server installs the released catalog automatically. It rejects a catalog whose text was changed after it
// was signed. In a program that does not contain the public key for the signature, "catalog auto" is an error.
func TestCatalogAuto(t *testing.T) {
	private, public, err := catalogstore.NewKey()
	if err != nil {
		t.Fatal(err)
	}
	_, exported, _ := runCommand(t, nil, "crawlers", "export")
	tomorrow := time.Now().UTC().AddDate(0, 0, 1).Format(time.DateOnly)
	text := regexp.MustCompile(`as-of: \S+`).ReplaceAllString(exported[:200], "as-of: "+tomorrow) + exported[200:] +
		"  NewlyAddedBot: {operator: Fresh, category: seo, honors: yes, source: field, examples: [NewlyAddedBot/1.0]}\n"
	signed, err := catalogstore.Sign([]byte(text), private)
	if err != nil {
		t.Fatal(err)
	}
	var served atomic.Pointer[[]byte]
	bad := []byte(strings.Replace(string(signed), "NewlyAddedBot", "NewlyAddedBut", 1))
	served.Store(&bad)
	web := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write(*served.Load()) }))
	t.Cleanup(web.Close)

	auto := "robots_policy {\ncatalog auto " + web.URL + "\n}"
	catalogstore.Key = public
	t.Cleanup(func() { catalogstore.Key = "" })
	s := startReloading(t, auto, "version: 1\nrules:\n  - for: category:seo\n    disallow: {crawl: /}\n    enforce: block\n", nil, "robots_policy POLICY\nrespond hello")
	type status struct {
		Catalog struct{ Source, Rejected string }
	}
	var now, then status
	s.ask(http.MethodPost, "/robots_policy/reload", nil)
	s.ask(http.MethodGet, "/robots_policy/", &now)
	if now.Catalog.Source != "embedded" || !strings.Contains(now.Catalog.Rejected, "was changed") || s.get("/", "User-Agent", "NewlyAddedBot/1.0").StatusCode != 200 {
		t.Errorf("a changed catalog: %+v", now)
	}
	served.Store(&signed)
	began := time.Now()
	s.ask(http.MethodPost, "/robots_policy/reload", nil)
	if code := s.get("/", "User-Agent", "NewlyAddedBot/1.0").StatusCode; code != 403 {
		t.Errorf("a valid catalog: NewlyAddedBot gets %d", code)
	}
	t.Logf("the catalog was in use after %s", time.Since(began).Round(time.Millisecond))
	s.ask(http.MethodGet, "/robots_policy/", &then)
	if then.Catalog.Source != "storage:robots_policy/crawlers.yaml" || then.Catalog.Rejected != "" {
		t.Errorf("a valid catalog: %+v", then)
	}
	if lines := s.log("installed the released catalog of crawlers"); len(lines) != 1 || !strings.Contains(fmt.Sprint(lines[0]), "NewlyAddedBot") {
		t.Errorf("%v", lines)
	}
	catalogstore.Key = ""
	if err := s.reconfigure("respond again"); err == nil || !strings.Contains(err.Error(), "built without the key") {
		t.Errorf("without the key: %v", err)
	}
}
