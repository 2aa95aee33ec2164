// SPDX-License-Identifier: Apache-2.0

// Package audit tests audits of sites behind a caching proxy that changes what the
// server sends.
package audit

import (
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/robotspolicy/caddy-robots-policy/integration_test/internal/caddytest"
)

func TestMain(m *testing.M) { caddytest.Main(m, func(bool) {}) }

// startNginx runs nginx as a proxy in front of an upstream, and returns the address of nginx. locations is a part of
// its configuration, in which %s stands for the upstream's address.
func startNginx(t *testing.T, upstream, locations string) string {
	t.Helper()
	program, err := exec.LookPath("nginx")
	if err != nil {
		if program = "/usr/sbin/nginx"; !exists(program) {
			t.Skip("nginx is not installed: apt-get install nginx-light")
		}
	}
	dir, addr := t.TempDir(), caddytest.FreeAddr(t)
	config := fmt.Sprintf(`daemon off; master_process off; pid %[1]s/pid; error_log %[1]s/error.log;
events {}
http {
	access_log off; types { text/html html; text/plain txt; }
	client_body_temp_path %[1]s/body; proxy_temp_path %[1]s/proxy; fastcgi_temp_path %[1]s/f; uwsgi_temp_path %[1]s/u; scgi_temp_path %[1]s/s;
	proxy_cache_path %[1]s/cache keys_zone=c:1m;
	proxy_set_header Host $http_host;
	proxy_http_version 1.1;
	upstream site { server %[2]s; }
	server {
		listen %[3]s;
		root %[1]s;
		%[4]s
	}
}
`, dir, upstream, addr, locations)
	if err := os.WriteFile(filepath.Join(dir, "nginx.conf"), []byte(config), 0o600); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(program, "-p", dir, "-e", filepath.Join(dir, "error.log"), "-c", filepath.Join(dir, "nginx.conf"))
	cmd.Stderr = os.Stderr
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = cmd.Process.Kill(); _ = cmd.Wait() })
	for range 200 {
		if c, err := net.Dial("tcp", addr); err == nil {
			c.Close()
			return addr
		}
		time.Sleep(20 * time.Millisecond)
	}
	log, _ := os.ReadFile(filepath.Join(dir, "error.log"))
	t.Fatalf("nginx does not listen: %s", log)
	return ""
}

func exists(name string) bool {
	_, err := os.Stat(name)
	return err == nil
}
