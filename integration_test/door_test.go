// SPDX-License-Identifier: Apache-2.0

package integration_test

import (
	"crypto/tls"
	"fmt"
	"maps"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"

	"github.com/robotspolicy/caddy-robots-policy/integration_test/internal/nethttptest"
)

// A door is a kind of server that runs the handler: Caddy, or an HTTP server of the package net/http without Caddy.
type door string

const (
	caddyDoor   door = "caddy"
	netHTTPDoor door = "nethttp"
)

// bothDoors runs a test through each door, with the same cases.
func bothDoors(t *testing.T, test func(t *testing.T, d door)) {
	t.Helper()
	for _, d := range []door{caddyDoor, netHTTPDoor} {
		t.Run(string(d), func(t *testing.T) { test(t, d) })
	}
}

// needsCaddy marks a test of something that only Caddy has. So the test does not run without Caddy, and why is the
// reason.
func needsCaddy(t *testing.T, why string) {
	t.Helper()
	doors.ran(t, caddyDoor, "")
	t.Run(string(netHTTPDoor), func(t *testing.T) { netHTTPDoor.skip(t, why) })
}

// skip skips the test for the door.
func (d door) skip(t *testing.T, why string) {
	t.Helper()
	doors.skipped(t, "", why)
	t.Skip(why)
}

// start runs one site for all hosts, without a log. body has the directives of the site.
func (d door) start(t *testing.T, policy string, upstream http.Handler, body string) *server {
	t.Helper()
	if d == netHTTPDoor {
		return d.startSites(t, policy, upstream, map[string]string{"*": body})
	}
	doors.ran(t, d, "*")
	return start(t, policy, upstream, body)
}

// startSites runs several sites, keyed by host. Without Caddy, it leaves out the sites that need Caddy.
func (d door) startSites(t *testing.T, policy string, upstream http.Handler, sites map[string]string) *server {
	t.Helper()
	if d == netHTTPDoor {
		s := &server{t: t, dir: t.TempDir()}
		s.write("policy.yaml", policy)
		s.netHTTP(upstream, sites)
		return s
	}
	for host := range sites {
		if host != "" {
			doors.ran(t, d, host)
		}
	}
	return startSites(t, policy, upstream, sites)
}

// netHTTP serves sites with an HTTP server of the package net/http, and logs to DIR/log. The host "*" stands for all
// hosts.
func (s *server) netHTTP(upstream http.Handler, sites map[string]string) {
	s.t.Helper()
	log, err := os.Create(filepath.Join(s.dir, "log"))
	if err != nil {
		s.t.Fatal(err)
	}
	s.t.Cleanup(func() { _ = log.Close() })
	config := nethttptest.Config{
		Policy: filepath.Join(s.dir, "policy.yaml"), Dir: s.dir, Upstream: upstream,
		Logger: zap.New(zapcore.NewCore(zapcore.NewJSONEncoder(zap.NewProductionEncoderConfig()), log, zap.InfoLevel)),
	}
	s.served, s.absent = map[string]*nethttptest.Site{}, map[string]string{}
	for host, body := range sites {
		if host == "" {
			continue // Caddy's global options
		}
		site, why := nethttptest.New(s.t, body, config)
		if why != "" {
			s.absent[host] = why
			doors.skipped(s.t, host, why)
			continue
		}
		s.served[host] = site
		doors.ran(s.t, netHTTPDoor, host)
	}
	if len(s.served) == 0 {
		s.t.Skip("all sites need Caddy: " + strings.Join(slices.Collect(maps.Values(s.absent)), "; "))
	}
	s.addr = s.listen(nil, strings.Contains(sites[""], "test_counted"))
}

// listen serves the sites on a loopback address, with TLS unless secure is nil. If counted is true, it counts the bytes
// that net/http passes to connections with ReadFrom.
func (s *server) listen(secure *tls.Config, counted bool) (addr string) {
	s.t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		s.t.Fatal(err)
	}
	addr = l.Addr().String()
	if counted {
		l = counting{l}
	}
	web := &http.Server{Handler: http.HandlerFunc(s.serve), TLSConfig: secure, Protocols: new(http.Protocols)}
	web.Protocols.SetHTTP1(true)
	web.Protocols.SetHTTP2(secure != nil)
	web.Protocols.SetUnencryptedHTTP2(secure == nil)
	done := make(chan struct{})
	go func() {
		defer close(done)
		if secure != nil {
			_ = web.ServeTLS(l, "", "")
			return
		}
		_ = web.Serve(l)
	}()
	s.t.Cleanup(func() {
		_ = web.Close()
		<-done
	})
	return addr
}

