// SPDX-License-Identifier: Apache-2.0

package console

import (
	"context"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/caddyserver/caddy/v2"
)

// On a Unix socket, everyone who may open the socket may use the console. The Host header may have any port of this
// machine, because people often reach the socket through a tunnel, which listens on a port of their choice.
func TestUnixSocket(t *testing.T) {
	dir, err := os.MkdirTemp("", "console") // t.TempDir would be too long for the path of a socket
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	socket := filepath.Join(dir, "s")
	ctx, cancel := caddy.NewContext(caddy.Context{Context: t.Context()})
	defer cancel()
	c := &Console{Listen: "unix/" + socket + "|0600"}
	if err := c.Provision(ctx); err != nil {
		t.Fatal(err)
	}
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Cleanup() })
	client := &http.Client{Transport: &http.Transport{DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, "unix", socket)
	}}}
	for end := time.Now().Add(10 * time.Second); ; time.Sleep(10 * time.Millisecond) {
		if _, ok := c.listening.Get(); ok {
			break
		}
		if time.Now().After(end) {
			t.Fatal(c.listening.Err())
		}
	}
	if s, err := os.Stat(socket); err != nil || s.Mode().Perm() != 0o600 {
		t.Errorf("%v, %v", s, err)
	}
	for host, want := range map[string]int{"localhost:8022": 200, "localhost": 200, "127.0.0.1:1": 200, "[::1]:1": 200, "evil.example": 403, "localhost.evil.example:1": 403} {
		r, err := http.NewRequest(http.MethodGet, "http://localhost/health", nil)
		if err != nil {
			t.Fatal(err)
		}
		r.Host = host
		resp, err := client.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		body, _ := io.ReadAll(resp.Body)
		resp.Body.Close()
		if resp.StatusCode != want || want == 200 && !strings.Contains(string(body), "Health") {
			t.Errorf("%s: %s", host, resp.Status)
		}
	}
}
