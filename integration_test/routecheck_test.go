// SPDX-License-Identifier: Apache-2.0

package integration_test

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/robotspolicy/caddy-robots-policy/integration_test/internal/caddytest"
	"github.com/robotspolicy/caddy-robots-policy/internal/testkit"
)

// Caddy logs one warning in each of three cases. A handler answers /robots.txt before robots_policy. A route for
// /robots.txt is never used, because robots_policy answers first. Or one request passes two robots_policy handlers.
func TestRouteWarnings(t *testing.T) {
	const (
		twice  = "two robots_policy directives apply"
		before = "another handler answers /robots.txt before robots_policy"
		after  = "another route for /robots.txt is never used"
	)
	for name, c := range map[string]struct{ body, want string }{
		"twice":  {"robots_policy POLICY\nhandle /a/* {\nrobots_policy POLICY\nrespond x\n}\nrespond y", twice},
		"before": {"route {\nrespond /robots.txt x\nrobots_policy POLICY\nrespond y\n}", before},
		"handle": {"handle /robots.txt {\nrespond x\n}\nhandle {\nrobots_policy POLICY\nrespond y\n}", before},
		"after":  {"robots_policy POLICY\nhandle /robots.txt {\nrespond x\n}\nrespond y", after},
		"none":   {"robots_policy POLICY\nhandle /a/* {\nrespond x\n}\nhandle_errors {\nrobots_policy POLICY\nrespond z\n}", ""},
	} {
		t.Run(name, func(t *testing.T) {
			s := startLogged(t, slicePolicy, nil, c.body)
			// Warnings are logged before the configuration is reported as loaded, so they must be in the log now.
			log, err := os.ReadFile(filepath.Join(s.dir, "caddy.log"))
			if err != nil {
				t.Fatal(err)
			}
			for _, says := range []string{twice, before, after} {
				want := 0
				if says == c.want {
					want = 1
				}
				if got := strings.Count(string(log), says); got != want {
					t.Errorf("%q is in the log %d times, want %d", says, got, want)
				}
			}
		})
	}
}

// A warning is logged if clients can set the address that verifies them.
func TestForgedAddressesWarning(t *testing.T) {
	for name, c := range map[string]struct {
		servers, verify string
		want            int
	}{
		"not strict":     {"trusted_proxies static 127.0.0.0/8", "lists dns", 1},
		"embedded lists": {"trusted_proxies static 127.0.0.0/8", "embedded", 1},
		"strict":         {"trusted_proxies static 127.0.0.0/8\ntrusted_proxies_strict", "lists dns", 0},
		"off":            {"trusted_proxies static 127.0.0.0/8", "off", 0},
		"none":           {"client_ip_headers X-Forwarded-For", "lists dns", 0},
		"another header": {"trusted_proxies static 127.0.0.0/8\nclient_ip_headers CF-Connecting-IP", "lists dns", 0},
		"one of two":     {"trusted_proxies static 127.0.0.0/8\nclient_ip_headers X-Real-Ip x-forwarded-for", "lists dns", 1},
	} {
		t.Run(name, func(t *testing.T) {
			s := newServer(t, t.TempDir(), slicePolicy, nil)
			config := strings.Replace(s.logged("robots_policy POLICY {\nverify "+c.verify+"\n}\nrespond x"), "trusted_proxies static 127.0.0.0/8", c.servers, 1)
			s.run(config)
			log, err := os.ReadFile(filepath.Join(s.dir, "caddy.log"))
			if err != nil {
				t.Fatal(err)
			}
			if n := strings.Count(string(log), "Add trusted_proxies_strict"); n != c.want {
				t.Errorf("%d warnings, want %d\n%s", n, c.want, log)
			}
		})
	}
}

