// SPDX-License-Identifier: Apache-2.0

package console

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/caddyserver/caddy/v2"

	"github.com/robotspolicy/caddy-robots-policy/integration_test/internal/caddytest"
)

// TestForwardAuth signs people in to the console with the recipe for forward_auth in docs/get-started/console-tour.md.
// The sign-in server of the test finds out from a cookie who a person is. A client cannot sign in by sending the header
// with a person's name itself.
func TestForwardAuth(t *testing.T) {
	page, err := os.ReadFile("../../docs/get-started/console-tour.md")
	if err != nil {
		t.Fatal(err)
	}
	recipe := regexp.MustCompile("(?s)```caddyfile\n(route /crawlers.*?)```").FindSubmatch(page)
	if recipe == nil {
		t.Fatal("docs/get-started/console-tour.md has no recipe for forward_auth")
	}
	auth := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		c, err := r.Cookie("session")
		switch {
		case err != nil:
			w.WriteHeader(http.StatusUnauthorized)
		case c.Value != "nameless":
			w.Header().Set("X-Auth-Request-Email", c.Value+"@example.com")
		}
	}))
	t.Cleanup(auth.Close)
	policy := filepath.Join(t.TempDir(), "site.yaml")
	if err := os.WriteFile(policy, []byte(policyText), 0o600); err != nil {
		t.Fatal(err)
	}
	addr := caddytest.FreeAddrs(t, 1)[0]
	if err := caddytest.Load(fmt.Sprintf(`{
	admin off
	persist_config off
	auto_https off
	robots_policy {
		console off {
			write
			user {http.request.header.X-Forwarded-Email}
			roles {
				publisher ann@example.com
				viewer *
			}
		}
	}
}
http://:%s {
	robots_policy %s
	%s
}
`, addr[strings.LastIndexByte(addr, ':')+1:], policy, strings.ReplaceAll(string(recipe[1]), "localhost:4180", strings.TrimPrefix(auth.URL, "http://")))); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = caddy.Stop() })
	for _, c := range []struct{ session, claims, want string }{
		{"", "ann@example.com", ""},
		{"ann", "", "Signed in as ann@example.com, a publisher."},
		{"bob", "", "Signed in as bob@example.com, with read access."},
		{"bob", "ann@example.com", "Signed in as bob@example.com, with read access."},
		{"nameless", "ann@example.com", "You are not signed in"},
	} {
		r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://"+addr+"/crawlers/health", nil)
		if err != nil {
			t.Fatal(err)
		}
		if c.session != "" {
			r.AddCookie(&http.Cookie{Name: "session", Value: c.session})
		}
		if c.claims != "" {
			r.Header.Set("X-Forwarded-Email", c.claims)
		}
		resp, err := http.DefaultTransport.RoundTrip(r)
		if err != nil {
			t.Fatal(err)
		}
		body, _ := io.ReadAll(resp.Body)
		_ = resp.Body.Close()
		if want := map[bool]int{true: 401, false: 200}[c.want == ""]; resp.StatusCode != want || !strings.Contains(string(body), c.want) {
			t.Errorf("the session of %q with the header of %q: %s, want %q in\n%.2000s", c.session, c.claims, resp.Status, c.want, body)
		}
	}
}
