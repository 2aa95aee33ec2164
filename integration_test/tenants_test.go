// SPDX-License-Identifier: Apache-2.0

package integration_test

import (
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/robotspolicy/caddy-robots-policy/policyfile"
)

// tenantPolicy returns a policy that disallows a path for RudeBot and limits SlowBot. It contains version in a comment,
// so that each version is a different text.
func tenantPolicy(path string, version int) string {
	return fmt.Sprintf("version: 1\ncrawlers:\n  RudeBot: {}\n  SlowBot: {}\nrules:\n  - for: RudeBot\n    disallow:\n      crawl: %s\n    enforce: block\n  - for: SlowBot\n    limit: 3/h\n# %d\n", path, version)
}

// The policies of two tenants run on one server. Whatever the evil tenant does with its policy file, and whatever
// crawlers do on its hosts, the policy of the good tenant is served, reloaded and enforced as usual.
func TestHostileTenant(t *testing.T) {
	s := startLogged(t, slicePolicy, nil, "respond x")
	dir := filepath.Join(s.dir, "tenants")
	write := func(host, text string) {
		t.Helper()
		if err := os.MkdirAll(dir, 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, host+".yaml"), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write("good.example", tenantPolicy("/good/", 0))
	write("evil.example", tenantPolicy("/evil/", 0))
	s.load(s.logged("robots_policy DIR/tenants/{labels.1}.{labels.0}.yaml {\nreload 50ms\n}\nrespond page"))
	ask := func(host, path string) response { return s.get(path, "Host", host, "User-Agent", "RudeBot/1.0") }
	for _, host := range []string{"good.example", "evil.example"} {
		if r := ask(host, "/robots.txt"); r.StatusCode != http.StatusOK {
			t.Fatalf("%s: %s", host, r.Status)
		}
	}

	// The policies of both tenants have the same limit. A tenant's limit applies only to the requests for its own host.
	for host, n := range map[string]int{"evil.example": 50, "good.example": 10} {
		passed := 0
		for range n {
			if s.get("/x", "Host", host, "User-Agent", "SlowBot/1.0").StatusCode == http.StatusOK {
				passed++
			}
		}
		if passed != 3 {
			t.Errorf("%s: %d requests pass, want 3", host, passed)
		}
	}

	large := "version: 1\nrules:\n" + strings.Repeat("  - for: OtherBot\n    disallow:\n      crawl: [/a, /b]\n", policyfile.MaxSize/64)
	for _, attack := range []struct {
		name string
		do   func()
	}{
		{"address lists", func() {
			var lists []string
			for i := range 8 {
				lists = append(lists, fmt.Sprintf("https://192.0.2.1/%d.json", i))
			}
			write("evil.example", "version: 1\ncrawlers:\n  Googlebot: {address-lists: ["+strings.Join(lists, ", ")+"]}\n  RudeBot: {}\nrules:\n  - for: RudeBot\n    disallow:\n      crawl: /lists/\n    enforce: block\n")
			eventually(t, "the policy with lists", func() bool { return ask("evil.example", "/lists/").StatusCode == http.StatusForbidden })
		}},
		{"a broken file", func() { write("evil.example", "version: 1\nrulez: 1\n") }},
		{"a large file", func() { write("evil.example", large) }},
		{"made-up hosts", func() {
			for i := range 300 {
				s.get("/robots.txt", "Host", fmt.Sprintf("h%d.evil.example", i), "User-Agent", "RudeBot/1.0")
			}
		}},
		{"an endless file", func() { replaceBySymlink(t, filepath.Join(dir, "evil.example.yaml"), "/dev/zero") }},
		{"a foreign file", func() {
			replaceBySymlink(t, filepath.Join(dir, "evil.example.yaml"), filepath.Join(s.dir, "policy.yaml"))
		}},
	} {
		name := attack.name
		attack.do()
		path := "/" + strings.ReplaceAll(name, " ", "-") + "/"
		write("good.example", tenantPolicy(path, len(name)))
		eventually(t, name+": the good tenant's new policy", func() bool { return ask("good.example", path).StatusCode == http.StatusForbidden })
		if r := ask("good.example", "/evil/"); r.StatusCode != http.StatusOK || r.body != "page" {
			t.Errorf("%s: %s", name, r.Status)
		}
	}
	if r := s.get("/x", "Host", "good.example", "User-Agent", "Googlebot/2.1", "X-Forwarded-For", "66.249.66.1"); r.StatusCode != http.StatusOK {
		t.Errorf("Googlebot: %s", r.Status)
	}
	// The crawler has read version 1 of the good tenant's robots.txt, and then requested a path that this version
	// disallows. The server reports this violation. It still remembers which version the crawler read, although the
	// crawler has requested many hosts of the evil tenant since then.
	if got := ask("good.example", "/good/x"); got.StatusCode != http.StatusOK {
		t.Errorf("a rule that was removed: %s", got.Status)
	}
	if lines := s.lines("caddy.log", "crawler violates robots.txt", 1); len(lines) != 1 || lines[0]["host"] != "good.example" || lines[0]["uri"] != "/good/x" {
		t.Errorf("%v", lines)
	}
}

func replaceBySymlink(t *testing.T, path, target string) {
	t.Helper()
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(target, path); err != nil {
		t.Skip(err)
	}
}
