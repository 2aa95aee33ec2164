// SPDX-License-Identifier: Apache-2.0

package site_test

import (
	"testing"
	"time"

	"github.com/robotspolicy/caddy-robots-policy/robotstag"
)

// A page takes all preferences of the paths that a target may mean, but only restrictions of the path in lower case. So
// two targets must not share a page if one pattern matches them in these different ways.
func TestPagesOfLowerCase(t *testing.T) {
	t.Parallel()
	const policy = "version: 1\npublish: {content-usage: on}\nrules:\n  - for: everyone\n    allow: {train-ai: /b}\n"
	header := func(paths ...string) (last string) {
		s := load(t, policy)
		for _, path := range paths {
			p := s.Page("www.example.com", path, time.Time{})
			last = ""
			if p.Values != nil {
				h := map[string][]string{}
				robotstag.Apply(h, p.Values, robotstag.AllChannels)
				last = h["Content-Usage"][0]
			}
		}
		return last
	}
	for _, path := range []string{"/b", "//b", "/B", "/x"} {
		alone := header(path)
		for _, before := range []string{"/b", "//b", "/B", "/x"} {
			if got := header(before, path); got != alone {
				t.Errorf("%s after %s: %q, want %q", path, before, got, alone)
			}
		}
	}
}
