// SPDX-License-Identifier: Apache-2.0

// Package integration_test runs the module in a real Caddy, with real upstreams
// and clients on loopback.
package integration_test

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/caddyserver/caddy/v2"

	"github.com/robotspolicy/caddy-robots-policy/integration_test/internal/caddytest"
	"github.com/robotspolicy/caddy-robots-policy/integration_test/internal/nethttptest"
)

const gptBot = "Mozilla/5.0 (compatible; GPTBot/1.2; +https://openai.com/gptbot)"

// server is either a running Caddy, or an HTTP server of the package net/http that runs the handler without Caddy (see
// door_test.go). A process runs only one such server at a time, so tests of this package do not run in parallel.
type server struct {
	t        *testing.T
	addr     string // host:port of the sites
	dir      string // directory for the test's files
	upstream string // address of the upstream, or ""

	// served and absent are used only without Caddy. served holds the sites, keyed by host. absent holds, for each
	// other site of the test, the reason why it needs Caddy.
	served map[string]*nethttptest.Site
	absent map[string]string
}

// newServer prepares a Caddy whose files are in dir, with a policy and, unless it is
// nil, an upstream.
func newServer(t *testing.T, dir, policy string, upstream http.Handler) *server {
	t.Helper()
	s := &server{t: t, addr: freeAddr(t), dir: dir}
	s.write("policy.yaml", policy)
	if upstream != nil {
		up := httptest.NewServer(upstream)
		t.Cleanup(up.Close)
		s.upstream = up.Listener.Addr().String()
	}
	return s
}

// caddyfile returns a configuration with global options and the bodies of sites. The keys of sites are hosts, and ""
// stands for all hosts. In all texts, POLICY stands for the policy file, UPSTREAM for the address of the upstream, DIR
// for the test's folder, and PORT for the port of the sites.
func (s *server) caddyfile(global string, sites map[string]string) string {
	_, port, _ := net.SplitHostPort(s.addr)
	var b strings.Builder
	b.WriteString("{\npersist_config off\nauto_https off\n" + global + "\n}\n")
	for _, host := range slices.Sorted(maps.Keys(sites)) {
		b.WriteString("http://" + host + ":PORT {\n" + sites[host] + "\n}\n")
	}
	return strings.NewReplacer("POLICY", filepath.Join(s.dir, "policy.yaml"), "DIR", s.dir, "UPSTREAM", s.upstream, "PORT", port).Replace(b.String())
}

// run loads a configuration, and stops Caddy when the test ends.
func (s *server) run(caddyfile string) {
	s.t.Helper()
	s.load(caddyfile)
	s.t.Cleanup(func() {
		if err := caddy.Stop(); err != nil {
			s.t.Error(err)
		}
	})
}

// start runs Caddy with one site, for all hosts and without a log.
func start(t *testing.T, policy string, upstream http.Handler, body string) *server {
	t.Helper()
	s := newServer(t, t.TempDir(), policy, upstream)
	s.run(s.caddyfile("admin off\nlog {\noutput discard\n}", map[string]string{"": body}))
	return s
}

// startSites runs Caddy with several sites, and with its log in the file DIR/log. The keys of sites are hosts. The
// value for the key "" is not a site, but contains global options.
func startSites(t *testing.T, policy string, upstream http.Handler, sites map[string]string) *server {
	t.Helper()
	s := newServer(t, t.TempDir(), policy, upstream)
	s.run(s.sites(sites))
	return s
}

// sites returns the configuration that startSites loads for the sites.
func (s *server) sites(sites map[string]string) string {
	global := "admin off\nlog {\noutput file DIR/log\n}\n" + sites[""]
	sites = maps.Clone(sites)
	delete(sites, "")
	return s.caddyfile(global, sites)
}

// startLogged runs Caddy with one site and with its log in DIR/caddy.log. Loopback is a trusted proxy, so
// X-Forwarded-For sets the client's address.
func startLogged(t *testing.T, policy string, upstream http.Handler, body string) *server {
	t.Helper()
	s := newServer(t, t.TempDir(), policy, upstream)
	s.run(s.logged(body))
	return s
}

// logged returns the configuration that startLogged loads for a site with this body.
func (s *server) logged(body string) string {
	return s.caddyfile("admin off\nlog {\noutput file DIR/caddy.log\nformat json\nlevel INFO\n}\nservers {\ntrusted_proxies static 127.0.0.0/8\n}", map[string]string{"": body})
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

// While Caddy replaces a configuration, the old server can still accept one connection and close it without an answer.
// This also happens without robots_policy. justLoaded is true until the first request after a configuration was loaded,
// so that this request can be sent again.
var justLoaded atomic.Bool

var (
	adapt          = caddytest.Adapt
	freeAddr       = caddytest.FreeAddr
	asCaddyCommand = caddytest.Command
)

// response is an answer whose body has been read.
type response struct {
	*http.Response
	body string
}

// raw sends a request with an unchanged target, which net/http's client would normalize, and returns the status code.
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

// get requests a path. header holds pairs of names and values. The pair "Host" sets the host.
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
	r.URL.Opaque = path // the path is sent unchanged
	for i := 0; i < len(header); i += 2 {
		if header[i] == "Host" {
			r.Host = header[i+1]
			continue
		}
		r.Header.Add(header[i], header[i+1])
	}
	doors.asked(s)
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

// file writes a file in DIR, with the directories above it.
func (s *server) file(name, text string) {
	s.t.Helper()
	if err := os.MkdirAll(filepath.Dir(filepath.Join(s.dir, name)), 0o755); err != nil {
		s.t.Fatal(err)
	}
	s.write(name, text)
}

// dial opens a connection and writes a text to it.
func (s *server) dial(text string) (net.Conn, *bufio.Reader) {
	s.t.Helper()
	doors.asked(s)
	conn, err := net.Dial("tcp", s.addr)
	if err != nil {
		s.t.Fatal(err)
	}
	s.t.Cleanup(func() { _ = conn.Close() })
	if err := conn.SetDeadline(time.Now().Add(20 * time.Second)); err != nil {
		s.t.Fatal(err)
	}
	if _, err := io.WriteString(conn, text); err != nil {
		s.t.Fatal(err)
	}
	return conn, bufio.NewReader(conn)
}

// log returns the whole log so far.
func (s *server) log() string {
	s.t.Helper()
	text, err := os.ReadFile(filepath.Join(s.dir, "log"))
	if err != nil {
		s.t.Fatal(err)
	}
	return string(text)
}

// lines returns those lines of a log file whose message is the given one. If the file contains fewer such lines than
// want, lines waits for them, but not longer than two seconds. The message of an access log is "handled request".
func (s *server) lines(file, message string, want int) (found []map[string]any) {
	s.t.Helper()
	for range 100 {
		found = nil
		data, err := os.ReadFile(filepath.Join(s.dir, file))
		if err != nil && !errors.Is(err, os.ErrNotExist) {
			s.t.Fatal(err)
		}
		for line := range strings.Lines(string(data)) {
			var fields map[string]any
			if json.Unmarshal([]byte(line), &fields) == nil && fields["msg"] == message {
				found = append(found, fields)
			}
		}
		if len(found) >= want {
			return found
		}
		time.Sleep(20 * time.Millisecond)
	}
	return found
}
