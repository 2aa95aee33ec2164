// SPDX-License-Identifier: Apache-2.0

package integration_test

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/robotspolicy/caddy-robots-policy/activity/store"
)

// A verified search crawler has requested some paths. A new policy that disallows these paths is neither loaded nor
// published, unless the policy says that this is intended.
func TestPolicyThatLosesSearchIsNotLoaded(t *testing.T) {
	const (
		open  = "version: 1\nenforcement: {mode: block}\nrules:\n  - for: everyone\n    allow: {crawl: [/]}\n"
		shut  = open + "  - for: Googlebot\n    disallow: {crawl: [/news/]}\n"
		other = open + "  - for: Googlebot\n    disallow: {crawl: [/shop/]}\n" // disallows paths that the search engine has never requested
	)
	s := startReloading(t, `servers {
	trusted_proxies static 127.0.0.0/8
}
robots_policy {
	activity DIR/activity {
		max_search_loss 0
	}
}`, open, nil, "robots_policy POLICY {\nreload off\n}\nrespond hello")
	for range 3 {
		s.get("/news/1", "User-Agent", "Mozilla/5.0 (compatible; Googlebot/2.1; +http://www.google.com/bot.html)", "X-Forwarded-For", "66.249.66.1")
	}
	dir := filepath.Join(s.dir, "activity")
	eventually(t, "the requests are stored", func() bool {
		r, err := store.OpenReader(t.Context(), dir)
		if err != nil {
			t.Fatal(err)
		}
		defer r.Close()
		crawlers, err := r.Crawlers(t.Context())
		return err == nil && len(crawlers) == 1
	})
	if result, message := s.reloadWith(shut); result != "rejected" || !strings.Contains(message, "Googlebot: 3 requests for 1 path blocked by line 6 (Googlebot)") {
		t.Errorf("%s: %s", result, message)
	}
	if s.get("/news/1", "User-Agent", "Googlebot").StatusCode != 200 {
		t.Error("the rejected policy is served")
	}
	if result, message := s.reloadWith(other); result != "applied" {
		t.Errorf("%s: %s", result, message)
	}

	// The command publish also rejects a policy that disallows paths which Googlebot has requested. It finds
	// Googlebot's requests in the activity database or in the access log.
	s.write("new.yaml", open)
	publish := func(args ...string) (string, error) {
		args = append([]string{"robots-policy", "publish", filepath.Join(s.dir, "new.yaml"), "--to", "storage:site.yaml", "--if-replay", dir}, args...)
		b, err := asCaddyCommand(s.dir, args...).CombinedOutput()
		return string(b), err
	}
	if out, err := publish(); err == nil || !strings.Contains(out, "No search engine loses nearly all pages of a host") || !strings.Contains(out, "written to ") {
		t.Errorf("%v\n%s", err, out)
	}
	s.write("new.yaml", shut)
	if out, err := publish(); err == nil || !strings.Contains(out, "Googlebot: 3 requests for 1 path blocked") || !strings.Contains(out, "not published") {
		t.Errorf("%v\n%s", err, out)
	}
	if out, err := publish("--max-search-loss", "3"); err == nil || !strings.Contains(out, "written to ") {
		t.Errorf("%v\n%s", err, out)
	}

	if result, message := s.reloadWith(strings.Replace(shut, "Googlebot\n", "Googlebot\n    intended: [blocks-search]\n", 1)); result != "applied" {
		t.Errorf("%s: %s", result, message)
	}
	if s.get("/news/1", "User-Agent", "Googlebot").StatusCode != 403 {
		t.Error("the policy with the key intended is not served")
	}
}

// If the server merges the site's own robots.txt, the search-loss limit takes that file into account. In this test, the
// site's file disallows everything, but the policy allows the site for search engines. A new policy text without this
// rule is not loaded, because search engines would lose the site. It is also not loaded before the server knows the
// site's file.
func TestSearchLossLimitOverTheSitesFile(t *testing.T) {
	const (
		allow  = "version: 1\nrules:\n  - for: category:search\n    allow: {crawl: /}\n  - for: GPTBot\n    disallow: {crawl: /}\n"
		silent = "version: 1\nrules:\n  - for: GPTBot\n    disallow: {crawl: /}\n"
	)
	s := startReloading(t, "robots_policy {\nactivity DIR/activity {\nmax_search_loss 0\n}\n}", allow, nil,
		"robots_policy POLICY {\nreload off\nrobots_txt merge\n}\nrespond /robots.txt \"User-agent: *\nDisallow: /\n\"\nrespond hello")
	if result, message := s.reloadWith(silent); result != "rejected" || !strings.Contains(message, "is not known") {
		t.Errorf("before the file is known: %s: %s", result, message)
	}
	s.get("/robots.txt")
	if result, message := s.reloadWith(silent); result != "rejected" || !strings.Contains(message, "disallowed for") || !strings.Contains(message, "the site's own robots.txt:2") {
		t.Errorf("with a site that disallows everything: %s: %s", result, message)
	}
}
