// SPDX-License-Identifier: Apache-2.0

// Package caddytest runs Caddy with this module in the process of a test.
package caddytest

import (
	"fmt"
	"math/rand/v2"
	"net"
	"strings"
	"testing"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/caddyconfig"
	_ "github.com/caddyserver/caddy/v2/modules/standard" // what a Caddyfile needs

	_ "github.com/robotspolicy/caddy-robots-policy" // the module
)

// FreeAddr is an address on loopback, host:port, on which nothing listened.
func FreeAddr(t testing.TB) string {
	t.Helper()
	return FreeAddrs(t, 1)[0]
}

// FreeAddrs are n different ones. Their ports are not among those that systems give
// to whoever connects, which anybody could get before they are listened on.
func FreeAddrs(t testing.TB, n int) (addrs []string) {
	t.Helper()
	for tries := 0; len(addrs) < n; tries++ {
		l, err := net.Listen("tcp", fmt.Sprintf("127.0.0.1:%d", 10_000+rand.IntN(20_000)))
		if err != nil {
			if tries > 1000 {
				t.Fatal(err)
			}
			continue
		}
		defer l.Close()
		addrs = append(addrs, l.Addr().String())
	}
	return addrs
}

// Adapt gives the JSON of a Caddyfile, and what Caddy warns of in it beside its
// layout.
func Adapt(caddyfile string) ([]byte, []caddyconfig.Warning, error) {
	config, warnings, err := caddyconfig.GetAdapter("caddyfile").Adapt([]byte(caddyfile), map[string]any{"filename": "Caddyfile"})
	var told []caddyconfig.Warning
	for _, w := range warnings {
		if !strings.Contains(w.Message, "not formatted") {
			told = append(told, w)
		}
	}
	return config, told, err
}

// Load runs a Caddyfile, in place of the one before. There is one Caddy in a
// process, so tests that use it do not run in parallel. A warning is an error.
func Load(caddyfile string) error {
	config, warnings, err := Adapt(caddyfile)
	if err != nil {
		return err
	}
	if len(warnings) > 0 {
		return fmt.Errorf("warnings: %v", warnings)
	}
	return caddy.Load(config, true)
}
