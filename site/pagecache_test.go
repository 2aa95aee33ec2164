// SPDX-License-Identifier: Apache-2.0

package site_test

import (
	"testing"
	"time"

	"github.com/robotspolicy/caddy-robots-policy/robotstag"
)

// The pattern /b matches the target /b as it is, so its page gets all preferences of the pattern. The pattern matches
// the target /B only in lower case, so its page gets only the restrictions. So the two targets must not share a page in
// the cache.
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
