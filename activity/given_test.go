// SPDX-License-Identifier: Apache-2.0

package activity

import (
	"fmt"
	"runtime"
	"testing"
)

// A robots.txt is passed to the recorders once a day. For invented hosts, no more than maxRobots files are passed on.
func TestGivenOnce(t *testing.T) {
	var p GivenTo
	for _, c := range []struct {
		robots string
		day    int64
		want   bool
	}{{"a v1", 1, true}, {"a v1", 1, false}, {"b v1", 1, true}, {"a v2", 1, true}, {"a v1", 2, true}, {"a v1", 2, false}} {
		if got := p.Robots(c.robots, c.day); got != c.want {
			t.Errorf("%s on day %d: %v", c.robots, c.day, got)
		}
	}
	n := 0
	for i := range maxRobots + 10 {
		if p.Robots(fmt.Sprint("host", i, " v1"), 3) {
			n++
		}
	}
	if n != maxRobots {
		t.Errorf("%d files were passed to the recorders, the limit is %d", n, maxRobots)
	}
}

// A policy may stay in force while configurations are reloaded, and each reload may bring new Recorders. Given does not
// keep memory for Recorders that no handler uses any more.
func TestGivenGoesWithItsRecorders(t *testing.T) {
	t.Parallel()
	var g Given
	for range 100 {
		g.To(new(Recorders))
	}
	runtime.GC()
	last := new(Recorders)
	p := g.To(last)
	if n := len(g.list()); n != 1 || g.To(last) != p {
		t.Errorf("memory for %d recorders is kept", n)
	}
}
