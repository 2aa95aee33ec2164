// SPDX-License-Identifier: Apache-2.0

package integration_test

import (
	"encoding/json"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/caddyserver/caddy/v2"
)

// If a request is blocked, the response is the same whatever other directives the site has, including error routes. The
// access log contains the request.
func TestRefusalIsAResponse(t *testing.T) {
	sites := map[string]string{
		"bare.test":     "robots_policy POLICY\nreverse_proxy UPSTREAM",
		"logged.test":   "log {\noutput file DIR/access.log\nformat json\n}\nrobots_policy POLICY\nreverse_proxy UPSTREAM",
		"encode.test":   "encode zstd gzip\nrobots_policy POLICY\nreverse_proxy UPSTREAM",
		"headers.test":  "header X-Robots-Tag nofollow\nheader X-Other 1\nheader Cache-Control public\nrobots_policy POLICY\nreverse_proxy UPSTREAM",
		"tailored.test": "robots_policy POLICY {\nheaders tailored\n}\nreverse_proxy UPSTREAM",
		"off.test":      "robots_policy POLICY {\nheaders off\n}\nreverse_proxy UPSTREAM",
		"errors.test":   "robots_policy POLICY\nreverse_proxy UPSTREAM\nhandle_errors {\nreverse_proxy UPSTREAM\n}",
		"raised.test":   "robots_policy POLICY {\nblock_with error\n}\nreverse_proxy UPSTREAM",
	}
	s := startSites(t, slicePolicy, http.HandlerFunc(pageUpstream), sites)
	for host := range sites {
		for _, method := range []string{"GET", "HEAD", "POST"} {
			r := s.do(method, "/x", "Host", host, "User-Agent", gptBot, "Accept-Encoding", "gzip")
			if r.StatusCode != 403 || r.body != "" || !slices.Equal(r.Header["Cache-Control"], []string{"no-store"}) {
				t.Errorf("%s %s: %s %v %q", method, host, r.Status, r.Header, r.body)
			}
		}
	}
	text, err := os.ReadFile(filepath.Join(s.dir, "access.log"))
	if n := strings.Count(string(text), `"status":403`); err != nil || n != 3 {
		t.Errorf("the access log contains %d blocks: %v", n, err)
	}
}

// With "block_with error", the error routes decide what a blocked crawler gets. They may even answer with the page.
func TestRefusalAsAnError(t *testing.T) {
	s := start(t, slicePolicy, htmlUpstream(page("")), `
	robots_policy POLICY {
		block_with error
	}
	reverse_proxy UPSTREAM
	handle_errors {
		reverse_proxy UPSTREAM
	}`)
	if r := s.get("/", "User-Agent", gptBot); !strings.Contains(r.body, "<head>") {
		t.Errorf("%s %v %q", r.Status, r.Header, r.body)
	}
}

// The message of a policy is never executed as a template, and neither is an error page that contains the message.
func TestTemplatesDoNotExecuteAMessage(t *testing.T) {
	t.Setenv("ROBOTS_POLICY_SECRET", "a secret")
	const policy = `version: 1
enforcement:
  message: 'secret: {{env "ROBOTS_POLICY_SECRET"}}'
rules:
  - for: GPTBot
    disallow:
      crawl: /
    enforce: block
`
	s := startSites(t, policy, htmlUpstream(page("")), map[string]string{
		"around.test": "route {\ntemplates\nrobots_policy POLICY\nreverse_proxy UPSTREAM\n}",
		"inside.test": "robots_policy POLICY\ntemplates\nreverse_proxy UPSTREAM",
		"errors.test": "robots_policy POLICY {\nblock_with error\n}\nreverse_proxy UPSTREAM\nhandle_errors {\ntemplates\nrespond \"{err.message}\"\n}",
	})
	for _, host := range []string{"around.test", "inside.test", "errors.test"} {
		r := s.get("/", "Host", host, "User-Agent", gptBot)
		if !strings.HasPrefix(r.body, "secret: {") || strings.Contains(r.body, "a secret") {
			t.Errorf("%s: %s %q", host, r.Status, r.body)
		}
	}
}

// With "block_with error", the error routes of a subroute answer the blocks of handlers inside that subroute.
func TestRefusalInSubroute(t *testing.T) {
	s := newServer(t, t.TempDir(), slicePolicy, nil)
	type m = map[string]any
	route := func(handlers ...m) []m { return []m{{"handle": handlers}} }
	config, err := json.Marshal(m{
		"admin":   m{"disabled": true, "config": m{"persist": false}},
		"logging": m{"logs": m{"default": m{"writer": m{"output": "discard"}}}},
		"apps": m{"http": m{"servers": m{"s": m{
			"listen": []string{s.addr}, "automatic_https": m{"disable": true},
			"routes": route(m{
				"handler": "subroute",
				"routes":  route(m{"handler": "subroute", "routes": route(m{"handler": "robots_policy", "block_with": "error", "policy": filepath.Join(s.dir, "policy.yaml")})}),
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
