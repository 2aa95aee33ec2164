// SPDX-License-Identifier: Apache-2.0

package upstream

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// When a site's own robots.txt changes, the cache keeps the previous file until the server requests the file from the
// site again. The size of the previous file counts toward the limit of the cache.
func TestFileBefore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newServer(t)
		large, small := says("Disallow: /"+strings.Repeat("a", 2000)), says("Disallow: /b")
		for i, step := range []struct {
			next   nextFunc
			before bool
			least  int // the least size of the cached files, in bytes
		}{{large, false, 2000}, {small, true, 2000}, {small, false, 10}, {fails(404), true, 10}, {large, false, 2000}} {
			s.get(t, "www.example.com", step.next)
			e := s.recent["http www.example.com"]
			if e.before != nil != step.before || s.bytes != e.file.size()+e.before.size() || s.bytes < step.least || s.bytes > step.least+200 {
				t.Errorf("step %d: previous file is cached: %v, %d bytes", i, e.before != nil, s.bytes)
			}
			time.Sleep(2 * freshFor)
		}
	})
}