// If requests for /robots.txt do not reach a directive robots_policy, a warning names the host and the line of the
// directive. Caddy logs it when it starts, and `caddy validate` prints it.
func TestUnreachedPolicies(t *testing.T) {
	const (
		noRoute  = "requests for /robots.txt do not reach robots_policy"
		answered = "another handler answers /robots.txt before robots_policy"
		pages    = "requests for pages do not reach robots_policy"
	)
	const auth = "basic_auth {\nann $2a$14$Zkx19XLiW6VYouLHR5NmfOFU0z2GTNmpkT/5qqR7hx4IjWJPDhjvG\n}\n"
	for name, c := range map[string]struct{ body, want, handler string }{
		"handle":                {"handle /docs/* {\nrobots_policy POLICY\nrespond x\n}\nrespond y", noRoute, ""},
		"handle_path":           {"handle_path /docs/* {\nrobots_policy POLICY\nrespond x\n}\nrespond y", noRoute, ""},
		"matcher":               {"robots_policy /docs/* POLICY\nrespond y", noRoute, ""},
		"named matcher":         {"@docs path /docs/* /robots\nrobots_policy @docs POLICY\nrespond y", noRoute, ""},
		"not matcher":           {"@pages path *.html /\nrobots_policy @pages POLICY\nrespond y", noRoute, ""},
		"other method":          {"@post method POST\nrobots_policy @post POLICY\nrespond y", noRoute, ""},
		"file_server":           {"route {\nfile_server\nrobots_policy POLICY\n}", answered, "file_server"},
		"proxy":                 {"route {\nreverse_proxy localhost:1\nrobots_policy POLICY\n}", answered, "reverse_proxy"},
		"handle before":         {"handle /*.txt {\nfile_server\n}\nhandle {\nrobots_policy POLICY\nrespond y\n}", answered, "file_server"},
		"basic_auth":            {"route {\n" + auth + "robots_policy POLICY\nrespond y\n}", answered, "basic_auth"},
		"forward_auth":          {"route {\nforward_auth localhost:1 {\nuri /auth\n}\nrobots_policy POLICY\nrespond y\n}", answered, "reverse_proxy"},
		"redir":                 {"redir https://example.org{uri}\nrobots_policy POLICY", answered, "redir"},
		"pages":                 {"route {\nrespond / x\n@pages not path /robots.txt\nrespond @pages y\nrobots_policy POLICY\n}", pages, ""},
		"pages not asked":       {"robots_policy /robots.txt POLICY\nrespond y", "", ""},
		"robots.txt off":        {"robots_policy /docs/* POLICY {\nrobots_txt off\n}\nrespond y", "", ""},
		"robots.txt of its own": {"robots_policy /docs/* POLICY\nrespond /robots.txt x\nrespond y", "", ""},
		"whole site":            {"robots_policy POLICY\nrespond y", "", ""},
		"redir of a page":       {"redir / /home\nrobots_policy POLICY\nrespond y", "", ""},
		"two handles":           {"handle /docs/* {\nrobots_policy POLICY\nrespond x\n}\nhandle {\nrobots_policy POLICY\nrespond y\n}", "", ""},
		"password for a part":   {"basic_auth /members/* {\nann $2a$14$Zkx19XLiW6VYouLHR5NmfOFU0z2GTNmpkT/5qqR7hx4IjWJPDhjvG\n}\nrobots_policy POLICY\nrespond y", "", ""},
		"file that exists":      {"@old file /old{path}\nroute {\nfile_server @old\nrobots_policy POLICY\nrespond y\n}", "", ""},
		"all but one path":      {"@site not path /internal/*\nrobots_policy @site POLICY\nrespond y", "", ""},
		"invoked":               {"invoke site", "", ""},
	} {
		t.Run(name, func(t *testing.T) {
			validates := testkit.Long() || name == "handle" || testkit.Thorough() && slices.Contains([]string{"file_server", "whole site", "invoked"}, name)
			s := newServer(t, t.TempDir(), slicePolicy, nil)
			config := s.caddyfile("admin off\nlog {\noutput file DIR/caddy.log\nformat json\nlevel WARN\n}", map[string]string{
				"www.example.com": c.body, "other.example.com": "robots_policy DIR/other.yaml\nrespond z",
			})
			if name == "invoked" {
				config = strings.Replace(config, "http://", "&(site) {\nrobots_policy "+filepath.Join(s.dir, "policy.yaml")+"\nrespond y\n}\nhttp://", 1)
			}
			s.write("other.yaml", slicePolicy)
			s.run(config)
			line := 0
			for i, text := range strings.Split(config, "\n") {
				if strings.Contains(text, "robots_policy ") && strings.Contains(text, "policy.yaml") {
					line = i + 1
				}
			}
			log, err := os.ReadFile(filepath.Join(s.dir, "caddy.log"))
			if err != nil && !os.IsNotExist(err) {
				t.Fatal(err)
			}
			logs := map[string]string{"start": string(log)}
			if validates {
				s.write("Caddyfile", strings.Replace(config, "output file "+filepath.Join(s.dir, "caddy.log"), "output stderr", 1))
				validated, err := caddytest.Command(s.dir, "validate", "--config", filepath.Join(s.dir, "Caddyfile")).CombinedOutput()
				if err != nil {
					t.Fatalf("%v\n%s", err, validated)
				}
				logs["validate"] = string(validated)
			}
			for how, out := range logs {
				warnings := strings.Count(out, `"directive"`)
				if c.want == "" {
					if warnings > 0 {
						t.Errorf("%s warns: %s", how, out)
					}
					continue
				}
				if n := strings.Count(out, c.want); n != 1 || warnings != 1 || !strings.Contains(out, `"host":"www.example.com"`) || !strings.Contains(out, c.handler) || !strings.Contains(out, fmt.Sprintf("Caddyfile:%d", line)) || strings.Contains(out, "srv0") {
					t.Errorf("%s: %d times %q with line %d:\n%s", how, n, c.want, line, out)
				}
			}
		})
	}
}
