// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"slices"
	"testing"
	"time"

	"github.com/robotspolicy/caddy-robots-policy/internal/caddyside/fleet"
)

// Whether a server is silent goes by the clock of the storage, and not by that of this machine.
func TestSilentServers(t *testing.T) {
	t.Parallel()
	for _, now := range []time.Time{time.Now(), time.Now().Add(-time.Hour), time.Now().Add(time.Hour)} {
		node := func(name, sum string, ago time.Duration) fleet.Node {
			return fleet.Node{Name: name, Policies: map[string]string{"p": sum}, Wrote: now.Add(-ago)}
		}
		loaded, missing, silent := byAnswer([]fleet.Node{
			node("a", "new", 0), node("b", "old", time.Minute), node("c", "old", time.Hour), {Name: "d", Wrote: now}, node("e", "new", time.Hour),
		}, "p", "new")
		if !slices.Equal(loaded, []string{"a", "e"}) || !slices.Equal(missing, []string{"b"}) || !slices.Equal(silent, []string{"c"}) {
			t.Errorf("loaded %v, missing %v, silent %v", loaded, missing, silent)
		}
	}
}
