// SPDX-License-Identifier: Apache-2.0

package console

import (
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/caddyserver/caddy/v2"
	"golang.org/x/crypto/bcrypt"

	"github.com/robotspolicy/caddy-robots-policy/integration_test/internal/caddytest"
)

// TestSignIn puts the pages on a site behind basic_auth, as docs/get-started/console-tour.md shows. Without a password,
// no page of the console can be read. With the password, people can read the pages, but cannot change anything.
func TestSignIn(t *testing.T) {
	dir := t.TempDir()
	policy := filepath.Join(dir, "site.yaml")
	if err := os.WriteFile(policy, []byte(policyText), 0o600); err != nil {
		t.Fatal(err)
	}
	hash, err := bcrypt.GenerateFromPassword([]byte("secret"), bcrypt.MinCost)
	if err != nil {
		t.Fatal(err)
	}
	addr := caddytest.FreeAddrs(t, 1)[0]
	if err := caddytest.Load(fmt.Sprintf(`{
	admin off
	persist_config off
	auto_https off
	robots_policy {
		activity %s
		console off {
			write
		}
	}
}
http://:%s {
	robots_policy %s
	handle /crawlers/* {
		basic_auth {
			editor %s
		}
		robots_policy_console
	}
	respond "a page"
}
`, filepath.Join(dir, "activity"), addr[strings.LastIndexByte(addr, ':')+1:], policy, hash)); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = caddy.Stop() })
	ask := func(method, path, password string) (int, string) {
		t.Helper()
		r, err := http.NewRequestWithContext(t.Context(), method, "http://"+addr+"/crawlers/"+path, strings.NewReader(url.Values{"do": {"publish"}, "text": {policyText + "# mine\n"}}.Encode()))
		if err != nil {
			t.Fatal(err)
		}
		r.Host = "www.example.com"
		if password != "" {
			r.SetBasicAuth("editor", password)
		}
		if method == http.MethodPost {
			r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
			r.Header.Set("Origin", "http://www.example.com")
		}
		response, err := http.DefaultTransport.RoundTrip(r)
		if err != nil {
			t.Fatal(err)
		}
		defer response.Body.Close()
		body, _ := io.ReadAll(response.Body)
		return response.StatusCode, string(body)
	}
	paths := []string{"console.css", "console.js", "events", "who-came.csv", "version?kind=policy&id=x", "evidence.zip?name=GPTBot", "diagnostics", "draft"}
	for _, s := range screens {
		paths = append(paths, s.path)
	}
	for _, path := range paths {
		for _, password := range []string{"", "wrong"} {
			if status, body := ask(http.MethodGet, path, password); status != http.StatusUnauthorized || body != "" {
				t.Errorf("/%s with the password %q: status %d, %d bytes", path, password, status, len(body))
			}
		}
	}
	for _, s := range screens {
		if s.name == "crawler" {
			continue // no crawler has sent a request
		}
		status, body := ask(http.MethodGet, s.path, "secret")
		if status != http.StatusOK || !strings.Contains(body, "</html>") || strings.Contains(body, "staging.example.com") || strings.Contains(body, dir) {
			at := max(0, strings.Index(body, dir)-100)
			t.Errorf("/%s with the password: status %d: %.300s", s.path, status, body[at:])
		}
	}
	if status, body := ask(http.MethodPost, "change", "secret"); status == http.StatusSeeOther {
		t.Errorf("published from a site: %s", body)
	}
	if text, err := os.ReadFile(policy); err != nil || string(text) != policyText {
		t.Errorf("the policy was changed: %v", err)
	}
}