// serve passes a request to the site of its host.
func (s *server) serve(w http.ResponseWriter, r *http.Request) {
	host, _, err := net.SplitHostPort(r.Host)
	if err != nil {
		host = r.Host
	}
	site := s.served[host]
	if site == nil {
		site = s.served["*"]
	}
	if site == nil {
		http.Error(w, "there is no such site", http.StatusMisdirectedRequest)
		return
	}
	site.ServeHTTP(w, r)
}

// lacks reports whether the door does not serve a site, because the site needs Caddy.
func (s *server) lacks(host string) bool { return s.absent[host] != "" }

// needs skips the test if the door does not serve a site.
func (s *server) needs(t *testing.T, host string) {
	t.Helper()
	if s.lacks(host) {
		t.Skip(s.absent[host])
	}
}

// change makes a server that runs without Caddy serve a different policy.
func (s *server) change(policy string) {
	s.t.Helper()
	s.write("policy.yaml", policy)
	for host, site := range s.served {
		if err := site.Reload(s.t.Context()); err != nil {
			s.t.Fatalf("%s: %v", host, err)
		}
	}
}

// without removes a site from a server that runs without Caddy, because the tests of this site need Caddy. why is the
// reason.
func (s *server) without(host, why string) {
	s.t.Helper()
	if s.served[host] == nil {
		return
	}
	delete(s.served, host)
	s.absent[host] = why
	doors.skipped(s.t, host, why)
	doors.forget(s.t, netHTTPDoor, host)
}

// doors counts the sites and requests of each door.
var doors = doorTally{tests: map[string]*doorCount{}}

type doorTally struct {
	mu    sync.Mutex
	tests map[string]*doorCount
}

// doorCount counts the requests of one test.
type doorCount struct {
	sites    map[door]map[string]bool
	requests map[door]int
	skipped  map[string]string // reasons why a site did not run without Caddy; the key "" stands for all sites
}

// of returns the count of a test. The caller must hold mu.
func (c *doorTally) of(t *testing.T) *doorCount {
	name, _, _ := strings.Cut(t.Name(), "/")
	n := c.tests[name]
	if n == nil {
		n = &doorCount{sites: map[door]map[string]bool{caddyDoor: {}, netHTTPDoor: {}}, requests: map[door]int{}, skipped: map[string]string{}}
		c.tests[name] = n
	}
	return n
}

func (c *doorTally) ran(t *testing.T, d door, host string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.of(t).sites[d][host] = true
}

func (c *doorTally) forget(t *testing.T, d door, host string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.of(t).sites[d], host)
}

func (c *doorTally) skipped(t *testing.T, host, why string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.of(t).skipped[host] = why
}

// asked counts a request of a test that runs through both doors.
func (c *doorTally) asked(s *server) {
	c.mu.Lock()
	defer c.mu.Unlock()
	name, _, _ := strings.Cut(s.t.Name(), "/")
	if c.tests[name] == nil {
		return
	}
	d := caddyDoor
	if s.served != nil {
		d = netHTTPDoor
	}
	c.tests[name].requests[d]++
}

// table returns the counts for each test and each door, and the reasons for skipped sites.
func (c *doorTally) table() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	var b strings.Builder
	row := "%-36s %6d %9d %8d %9d %8d\n"
	fmt.Fprintf(&b, "%-36s %16s %18s %8s\n", "", "caddy", "nethttp", "")
	fmt.Fprintf(&b, "%-36s %6s %9s %8s %9s %8s\n", "test", "sites", "requests", "sites", "requests", "skipped")
	var sum [5]int
	var why strings.Builder
	for _, name := range slices.Sorted(maps.Keys(c.tests)) {
		n := c.tests[name]
		counts := [5]int{len(n.sites[caddyDoor]), n.requests[caddyDoor], len(n.sites[netHTTPDoor]), n.requests[netHTTPDoor], len(n.skipped)}
		fmt.Fprintf(&b, row, name, counts[0], counts[1], counts[2], counts[3], counts[4])
		for i := range counts {
			sum[i] += counts[i]
		}
		for _, host := range slices.Sorted(maps.Keys(n.skipped)) {
			fmt.Fprintf(&why, "%s: %s\n", strings.TrimSpace(name+" "+host), n.skipped[host])
		}
	}
	fmt.Fprintf(&b, row, "all", sum[0], sum[1], sum[2], sum[3], sum[4])
	return b.String() + "\nskipped by net/http:\n" + why.String()
}

// thenTable runs the tests. With -v, it then prints the table of doors.
type thenTable struct{ *testing.M }

func (m thenTable) Run() int {
	code := m.M.Run()
	if testing.Verbose() && len(doors.tests) > 0 {
		fmt.Print(doors.table())
	}
	return code
}
