// SPDX-License-Identifier: Apache-2.0

package robotsserve

import (
	"encoding/binary"
	"slices"

	"github.com/robotspolicy/caddy-robots-policy/policy"
)

// bodies keeps the lines of groups, by all that they depend on: most rules of a
// large policy say nothing that stands in a group, and so most classes of crawlers
// have the lines of another.
type bodies struct {
	p     *policy.Policy
	place map[*policy.Rule]uint64 // in the policy; only of rules that shape a group
	kept  map[bodyKey]groupBody
}

type bodyKey struct {
	rules string
	below *foreignGroup
}

type groupBody struct {
	lines  []string
	losses []Loss
}

func newBodies(p *policy.Policy) *bodies {
	b := &bodies{p: p, place: map[*policy.Rule]uint64{}, kept: map[bodyKey]groupBody{}}
	rules := p.Spec().Rules
	for i := range rules {
		if r := &rules[i]; inGroup(r) || slices.ContainsFunc(r.Statements, func(s policy.Statement) bool { return s.Usage == policy.Other }) {
			b.place[r] = uint64(i) + 1
		}
	}
	return b
}

// of returns the body of a unit's group. Its losses are the caller's own.
func (b *bodies) of(g *grouping, u unit) ([]string, []Loss) {
	var key []byte
	for _, tier := range []policy.Tier{policy.TierToken, policy.TierGroup} {
		for _, r := range b.p.Rules(u.class, tier) {
			if place := b.place[r]; place > 0 {
				key = binary.AppendUvarint(key, place)
			}
		}
		key = append(key, 0)
	}
	k := bodyKey{string(key), u.below}
	made, ok := b.kept[k]
	if !ok {
		made.lines, made.losses = g.body(u.class, "", u.below)
		b.kept[k] = made
	}
	return made.lines, slices.Clone(made.losses)
}
