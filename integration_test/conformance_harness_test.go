// SPDX-License-Identifier: Apache-2.0

package integration_test

import (
	"maps"
	"net"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/caddyserver/caddy/v2"
)

// startSites is start for several sites by host, with the same words standing
// for files and addresses.
func startSites(t *testing.T, policy string, upstream http.Handler, sites map[string]string) *server {
	t.Helper()
	s := &server{t: t, addr: freeAddr(t), dir: t.TempDir()}
	s.write("policy.yaml", policy)
	words := []string{"POLICY", filepath.Join(s.dir, "policy.yaml"), "DIR", s.dir}
	if upstream != nil {
		up := httptest.NewServer(upstream)
		t.Cleanup(up.Close)
		words = append(words, "UPSTREAM", up.Listener.Addr().String())
	}
	s.load(sitesCaddyfile(s.addr, words, sites))
	t.Cleanup(func() {
		if err := caddy.Stop(); err != nil {
			t.Error(err)
		}
	})
	return s
}

func sitesCaddyfile(addr string, words []string, sites map[string]string) string {
	_, port, _ := net.SplitHostPort(addr)
	var b strings.Builder
	b.WriteString("{\n\tadmin off\n\tpersist_config off\n\tauto_https off\n\tlog {\n\t\toutput discard\n\t}\n}\n")
	for _, host := range slices.Sorted(maps.Keys(sites)) {
		b.WriteString("http://" + host + ":" + port + " {\n" + strings.NewReplacer(words...).Replace(sites[host]) + "\n}\n")
	}
	return b.String()
}
