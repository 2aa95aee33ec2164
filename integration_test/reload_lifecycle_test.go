// SPDX-License-Identifier: Apache-2.0

package integration_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/caddyserver/caddy/v2"
)

// The test loads fifty configurations. Some of them are rejected, and some are only validated. After that, no goroutine
// and no unused policy of an earlier configuration is left.
func TestConfigurationsLeaveNothingBehind(t *testing.T) {
	s := startReloading(t, "", disallowing("/a"), nil, quickReload)
	for _, dir := range []string{"hosts", "storage"} {
		if err := os.MkdirAll(filepath.Join(s.dir, dir), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	bodies := []string{
		quickReload, "robots_policy DIR/hosts/{host}.yaml {\nreload 50ms\ndefault POLICY\n}", "robots_policy storage:site.yaml {\nreload 100ms\n}",
		quickReload + "\nhandle /x {\nrobots_policy POLICY {\nreload off\n}\n}",
	}
	s.write("storage/site.yaml", disallowing("/s"))
	if err := s.reconfigure(s.body); err != nil {
		t.Fatal(err)
	}
	before := runtime.NumGoroutine()
	for i := range 50 {
		body := bodies[i%len(bodies)]
		switch {
		case i%5 == 3:
			body += "\nrobots_policy DIR/nothing.yaml"
			if err := s.reconfigure(body); err == nil {
				t.Fatal("a policy that does not exist was loaded")
			}
		case i%5 == 4:
			config, _, err := adapt(s.caddyfile(body))
			if err != nil {
				t.Fatal(err)
			}
			var c caddy.Config
			if err := json.Unmarshal(config, &c); err != nil {
				t.Fatal(err)
			}
			if err := caddy.Validate(&c); err != nil {
				t.Fatal(err)
			}
		default:
			if err := s.reconfigure(body); err != nil {
				t.Fatal(err)
			}
		}
	}
	if err := s.reconfigure(s.body); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the goroutines are gone", func() bool { client.CloseIdleConnections(); return runtime.NumGoroutine() <= before+2 })
	if p := s.policies().Policies; len(p) != 1 || p[0].Sites != 1 {
		t.Errorf("%+v", p)
	}
	s.write("policy.yaml", disallowing("/b"))
	eventually(t, "what is left still follows", func() bool { return s.disallows("/b") })
}

// If Caddy only validates a configuration, this has no effect other than reading the policy. If a last good policy is
// saved, the policy is not even requested over the network. No goroutine is left, and no notification is sent.
func TestValidateIsQuiet(t *testing.T) {
	p := newPolicyServer(t, disallowing("/a"))
	s := startReloading(t, "", disallowing("/"), nil, "respond hello")
	body := "robots_policy " + p.URL + " {\nreload 1s\n}"
	if err := s.reconfigure(body); err != nil {
		t.Fatal(err)
	}
	if err := s.reconfigure("respond hello"); err != nil {
		t.Fatal(err)
	}
	asked, before := p.asked.Load(), runtime.NumGoroutine()
	for range 10 {
		config, _, err := adapt(s.caddyfile(body))
		if err != nil {
			t.Fatal(err)
		}
		var c caddy.Config
		if err := json.Unmarshal(config, &c); err != nil {
			t.Fatal(err)
		}
		if err := caddy.Validate(&c); err != nil {
			t.Fatal(err)
		}
	}
	eventually(t, "no goroutine is left", func() bool { return runtime.NumGoroutine() <= before })
	if n := p.asked.Load(); n != asked {
		t.Errorf("validating sent %d requests to the server", n-asked)
	}
}

// Every option of the Caddyfile exists in JSON with the same meaning, and JSON is strict.
func TestReloadInJSON(t *testing.T) {
	s := startReloading(t, "", disallowing("/a"), nil, "respond hello")
	config := func(fields string) []byte {
		return fmt.Appendf(nil, `{"admin":{"listen":%q,"config":{"persist":false}},"apps":{"http":{"servers":{"s":{"listen":[%q],"automatic_https":{"disable":true},
			"routes":[{"handle":[{"handler":"robots_policy","policy":%q%s}]}]}}}}}`, s.admin, s.addr, filepath.Join(s.dir, "policy.yaml"), fields)
	}
	for fields, want := range map[string]string{
		"": "2s", `,"reload":-1`: "off", `,"reload":"90s"`: "1m30s",
	} {
		if err := caddy.Load(config(fields), true); err != nil {
			t.Fatal(err)
		}
		client.CloseIdleConnections()
		if got := s.policies().Policies[0].Reload; got != want {
			t.Errorf("%s: %s, want %s", fields, got, want)
		}
	}
	for fields, want := range map[string]string{
		`,"reloads":"2s"`: "unknown field", `,"reload":true`: "cannot unmarshal", `,"reload":"often"`: "invalid duration", `,"default":"x"`: "is only for policies whose name has a placeholder",
	} {
		if err := caddy.Load(config(fields), true); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", fields, err)
		}
	}
	client.CloseIdleConnections()
	// If the configuration has not changed, caddy reload does not read the policy again. With --force, it does.
	if err := caddy.Load(config(`,"reload":-1`), true); err != nil {
		t.Fatal(err)
	}
	s.write("policy.yaml", disallowing("/b"))
	if err := caddy.Load(config(`,"reload":-1`), false); err != nil {
		t.Fatal(err)
	}
	if !s.disallows("/a") {
		t.Error("without --force, the policy was read")
	}
	if err := caddy.Load(config(`,"reload":-1`), true); err != nil {
		t.Fatal(err)
	}
	client.CloseIdleConnections()
	if !s.disallows("/b") {
		t.Error("--force has no effect")
	}
	if r := s.ask(http.MethodGet, "/robots_policy/", nil); r.StatusCode != 200 {
		t.Error(r.Status)
	}
}
