// SPDX-License-Identifier: Apache-2.0

package targets

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"testing"

	"github.com/caddyserver/caddy/v2"

	"github.com/robotspolicy/caddy-robots-policy/integration_test/internal/caddytest"
	"github.com/robotspolicy/caddy-robots-policy/integration_test/internal/otherservers"
)

// A crawler that may not crawl a place is refused whatever nginx serves from there, from
// its files or from upstreams.
func TestNothingClosedIsServedByNginx(t *testing.T) {
	dir := files(t, policyOf("crawl", "    enforce: block\n"))
	up := httptest.NewServer(http.HandlerFunc(upstream))
	t.Cleanup(up.Close)
	decider := caddytest.FreeAddr(t)
	ports := strings.NewReplacer("127.0.0.1:9180", decider, "127.0.0.1:8000", up.Listener.Addr().String())
	recipe := ports.Replace(otherservers.Recipe(t, "../..", "nginx.conf"))
	header, site, _ := strings.Cut(recipe, "server {\n\tlisten")
	site = "server {\n\tlisten" + site
	const proxy = "proxy_pass http://app;\n\t\tproxy_set_header Host $host;"
	f := &fleet{names: []string{"nginx: upstream", "nginx: files"}, modes: [][]string{goModes, nil}}
	var config strings.Builder
	config.WriteString(header)
	for _, body := range []string{proxy, "root " + filepath.Join(dir, "files") + ";"} {
		addrs := caddytest.FreeAddrs(t, 2)
		f.bare, f.guarded = append(f.bare, addrs[0]), append(f.guarded, addrs[1])
		config.WriteString("server {\nlisten " + addrs[0] + ";\nlocation / {\n" + body + "\n}\n}\n")
		config.WriteString(strings.NewReplacer("listen 80", "listen "+addrs[1], proxy, body).Replace(site))
	}
	if !strings.Contains(site, proxy) {
		t.Fatal("the recipe has another proxy_pass")
	}
	otherservers.Nginx(t, "../..", config.String(), append(f.bare, f.guarded...)...)
	if err := caddytest.Load(otherservers.Decider(decider, "nginx", filepath.Join(dir, "policy.yaml"), "")); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = caddy.Stop() })
	// nginx answers 500 where Caddy takes a request for malformed.
	compare(t, f, crawler, whereClosed(func(_ request, r response) string {
		if r.status >= http.StatusBadRequest && !strings.Contains(r.body, mark) {
			return ""
		}
		return fmt.Sprintf("status %d", r.status)
	}))
}
