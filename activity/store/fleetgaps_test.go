// SPDX-License-Identifier: Apache-2.0

package store

import (
	"strings"
	"testing"
	"time"

	"github.com/robotspolicy/caddy-robots-policy/claim"
)

// The data of a fleet has a gap for each server that is silent, has unsent rows, or has a wrong clock. It has no gap
// for a server that stopped normally, or that has a new database and had sent all rows of the old one.
func TestGapsOfAFleet(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name  string
		nodes []Node
		want  string
	}{
		{"as they should be", []Node{{Name: "a", Every: 30 * time.Second, Heard: 40 * time.Second}, {Name: "b", Every: time.Hour, Heard: time.Hour}}, ""},
		{"killed", []Node{{Name: "a", Every: 30 * time.Second, Heard: 50 * time.Second}}, "silent-server"},
		{"ended in order", []Node{{Name: "a", Every: 30 * time.Second, Heard: 5 * time.Hour, Ended: true}}, ""},
		{"ended with unsent rows", []Node{{Name: "a", Every: 30 * time.Second, Heard: 5 * time.Hour, Behind: time.Hour, Ended: true}}, "unsent-rows"},
		{"behind", []Node{{Name: "a", Every: 30 * time.Second, Heard: time.Second, Behind: 3 * time.Minute}}, "unsent-rows"},
		{"a new database", []Node{{Name: "a", Every: 30 * time.Second, Heard: time.Hour}, {Name: "a", Every: 30 * time.Second}}, ""},
		{"a new database, and the old one had unsent rows", []Node{{Name: "a", Every: 30 * time.Second, Heard: time.Hour, Behind: time.Hour}, {Name: "a", Every: 30 * time.Second}}, "silent-server"},
		{"clocks", []Node{{Name: "a", Every: 30 * time.Second, Skew: -time.Hour}, {Name: "b", Every: 30 * time.Second, Skew: 3 * time.Minute}}, "clocks-apart clocks-apart"},
		{"given up", []Node{{Name: "a", Every: 30 * time.Second, Heard: 60 * 24 * time.Hour}}, ""},
	} {
		var names []string
		for _, g := range claim.Unite(claim.Coverage{Gaps: gaps(c.nodes, start, start.Add(-time.Hour))}).Gaps {
			names = append(names, g.Name)
			if g.Close == "" || !strings.Contains(g.What, "the server ") || g.To != start || !g.From.Before(start) {
				t.Errorf("%s: %+v", c.name, g)
			}
		}
		if got := strings.Join(names, " "); got != c.want {
			t.Errorf("%s: %q, want %q", c.name, got, c.want)
		}
		for _, n := range c.nodes[:1] {
			if _, known := n.SentUntil(); known == n.Silent() {
				t.Errorf("%s: %+v", c.name, n)
			}
		}
	}
}
