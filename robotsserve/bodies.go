// SPDX-License-Identifier: Apache-2.0

package robotsserve

import (
	"cmp"
	"encoding/binary"
	"fmt"
	"slices"

	"github.com/robotspolicy/caddy-robots-policy/policy"
)

// groupBody holds the lines of a group after its User-agent lines.
type groupBody struct {
	lines  []Line
	key    string // identifies the lines
	losses []Loss
}

var shut = groupBody{lines: []Line{{Text: "Disallow: /"}}, key: "Disallow: /\n"}

// bodies returns the body of the group of each unit, in the order of units. It computes the bodies of the most
// important units first. If the groups become larger than g.room, the remaining units get a body that disallows
// everything. If the site's own file is merged, they also get such a body if the computation would take too long.
func (g *grouping) bodies(units []unit) []groupBody {
	made := make([]groupBody, len(units))
	cache := map[string]groupBody{} // in a large policy many classes share lines
	size, seen := 0, map[string]bool{}
	if g.below != nil {
		for i := range units {
			for _, info := range units[i].infos {
				size += len("User-agent: \r\n") + len(info.Token)
			}
		}
	}
	for _, i := range g.byImportance(units) {
		u := units[i]
		if i > 0 && (size > g.room || g.below != nil && g.budget.Exceeded()) {
			made[i] = shut
			g.shut += len(u.infos)
			continue
		}
		b := g.bodyOf(u, cache)
		switch n := g.sizeOf(u, b.key); {
		case seen[b.key]:
		case i > 0 && g.below != nil && size+n > g.room:
			b = shut
			g.shut += len(u.infos)
		default:
			seen[b.key] = true
			size += n
		}
		made[i] = b
	}
	return made
}

// sizeOf estimates the size of a unit's group without its names.
func (g *grouping) sizeOf(u unit, key string) int {
	gr := group{}
	gr.add(narrower(g.p, u.class))
	n := len("\n") + len(key)
	for _, name := range gr.names() {
		n += len("# ") + len(name)
	}
	return n
}

// byImportance returns the indexes of units, the most important unit first: everyone, then search engines, then
// crawlers that a rule names, then the others.
func (g *grouping) byImportance(units []unit) []int {
	order, rank := make([]int, len(units)), make([]int, len(units))
	for i, u := range units {
		order[i] = i
		switch {
		case i == 0:
		case slices.ContainsFunc(u.infos, func(c *crawler) bool { return c.Category == "search" }):
			rank[i] = 1
		case slices.ContainsFunc(narrower(g.p, u.class), func(r *policy.Rule) bool { return !r.Fallback }):
			rank[i] = 2
		default:
			rank[i] = 3
		}
	}
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(rank[a], rank[b]) })
	return order
}

func (g *grouping) bodyOf(u unit, cache map[string]groupBody) (made groupBody) {
	if u.control != nil {
		made.lines, made.losses = g.controlBody(u)
		made.key = keyOf(made.lines)
		return made
	}
	var key []byte
	for tier := range policy.TierEveryone {
		for _, r := range g.p.Rules(u.class, tier) {
			if place := g.places[r]; place > 0 {
				key = binary.AppendUvarint(key, place)
			}
		}
		key = append(key, 0)
	}
	// The key of two crawlers must not be equal if the same rules reach them through different audiences, because one
	// audience may override another. So the key also contains the audiences.
	for _, usage := range g.usages {
		for _, a := range g.p.Statements(u.class, usage, "") {
			if a.Tier == policy.TierGroup {
				key = binary.AppendUvarint(key, g.places[a.Rule])
				key = append(append(key, a.Audience.String()...), 0)
			}
		}
	}
	for _, c := range u.alike {
		key = fmt.Appendf(key, " %p", c)
	}
	made, ok := cache[string(key)]
	if !ok {
		made.lines, made.losses = g.body(u.class, u.alike...)
		made.key = keyOf(made.lines)
		cache[string(key)] = made
	}
	made.losses = slices.Clone(made.losses)
	return made
}
