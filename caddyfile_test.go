// SPDX-License-Identifier: Apache-2.0

package robotspolicy

import (
	"testing"
	"testing/synctest"
	"time"
)

// The line of a Caddyfile is for the configuration that is loaded from it, and not for
// one that comes later.
func TestPolicyLinesAreForgotten(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var l lines
		l.set("a.yaml", "Caddyfile:3")
		l.set("b.yaml", "Caddyfile:7")
		if got := l.take("a.yaml"); got != "Caddyfile:3" {
			t.Errorf("a.yaml: %q", got)
		}
		if got := l.take("a.yaml"); got != "" {
			t.Errorf("a.yaml again: %q", got)
		}
		time.Sleep(lineLifetime + time.Second)
		if got := l.take("b.yaml"); got != "" {
			t.Errorf("b.yaml later: %q", got)
		}
		for range 3 {
			l.set("c.yaml", "Caddyfile:1")
			time.Sleep(lineLifetime + time.Second)
		}
		if l.set("d.yaml", "Caddyfile:2"); len(l.places) != 1 {
			t.Errorf("%d places are remembered", len(l.places))
		}
	})
}
