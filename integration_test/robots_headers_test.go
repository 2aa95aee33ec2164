// SPDX-License-Identifier: Apache-2.0

package integration_test

import (
	"net/http"
	"strings"
	"testing"
)

// The policy can have rules for the path /robots.txt. The response for robots.txt has the header fields for these
// rules, like the response for any other path. This includes answers to HEAD and to conditional requests.
func TestRobotsTxtCarriesHeaders(t *testing.T) {
	s := startReloading(t, "", "version: 1\nrules:\n  - for: everyone\n    disallow:\n      index: /robots.txt\n      train-ai: /\n", nil, quickReload)
	ask := func(method, etag string) *http.Response {
		r, err := http.NewRequest(method, "http://"+s.addr+"/robots.txt", nil)
		if err != nil {
			t.Fatal(err)
		}
		if etag != "" {
			r.Header.Set("If-None-Match", etag)
		}
		resp, _ := s.once(r)
		return resp
	}
	get := ask(http.MethodGet, "")
	for name, resp := range map[string]*http.Response{"GET": get, "HEAD": ask(http.MethodHead, ""), "304": ask(http.MethodGet, get.Header.Get("Etag"))} {
		for field, value := range map[string]string{"X-Robots-Tag": "noindex", "Content-Usage": "train-ai=n"} {
			if got := strings.Join(resp.Header.Values(field), ", "); !strings.Contains(got, value) {
				t.Errorf("%s: %s is %q, want %q in it", name, field, got, value)
			}
		}
		if want := map[bool]int{true: http.StatusNotModified, false: http.StatusOK}[name == "304"]; resp.StatusCode != want {
			t.Errorf("%s: status %d, want %d", name, resp.StatusCode, want)
		}
	}
}
