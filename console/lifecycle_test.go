// SPDX-License-Identifier: Apache-2.0

package console

import (
	"encoding/json"
	"net"
	"os"
	"path/filepath"
	"testing"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/caddyconfig"

	"github.com/robotspolicy/caddy-robots-policy/activity/evidence"
	"github.com/robotspolicy/caddy-robots-policy/activity/store"
)

// adapted returns the configuration for a Caddyfile.
func adapted(t *testing.T, caddyfile string) []byte {
	t.Helper()
	config, _, err := caddyconfig.GetAdapter("caddyfile").Adapt([]byte(caddyfile), nil)
	if err != nil {
		t.Fatal(err)
	}
	return config
}

func recording(dir, title, more string) string {
	return `{
	admin off
	persist_config off
	robots_policy {
		activity ` + filepath.Join(dir, "activity") + ` {
			max_size ` + more + `
		}
		evidence ` + filepath.Join(dir, "evidence") + `
		console off {
			title "` + title + `"
		}
	}
}
`
}

// Validating a configuration does not open or create any file. It also works while a server runs.
func TestValidateOpensNothing(t *testing.T) {
	dir := t.TempDir()
	validate := func() {
		t.Helper()
		var c caddy.Config
		if err := json.Unmarshal(adapted(t, recording(dir, "A", "100MiB")), &c); err != nil {
			t.Fatal(err)
		}
		if err := caddy.Validate(&c); err != nil {
			t.Fatal(err)
		}
	}
	validate()
	if entries, err := os.ReadDir(dir); err != nil || len(entries) > 0 {
		t.Errorf("validating made %v, %v", entries, err)
	}
	s, err := store.Open(t.Context(), filepath.Join(dir, "activity"), store.Options{}) // another process has opened the database
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	e, err := evidence.Open(filepath.Join(dir, "evidence"), evidence.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer e.Close()
	validate()
}

// If a configuration cannot be parsed or started, the running configuration does not change.
func TestRejectedReloadChangesNothing(t *testing.T) {
	dir := t.TempDir()
	if err := caddy.Load(adapted(t, recording(dir, "A", "100MB")), true); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = caddy.Stop() })
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer taken.Close()
	unchanged := func(when string) {
		t.Helper()
		a := runningActivity()
		if title := currentOptions().Title; title != "A" || a == nil || a.store.Settings() != a || a.MaxBytes != 100e6 {
			t.Errorf("%s: title %q, %+v", when, title, a)
		}
	}
	unchanged("at first")
	for when, rest := range map[string]string{
		"without a policy":     "http://127.0.0.1:0 {\nrobots_policy " + filepath.Join(dir, "none.yaml") + "\n}\n",
		"with a port in use":   "http://127.0.0.1:" + portOf(taken) + " {\nbind 127.0.0.1\nrespond ok\n}\n",
		"with a port in use, ": "http://127.0.0.1:" + portOf(taken) + " {\nbind 127.0.0.1\nrespond no\n}\n",
	} {
		if err := caddy.Load(adapted(t, recording(dir, "B", "200MB")+rest), true); err == nil {
			t.Fatalf("%s: it was loaded", when)
		}
		unchanged(when)
	}
	if err := caddy.Load(adapted(t, recording(dir, "B", "200MB")), true); err != nil {
		t.Fatal(err)
	}
	a := runningActivity()
	if title := currentOptions().Title; title != "B" || a == nil || a.MaxBytes != 200e6 || a.store.Settings() != a {
		t.Errorf("after a reload: title %q, %+v", title, a)
	}
}

func portOf(l net.Listener) string {
	_, port, _ := net.SplitHostPort(l.Addr().String())
	return port
}
