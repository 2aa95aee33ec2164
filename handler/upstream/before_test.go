// SPDX-License-Identifier: Apache-2.0

package upstream

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// The file that a site had before is held for the minute in which the new one is merged,
// and counts toward the bound of the cache.
func TestFileBefore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newServer(t)
		large, small := says("Disallow: /"+strings.Repeat("a", 2000)), says("Disallow: /b")
		for i, step := range []struct {
			next   nextFunc
			before bool
			least  int // octets that are held
		}{{large, false, 2000}, {small, true, 2000}, {small, false, 10}, {fails(404), true, 10}, {large, false, 2000}} {
			s.get(t, "www.example.com", step.next)
			e := s.recent["http www.example.com"]
			if e.before != nil != step.before || s.bytes != e.file.size()+e.before.size() || s.bytes < step.least || s.bytes > step.least+200 {
				t.Errorf("step %d: the one before: %v, %d octets", i, e.before != nil, s.bytes)
			}
			time.Sleep(2 * freshFor)
		}
	})
}
