// SPDX-License-Identifier: Apache-2.0

package integration_test

import (
	"context"
	"net"
	"sync/atomic"
	"testing"

	"github.com/robotspolicy/caddy-robots-policy/integration_test/internal/caddytest"
)

// resolverAddr is the name server that this process asks, nil for the machine's own.
var resolverAddr atomic.Pointer[string]

// useTestResolver has the process ask what startResolver runs. It is called before
// anything looks a name up, for what still does so when a test is over would read
// the resolver while it changes.
func useTestResolver() {
	var dialer net.Dialer
	net.DefaultResolver = &net.Resolver{PreferGo: true, Dial: func(ctx context.Context, network, addr string) (net.Conn, error) {
		if ours := resolverAddr.Load(); ours != nil {
			addr = *ours
		}
		return dialer.DialContext(ctx, network, addr)
	}}
}

// startResolver runs a name server on loopback, over UDP and TCP, and has the process ask only
// this server until the test ends.
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
