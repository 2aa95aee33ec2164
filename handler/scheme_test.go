// SPDX-License-Identifier: Apache-2.0

package handler

import (
	"crypto/tls"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

// Absolute URLs in robots.txt have the scheme that the client uses. If the request came through a trusted proxy, the
// proxy's header field names this scheme.
func TestAddressesHaveTheSchemeOfTheClient(t *testing.T) {
	t.Parallel()
	const policy = "version: 1\nsitemaps: /s.xml\npublish: {rsl: on}\nrules:\n  - for: everyone\n    disallow: {train-ai: /}\n"
	for name, o := range map[string]struct {
		server    Server
		tls       bool
		forwarded string
		want      string
	}{
		"plain":                              {NetHTTP{}, false, "", "http"},
		"TLS":                                {NetHTTP{}, true, "", "https"},
		"a client that claims a proxy":       {NetHTTP{}, false, "https", "http"},
		"a trusted proxy with TLS":           {trusting{}, false, "https", "https"},
		"a trusted proxy without TLS":        {trusting{}, false, "http", "http"},
		"a trusted proxy, and TLS behind it": {trusting{}, true, "http", "https"},
	} {
		h := newHandlerWith(t, policy, Options{Server: o.server})
		for range 2 { // the second answer comes from a cache
			for _, scheme := range []string{o.want, ""} {
				r := httptest.NewRequest(http.MethodGet, "/robots.txt", nil)
				if r.Header.Set("X-Forwarded-Proto", o.forwarded); o.tls {
					r.TLS = &tls.ConnectionState{}
				}
				if scheme == "" { // a client with another scheme must not get the cached answer
					r.TLS, scheme = &tls.ConnectionState{}, "https"
				}
				w := httptest.NewRecorder()
				if err := h.Serve(w, withVars(r), nil); err != nil {
					t.Fatal(err)
				}
				for _, line := range []string{"Sitemap: " + scheme + "://example.com/s.xml\n", "License: " + scheme + "://example.com/license.xml\n"} {
					if !strings.Contains(strings.ReplaceAll(w.Body.String(), "\r", ""), line) {
						t.Errorf("%s: no line %q in\n%s", name, line, w.Body)
					}
				}
			}
		}
	}
}
