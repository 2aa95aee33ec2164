// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"time"
)

// nginxConfig makes nginx write its log in the Combined format. nginx takes the client's address from X-Forwarded-For,
// because the benchmark sends all requests from loopback.
const nginxConfig = `worker_processes 1;
daemon off;
pid %[1]s/nginx.pid;
error_log %[1]s/nginx-error.log;
events {}
http {
	access_log %[1]s/nginx.log combined;
	client_body_temp_path %[1]s; proxy_temp_path %[1]s; fastcgi_temp_path %[1]s; uwsgi_temp_path %[1]s; scgi_temp_path %[1]s;
	set_real_ip_from 127.0.0.1;
	real_ip_header X-Forwarded-For;
	keepalive_requests 1000000;
	server {
		listen %[2]s;
		location / { return 200 "0123456789"; }
	}
}
`

// nginx sends traffic to a real nginx on loopback, and replays the log of that nginx.
func (b *bench) nginx(seed uint64, n int) error {
	path, err := exec.LookPath("nginx")
	if err != nil {
		fmt.Fprintln(os.Stderr, "nginx is not installed: its log is not replayed")
		return nil
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	addr := l.Addr().String()
	if err := l.Close(); err != nil {
		return err
	}
	config := filepath.Join(b.dir, "nginx.conf")
	if err := os.WriteFile(config, fmt.Appendf(nil, nginxConfig, b.dir, addr), 0o600); err != nil {
		return err
	}
	if err := os.Chmod(b.dir, 0o755); err != nil { // nginx's worker runs as another user
		return err
	}
	cmd := exec.Command(path, "-c", config)
	if err := cmd.Start(); err != nil {
		return err
	}
	t, err := send(addr, seed, n)
	_ = cmd.Process.Signal(os.Interrupt) // nginx writes the rest of its log and ends
	_ = cmd.Wait()
	if err != nil {
		return err
	}
	return b.replay("nginx.log", t, "--format", "combined")
}

// send sends n generated requests to nginx at addr. It returns the numbers that a report about these requests must
// contain.
func send(addr string, seed uint64, n int) (*truth, error) {
	t, client := newTruth(true), &http.Client{Timeout: 10 * time.Second}
	t.stale = true // the requests have today's date
	var failed error
	traffic(seed, n, func(r *request) {
		if failed != nil {
			return
		}
		req, err := http.NewRequest(http.MethodGet, "http://"+addr+r.target, nil)
		if err != nil {
			failed = err
			return
		}
		req.Host = r.host
		req.Header.Set("User-Agent", r.agent.ua)
		req.Header.Set("X-Forwarded-For", r.agent.address)
		r.at, r.bytes = time.Now(), 10
		resp, err := client.Do(req)
		for tries := 0; err != nil && tries < 100 && len(t.cells) == 0; tries++ { // nginx is still starting
			time.Sleep(50 * time.Millisecond)
			resp, err = client.Do(req)
		}
		if err == nil {
			_, err = io.Copy(io.Discard, resp.Body)
			_ = resp.Body.Close()
		}
		if failed = err; err == nil {
			t.add(r)
		}
	})
	return t, failed
}
