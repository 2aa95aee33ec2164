// SPDX-License-Identifier: Apache-2.0

package targets

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/caddyserver/caddy/v2"

	"github.com/robotspolicy/caddy-robots-policy/integration_test/internal/caddytest"
	"github.com/robotspolicy/caddy-robots-policy/integration_test/internal/otherservers"
	"github.com/robotspolicy/caddy-robots-policy/internal/testkit"
)

// A crawler is blocked whenever nginx would serve a disallowed place, from its files or from upstreams.
func TestNothingClosedIsServedByNginx(t *testing.T) {
	f := behindNginx(t)
	// nginx answers 500 if Caddy treats a request as malformed.
	compare(t, f, crawler, whereClosed(refusedOrFailed))
}

// A crawler is blocked whenever an upstream of HAProxy would serve a disallowed place.
func TestNothingClosedIsServedByHAProxy(t *testing.T) {
	compare(t, behindHAProxy(t), crawler, whereClosed(refusedOrFailed))
}

func refusedOrFailed(_ request, r response) string {
	if r.status >= http.StatusBadRequest && !strings.Contains(r.body, mark) {
		return ""
	}
	return fmt.Sprintf("status %d", r.status)
}

// A browser gets the same answers from nginx and HAProxy as without a policy, however the target is spelled. Hosts that
// Caddy or the recipe does not accept are not tested.
func TestBrowsersGetTheSameFromOtherServers(t *testing.T) {
	testkit.Slow(t)
	for name, start := range map[string]func(*testing.T) *fleet{"nginx": behindNginx, "haproxy": behindHAProxy} {
		t.Run(name, func(t *testing.T) {
			compare(t, start(t), browser, func(q request, without, with response) string {
				if !slices.Contains(hosts, q.host) || strings.Contains(q.target, "\u017f") {
					return ""
				}
				return sameStatus(q, without, with)
			})
		})
	}
}

// Caddy cannot parse some malformed targets, such as /100%. If a browser sends such a target, the request still reaches
// the application. If a crawler sends it, the request is blocked if some server could interpret the target as a
// disallowed place.
func TestUnparsedTargetsThroughHAProxy(t *testing.T) {
	_, decider, _ := asked(t, "forward")
	f := haproxy(t, decider, map[string]string{"logger": listen(t, logTargets)})
	for target, want := range map[string][2]int{
		"/100%": {200, 200}, "/%zz?%": {200, 200}, "http://www.example.com/100%": {200, 200},
		"/admin/100%": {200, 403}, "/%zz/../admin/%": {200, 403}, "http://www.example.com/admin/%": {200, 403},
		"x:http://www.example.com/admin/x": {400, 400}, "x:y": {400, 400},
	} {
		for i, agent := range []string{browser, crawler} {
			w := &wire{addr: f.guarded[0]}
			r, err := ask(w, request{method: http.MethodGet, target: target, host: "www.example.com", agent: agent, proto: 1})
			w.close()
			if err != nil || r.status != want[i] {
				t.Errorf("%s of %s: %d, want %d: %v", target, agent, r.status, want[i], err)
			}
		}
	}
}

// asked starts a Caddy that other servers ask for decisions. style names the protocol in which they ask. It also starts
// the upstreams of these servers, and returns their addresses, keyed by name.
func asked(t *testing.T, style string) (dir, decider string, upstreams map[string]string) {
	t.Helper()
	dir = files(t, policyOf("crawl", "    enforce: block\n"))
	up := httptest.NewServer(http.HandlerFunc(upstream))
	t.Cleanup(up.Close)
	decider, upstreams = caddytest.FreeAddr(t), map[string]string{"upstream": up.Listener.Addr().String()}
	if otherservers.Installed("node") {
		upstreams["Node"] = node(t, dir)
	}
	if err := caddytest.Load(otherservers.Decider(decider, style, filepath.Join(dir, "policy.yaml"), "")); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = caddy.Stop() })
	return dir, decider, upstreams
}

var upstreamModes = map[string][]string{"upstream": goModes, "Node": nodeModes}

func behindNginx(t *testing.T) *fleet {
	t.Helper()
	dir, decider, upstreams := asked(t, "nginx")
	recipe := strings.ReplaceAll(otherservers.Recipe(t, "../..", "nginx.conf"), "127.0.0.1:9180", decider)
	header, site, _ := strings.Cut(recipe, "server {\n\tlisten")
	site = "server {\n\tlisten" + site
	const proxy = "proxy_pass http://app;\n\t\tproxy_set_header Host $host;"
	if !strings.Contains(site, proxy) {
		t.Fatal("the recipe has another proxy_pass")
	}
	bodies := map[string]string{"files": "root " + filepath.Join(dir, "files") + ";"}
	for name, addr := range upstreams {
		bodies[name] = strings.Replace(proxy, "app", addr, 1)
	}
	f := &fleet{}
	config := header
	for name, body := range bodies {
		addrs := caddytest.FreeAddrs(t, 2)
		f.add(name, upstreamModes[name], addrs[0], addrs[1])
		config += "server {\nlisten " + addrs[0] + ";\nlocation / {\n" + body + "\n}\n}\n" +
			strings.NewReplacer("listen 80", "listen "+addrs[1], proxy, body).Replace(site)
	}
	otherservers.Nginx(t, "../..", config, append(f.bare, f.guarded...)...)
	return f
}

func behindHAProxy(t *testing.T) *fleet {
	t.Helper()
	_, decider, upstreams := asked(t, "forward")
	return haproxy(t, decider, upstreams)
}

func haproxy(t *testing.T, decider string, upstreams map[string]string) *fleet {
	t.Helper()
	f := &fleet{}
	recipe := otherservers.Recipe(t, "../..", "haproxy.cfg")
	lua := strings.ReplaceAll(otherservers.Recipe(t, "../..", "robots-policy.lua"), "127.0.0.1:9180", decider)
	frontend := recipe[strings.Index(recipe, "frontend web"):]
	config := recipe[:len(recipe)-len(frontend)]
	for name, addr := range upstreams {
		addrs := caddytest.FreeAddrs(t, 2)
		f.add(name, upstreamModes[name], addrs[0], addrs[1])
		config += "frontend bare" + name + "\n\tbind " + addrs[0] + "\n\tdefault_backend app" + name + "\n\n" +
			strings.NewReplacer("frontend web", "frontend "+name, "bind :80", "bind "+addrs[1], "backend app", "backend app"+name, "default_backend app", "default_backend app"+name,
				"backend robots_policy", "backend policy"+name, "use_backend robots_policy", "use_backend policy"+name, "127.0.0.1:9180", decider, "127.0.0.1:8000", addr).Replace(frontend)
	}
	otherservers.HAProxy(t, config, lua, append(f.bare, f.guarded...)...)
	return f
}
