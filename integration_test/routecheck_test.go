// SPDX-License-Identifier: Apache-2.0

package integration_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// Routes that take /robots.txt from robots_policy, or apply two of them to one request,
// are logged once when Caddy has started.
func TestRouteWarnings(t *testing.T) {
	const (
		twice  = "robots_policy applies twice"
		before = "another route answers /robots.txt before"
		after  = "robots_policy answers /robots.txt before"
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
			// Warnings are logged before the configuration counts as loaded.
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
					t.Errorf("%q stands in the log %d times, want %d", says, got, want)
				}
			}
		})
	}
}
