// SPDX-License-Identifier: Apache-2.0

package integration_test

import (
	"bytes"
	"io/fs"
	"os"
	"path/filepath"
	"testing"

	"github.com/caddyserver/caddy/v2"
)

// TestNothingOfClientsIsStored checks the files that the recorders write. As docs/operate/privacy.md promises, these
// files do not contain addresses, cookies or other header fields of clients. They only contain the query of a URL if a
// decision depended on it.
func TestNothingOfClientsIsStored(t *testing.T) {
	s := newServer(t, t.TempDir(), "version: 1\nrules:\n  - {for: GPTBot, disallow: {crawl: /}, intended: true, enforce: block}\n", nil)
	s.run(s.caddyfile(`admin off
servers {
	trusted_proxies static 127.0.0.1/32
	trusted_proxies_strict
}
robots_policy {
	crawler_log
	evidence DIR/records/evidence
	activity DIR/records/activity
	metrics
}
log requests {
	include http.robots_policy.crawler_log
	output file DIR/records/crawlers.log
}`, map[string]string{"": "robots_policy POLICY\nrespond hello"}))
	const address, secret = "203.0.113.77", "a-secret-of-the-client"
	for _, agent := range []string{"GPTBot/1.2", "Googlebot/2.1", "curl/8.0", someBrowser} {
		for _, path := range []string{"/robots.txt", "/", "/seen?q=" + secret} {
			s.get(path, "User-Agent", agent, "X-Forwarded-For", address, "Cookie", secret, "Referer", "https://example.net/"+secret, "Authorization", "Bearer "+secret)
		}
	}
	if err := caddy.Stop(); err != nil {
		t.Fatal(err)
	}
	files, recorded := 0, false
	err := filepath.WalkDir(filepath.Join(s.dir, "records"), func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		files++
		text, err := os.ReadFile(path)
		recorded = recorded || bytes.Contains(text, []byte("GPTBot"))
		for _, of := range []string{address, secret, "Mozilla/5.0 (X11"} {
			if bytes.Contains(text, []byte(of)) {
				t.Errorf("%s has %q", path, of)
			}
		}
		return err
	})
	if err != nil || files < 3 || !recorded {
		t.Errorf("%d files, with requests: %v, %v", files, recorded, err)
	}
}
