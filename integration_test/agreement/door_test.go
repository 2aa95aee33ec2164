// SPDX-License-Identifier: Apache-2.0

package agreement

import (
	"flag"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/robotspolicy/caddy-robots-policy/crawlers/identity"
	"github.com/robotspolicy/caddy-robots-policy/handler"
	"github.com/robotspolicy/caddy-robots-policy/integration_test/internal/nethttptest"
	"github.com/robotspolicy/caddy-robots-policy/site"
)

// A door is a kind of server that runs the handler: Caddy, or an HTTP server of the package net/http without Caddy.
type door string

const (
	caddyDoor   door = "caddy"
	netHTTPDoor door = "nethttp"
)

var through = flag.String("door", "both", "what serves the policies: caddy, nethttp or both")

// doorsOf returns the doors through which a policy is tested. Every third policy is tested through both doors with the
// same questions. The remaining policies take turns: one is tested with Caddy, the next one without Caddy.
func doorsOf(number int) []door {
	switch *through {
	case "caddy", "nethttp":
		return []door{door(*through)}
	}
	switch both := []door{caddyDoor, netHTTPDoor}; {
	case *onlyPolicy >= 0 || number%3 == 0:
		return both
	default:
		return both[number%3-1:][:1]
	}
}

// usesDoor reports whether this run sends requests through a door.
func usesDoor(d door) bool { return *through == "both" || *through == string(d) }

// trusting is a handler.Server for net/http that trusts every proxy, as Caddy does with the option trusted_proxies. The
// client and the host are taken from the header fields of the proxy.
type trusting struct{ handler.NetHTTP }

func (trusting) TrustsProxy(*http.Request) bool { return true }

func (s trusting) ClientIP(r *http.Request) string {
	if address := r.Header.Get("X-Forwarded-For"); address != "" {
		return address
	}
	return s.NetHTTP.ClientIP(r)
}

// startNetHTTP starts an HTTP server of the package net/http in this process for each site. Each server listens on its
// own port. If a site has Caddy's directive "encode" before the handler, startNetHTTP leaves it out, because net/http
// does not compress.
func (s *server) startNetHTTP(t *testing.T, dir string) {
	t.Helper()
	resolve()
	for i, st := range newSites() {
		if st.before != "" {
			t.Logf("skipped through nethttp: %s of the site with %s, as net/http does not compress", st.before, st.name)
			st.name, _, _ = strings.Cut(st.name, ", behind")
			st.before = ""
		}
		st.server, st.door, st.file = s, netHTTPDoor, filepath.Join(dir, fmt.Sprintf("nethttp-%d.yaml", i))
		if err := os.WriteFile(st.file, []byte(emptyPolicy), 0o600); err != nil {
			t.Fatal(err)
		}
		body := "robots_policy POLICY {\n" + st.options + "\n}\nreverse_proxy UPSTREAM"
		served, why := nethttptest.New(t, body, nethttptest.Config{Policy: st.file, Upstream: &s.up, Server: trusting{}})
		if why != "" {
			t.Fatalf("the site with %s needs Caddy: %s", st.name, why)
		}
		st.site = served
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		st.addr = l.Addr().String()
		web := &http.Server{Handler: served, Protocols: new(http.Protocols)}
		web.Protocols.SetHTTP1(true)
		web.Protocols.SetUnencryptedHTTP2(true)
		go func() { _ = web.Serve(l) }()
		t.Cleanup(func() { _ = web.Close() })
		s.sites[netHTTPDoor] = append(s.sites[netHTTPDoor], st)
	}
}

// explainedHere gets the explanation from package site, because there is no admin API without Caddy.
func (s *running) explainedHere(ask url.Values) (*explanation, error) {
	u, err := url.Parse(ask.Get("url"))
	if err != nil {
		return nil, err
	}
	q := site.Question{Agent: ask.Get("agent"), URL: u, Now: time.Now()}
	if address := ask.Get("address"); address != "" {
		addr, err := netip.ParseAddr(address)
		if err != nil {
			return nil, err
		}
		q.Verify = identity.ExplainRunning(addr)
	}
	e, err := s.site.Explain(q)
	if err != nil {
		return nil, err
	}
	return &explanation{*e}, nil
}
