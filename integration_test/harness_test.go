// SPDX-License-Identifier: Apache-2.0

// Package integration_test runs the module in a real Caddy, with real upstreams
// and clients on loopback.
package integration_test

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/caddyserver/caddy/v2"

	"github.com/robotspolicy/caddy-robots-policy/integration_test/internal/caddytest"
)

const gptBot = "Mozilla/5.0 (compatible; GPTBot/1.2; +https://openai.com/gptbot)"

// server is a running Caddy. There is one at a time in a process, so tests of
// this package do not run in parallel.
type server struct {
	t    *testing.T
	addr string // host:port of the site
	dir  string // for the test's files
}

// start runs Caddy with the body of a site. In it, POLICY stands for a file that
// holds the policy, UPSTREAM for the address of upstream, DIR for a directory.
func start(t *testing.T, policy string, upstream http.Handler, body string) *server {
	t.Helper()
	s := &server{t: t, addr: freeAddr(t), dir: t.TempDir()}
	s.write("policy.yaml", policy)
	if upstream != nil {
		up := httptest.NewServer(upstream)
		t.Cleanup(up.Close)
		body = strings.ReplaceAll(body, "UPSTREAM", up.Listener.Addr().String())
	}
	body = strings.ReplaceAll(body, "POLICY", filepath.Join(s.dir, "policy.yaml"))
	body = strings.ReplaceAll(body, "DIR", s.dir)
	_, port, _ := net.SplitHostPort(s.addr)
	s.load("{\n\tadmin off\n\tpersist_config off\n\tauto_https off\n\tlog {\n\t\toutput discard\n\t}\n}\nhttp://:" + port + " {\n" + body + "\n}\n")
	t.Cleanup(func() {
		if err := caddy.Stop(); err != nil {
			t.Error(err)
		}
	})
	return s
}

func (s *server) write(name, text string) {
	s.t.Helper()
	if err := os.WriteFile(filepath.Join(s.dir, name), []byte(text), 0o600); err != nil {
		s.t.Fatal(err)
	}
}

func (s *server) load(caddyfile string) {
	s.t.Helper()
	if err := load(caddyfile); err != nil {
		s.t.Fatalf("%v\n%s", err, caddyfile)
	}
}

func load(caddyfile string) error {
	justLoaded.Store(true)
	return caddytest.Load(caddyfile)
}

// justLoaded says that no request has been sent since a configuration was loaded.
// A Caddy that hands over to another, with this module or without, can still
// take one connection, and closes it.
var justLoaded atomic.Bool

var (
	adapt    = caddytest.Adapt
	freeAddr = caddytest.FreeAddr
)

// response is an answer with its body read.
type response struct {
	*http.Response
	body string
}

// raw sends a request target as it stands, which net/http would not, and returns
// the status code.
func (s *server) raw(target, agent string) int {
	s.t.Helper()
	conn, err := net.Dial("tcp", s.addr)
	if err != nil {
		s.t.Fatal(err)
	}
	defer conn.Close()
	fmt.Fprintf(conn, "GET %s HTTP/1.1\r\nHost: %s\r\nUser-Agent: %s\r\nConnection: close\r\n\r\n", target, s.addr, agent)
	resp, err := http.ReadResponse(bufio.NewReader(conn), nil)
	if err != nil {
		s.t.Fatal(err)
	}
	defer resp.Body.Close()
	return resp.StatusCode
}

// client follows no redirects and does not decompress.
var client = &http.Client{
	Transport:     &http.Transport{DisableCompression: true},
	CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	Timeout:       20 * time.Second,
}

// get asks for a path; header holds pairs of names and values, of which Host is
// the host.
func (s *server) get(path string, header ...string) response {
	s.t.Helper()
	return s.do(http.MethodGet, path, header...)
}

func (s *server) do(method, path string, header ...string) response {
	s.t.Helper()
	r, err := http.NewRequest(method, "http://"+s.addr, nil)
	if err != nil {
		s.t.Fatal(err)
	}
	r.URL.Opaque = path // as it stands
	for i := 0; i < len(header); i += 2 {
		if header[i] == "Host" {
			r.Host = header[i+1]
			continue
		}
		r.Header.Add(header[i], header[i+1])
	}
	resp, err := client.Do(r)
	if justLoaded.Swap(false) && err != nil {
		resp, err = client.Do(r)
	}
	if err != nil {
		s.t.Fatal(err)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		s.t.Fatal(err)
	}
	return response{resp, string(body)}
}

func page(head string) string {
	return "<!DOCTYPE html>\n<html><head><title>x</title>" + head + "</head><body><p>hello</body></html>\n"
}

// htmlUpstream answers every path with one page.
func htmlUpstream(text string) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/html; charset=utf-8")
		_, _ = io.WriteString(w, text)
	})
}
