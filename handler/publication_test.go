// SPDX-License-Identifier: Apache-2.0

package handler

import (
	"fmt"
	"testing"
)

// A robots.txt is given to the recorders once a day, and of made-up hosts no more than
// the bound.
func TestPublishedOnce(t *testing.T) {
	var p published
	for _, c := range []struct {
		robots string
		day    int64
		want   bool
	}{{"a v1", 1, true}, {"a v1", 1, false}, {"b v1", 1, true}, {"a v2", 1, true}, {"a v1", 2, true}, {"a v1", 2, false}} {
		if got := p.first(c.robots, c.day); got != c.want {
			t.Errorf("%s on day %d: %v", c.robots, c.day, got)
		}
	}
	n := 0
	for i := range maxRobots + 10 {
		if p.first(fmt.Sprint("host", i, " v1"), 3) {
			n++
		}
	}
	if n != maxRobots {
		t.Errorf("%d were given to the recorders, the bound is %d", n, maxRobots)
	}
}
