// SPDX-License-Identifier: Apache-2.0

package integration_test

import (
	"encoding/json"
	"maps"
	"net/http"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/caddyserver/caddy/v2"
)

// Where nobody does anything with errors a refusal is answered without one, and
// the client sees no difference.
func TestRefusalIsThatOfCaddy(t *testing.T) {
	sites := map[string]string{
		"bare.test":     "robots_policy POLICY\nreverse_proxy UPSTREAM",
		"logged.test":   "log {\noutput file DIR/access.log\nformat json\n}\nrobots_policy POLICY\nreverse_proxy UPSTREAM",
		"encode.test":   "encode zstd gzip\nrobots_policy POLICY\nreverse_proxy UPSTREAM",
		"headers.test":  "header X-Robots-Tag nofollow\nheader X-Other 1\nrobots_policy POLICY\nreverse_proxy UPSTREAM",
		"deferred.test": "header >Cache-Control public\nrobots_policy POLICY\nreverse_proxy UPSTREAM",
		"tailored.test": "robots_policy POLICY {\nheaders tailored\n}\nreverse_proxy UPSTREAM",
		"off.test":      "robots_policy POLICY {\nheaders off\n}\nreverse_proxy UPSTREAM",
	}
	routed := maps.Clone(sites)
	routed["other.test"] = "respond x\nhandle_errors {\nrespond y\n}"
	type answer struct {
		status int
		header http.Header
		body   string
	}
	answers := map[string]answer{}
	for name, all := range map[string]map[string]string{"direct": sites, "by error": routed} {
		t.Run(name, func(t *testing.T) {
			s := startSites(t, slicePolicy, http.HandlerFunc(pageUpstream), all)
			for host := range sites {
				for _, method := range []string{"GET", "HEAD", "POST"} {
					r := s.do(method, "/x", "Host", host, "User-Agent", gptBot, "Accept-Encoding", "gzip")
					r.Header.Del("Date")
					got := answer{r.StatusCode, r.Header, r.body}
					if got.status != 403 || got.body != "" || !reflect.DeepEqual(got.header["Cache-Control"], []string{"no-store"}) {
						t.Errorf("%s %s: %v", method, host, got)
					}
					if before, ok := answers[method+host]; ok && !reflect.DeepEqual(got, before) {
						t.Errorf("%s %s: %v and %v", method, host, got, before)
					}
					answers[method+host] = got
				}
			}
			text, err := os.ReadFile(filepath.Join(s.dir, "access.log"))
			if n := strings.Count(string(text), `"status":403`); err != nil || n != 3 {
				t.Errorf("the access log knows of %d refusals: %v", n, err)
			}
		})
	}
}

// The routes for errors of a subroute get the refusals of handlers inside.
func TestRefusalInSubroute(t *testing.T) {
	s := &server{t: t, addr: freeAddr(t), dir: t.TempDir()}
	s.write("policy.yaml", slicePolicy)
	type m = map[string]any
	route := func(handlers ...m) []m { return []m{{"handle": handlers}} }
	config, err := json.Marshal(m{
		"admin":   m{"disabled": true, "config": m{"persist": false}},
		"logging": m{"logs": m{"default": m{"writer": m{"output": "discard"}}}},
		"apps": m{"http": m{"servers": m{"s": m{
			"listen": []string{s.addr}, "automatic_https": m{"disable": true},
			"routes": route(m{
				"handler": "subroute",
				"routes":  route(m{"handler": "subroute", "routes": route(m{"handler": "robots_policy", "policy": filepath.Join(s.dir, "policy.yaml")})}),
				"errors":  m{"routes": route(m{"handler": "static_response", "status_code": "410", "body": "{http.error.status_code}"})},
			}),
		}}}},
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := caddy.Load(config, true); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = caddy.Stop() })
	if r := s.get("/", "User-Agent", gptBot); r.StatusCode != 410 || r.body != "403" || r.Header.Get("Cache-Control") != "no-store" {
		t.Errorf("%s %v %q", r.Status, r.Header, r.body)
	}
}
