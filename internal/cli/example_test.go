// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"
)

func TestStartsExample(t *testing.T) {
	for args, want := range map[string]bool{
		"caddy run --config Caddyfile.example":      true,
		"caddy run --config=../Caddyfile.example":   true,
		"caddy run -c /x/Caddyfile.example":         true,
		"caddy run":                                 false,
		"caddy run --config Caddyfile":              false,
		"caddy validate --config Caddyfile.example": false,
		"caddy": false,
	} {
		if got := startsExample(strings.Fields(args)); got != want {
			t.Errorf("%s: %v", args, got)
		}
	}
}

func TestAnnounce(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		t.Errorf("it sent %s %s", r.Method, r.URL)
	}))
	defer server.Close()
	var out strings.Builder
	announce(&out, server.URL, time.Minute)
	if strings.Count(out.String(), "curl ") != 2 || !strings.Contains(out.String(), server.URL+"/robots.txt") {
		t.Errorf("%q", out.String())
	}
	out.Reset()
	if announce(&out, "http://127.0.0.1:1", 0); out.String() != "" {
		t.Errorf("%q", out.String())
	}
}
