// SPDX-License-Identifier: Apache-2.0

package integration_test

import (
	"context"
	"net"
	"sync/atomic"
	"testing"

	"github.com/robotspolicy/caddy-robots-policy/integration_test/internal/caddytest"
)

// resolverAddr is the address of the name server that this process uses. nil stands for the name servers of the
// machine.
var resolverAddr atomic.Pointer[string]

// useTestResolver makes this process use the name server that startResolver runs. It must be called before the first
// lookup. If each test changed the resolver, lookups of an earlier test that are still running could read the variable
// at the same time.
func useTestResolver() {
	var dialer net.Dialer
	net.DefaultResolver = &net.Resolver{PreferGo: true, Dial: func(ctx context.Context, network, addr string) (net.Conn, error) {
		if ours := resolverAddr.Load(); ours != nil {
			addr = *ours
		}
		return dialer.DialContext(ctx, network, addr)
	}}
}

// startResolver runs a name server on loopback, over UDP and TCP. The process uses only this server until the test
// ends.
func startResolver(t *testing.T, z caddytest.Zone) {
	t.Helper()
	addr := freeAddr(t)
	udp, err := net.ListenPacket("udp", addr)
	if err != nil {
		t.Fatal(err)
	}
	tcp, err := net.Listen("tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	go z.ServeUDP(udp)
	go z.ServeTCP(tcp)
	resolverAddr.Store(&addr)
	t.Cleanup(func() {
		resolverAddr.Store(nil)
		_ = udp.Close()
		_ = tcp.Close()
	})
}
