// SPDX-License-Identifier: Apache-2.0

package site_test

import (
	"testing"

	"github.com/robotspolicy/caddy-robots-policy/policy"
)

// Evaluating an ordinary request does not allocate memory, whatever bytes the request has.
func TestJudgingDoesNotAllocate(t *testing.T) {
	s := load(t, `version: 1
rules:
  - for: everyone
    hosts: ["*.example.com"]
    disallow:
      crawl: /premium/
      index: ["/drafts/", "/@private/"]
`)
	id := recognize(s, "GPTBot/1.2")
	for _, path := range []string{"/news/x", "/drafts/a:b(c)", "/@private/%E3%83%84?a=/b", "/.well-known/x", "/premium/x"} {
		for _, host := range []string{"www.example.com", "WWW.example.com:8443", "[www.example.com]:80", ""} {
			s.Page(host, path, june)
			if n := testing.AllocsPerRun(100, func() { s.Page(host, path, june) }); n != 0 {
				t.Errorf("page of %s%s: %v allocations", host, path, n)
			}
			q := policy.Query{Crawler: id, Host: host, Path: path, Now: june}
			if n := testing.AllocsPerRun(100, func() { s.Edge(q) }); n != 0 {
				t.Errorf("edge of %s%s: %v allocations", host, path, n)
			}
		}
	}
}
