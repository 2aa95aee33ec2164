// SPDX-License-Identifier: Apache-2.0

package integration_test

import (
	"flag"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/caddyserver/caddy/v2"

	"github.com/robotspolicy/caddy-robots-policy/integration_test/internal/caddytest"
)

var update = flag.Bool("update", false, "write what is seen into the files that show it")

func TestMain(m *testing.M) { caddytest.Main(thenTable{m}, func(bool) { useTestResolver() }) }

// startExample runs Caddyfile.example on free ports and returns its address.
func startExample(t *testing.T) string {
	t.Helper()
	text, err := os.ReadFile("../Caddyfile.example")
	if err != nil {
		t.Fatal(err)
	}
	site, paper, admin := freeAddr(t), freeAddr(t), freeAddr(t)
	port := func(addr string) string { return addr[strings.LastIndexByte(addr, ':'):] }
	caddyfile := strings.NewReplacer(":8080", port(site), ":8081", port(paper), ":2019", port(admin),
		"admin localhost", "persist_config off\n\tadmin localhost", " examples/", " ../examples/", "caddy-data/", t.TempDir()+"/").Replace(string(text))
	if err := load(caddyfile); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := caddy.Stop(); err != nil {
			t.Error(err)
		}
	})
	return site
}

func firstDifference(want, got string) string {
	w, g := strings.Split(want, "\n"), strings.Split(got, "\n")
	for i := range w {
		if i >= len(g) || w[i] != g[i] {
			return fmt.Sprintf("line %d:\n- %s\n+ %s", i+1, w[i], strings.Join(g[min(i, len(g)):min(i+1, len(g))], ""))
		}
	}
	return fmt.Sprintf("%d lines, want %d", len(g), len(w))
}
