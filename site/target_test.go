// SPDX-License-Identifier: Apache-2.0

package site_test

import (
	"testing"

	"github.com/robotspolicy/caddy-robots-policy/policy"
)

// A host such as "shop.example.com." with a final dot may mean shop.example.com, but not to every server. So the
// restrictions of both hosts apply to its requests and pages. An allow entry that applies to only one of the two hosts
// has no effect.
func TestOtherHostRestricts(t *testing.T) {
	s := load(t, `version: 1
rules:
  - for: everyone
    disallow: {crawl: /cart/, index: /cart/}
    hosts: shop.example.com
    enforce: block
  - for: GPTBot
    disallow: {crawl: /, index: /}
    hosts: closed.example.com
    enforce: block
  - for: everyone
    disallow: {crawl: /private/, index: /private/}
    enforce: block
  - for: everyone
    allow: {crawl: /private/, index: /private/}
    hosts: open.example.com
`)
	for _, c := range []struct {
		host, path string
		refused    bool
	}{
		{"shop.example.com", "/cart/x", true},
		{"shop.example.com.", "/cart/x", true},
		{"SHOP.example.com.:80", "/cart/x", true},
		{"shop.example.com:80:80", "/cart/x", true},
		{"[[shop.example.com]]", "/cart/x", true},
		{"[shop.example.com].", "/cart/x", true},
		{"shop.example.com.", "/", false},
		{"www.example.com.", "/cart/x", false},
		{"closed.example.com.", "/", true},
		{"open.example.com", "/private/", false},
		{"open.example.com.", "/private/", true},
		{"open.example.com:80:80", "/private/", true},
	} {
		v := s.Edge(policy.Query{Crawler: s.Policy.Crawler("GPTBot"), Host: c.host, Path: c.path, Now: june})
		if v.Blocked() != c.refused {
			t.Errorf("%s%s: blocked %v, want %v", c.host, c.path, v.Blocked(), c.refused)
		}
		if page := s.Page(c.host, c.path, june); (page.Values != nil) != c.refused {
			t.Errorf("%s%s: the page carries %v, want something: %v", c.host, c.path, page.Values, c.refused)
		}
	}
}
