// SPDX-License-Identifier: Apache-2.0

package compare

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/robotspolicy/caddy-robots-policy/pathpattern"
	"github.com/robotspolicy/caddy-robots-policy/policy"
)

type record struct {
	effect     Effect
	usages     []string
	old, now   string
	paths      []pathpattern.Pattern // none of them covers another
	except     []pathpattern.Pattern // parts of paths where it does not change so
	already    []pathpattern.Pattern // parts of paths where it was so before
	identities uint8                 // a bit for each policy.Identity
	purpose    string
	subjects   []*subject
	hosts      []string
	repeated   bool // the same changes for clients that name no purpose
}

const everyIdentity = 1<<policy.Unknown | 1<<policy.Impostor | 1<<policy.Verified

// what is what changes, but for those for which it does.
func (r *record) what() string {
	return fmt.Sprint(r.effect, "\n", r.old, "\n", r.now, "\n", r.paths, "\n", r.except, "\n", r.already)
}

// purposeless marks a record that is among others without its purpose.
func (r *record) purposeless(all []record) {
	if r.purpose == "" {
		return
	}
	r.repeated = slices.ContainsFunc(all, func(other record) bool {
		return other.purpose == "" && other.what() == r.what() && slices.Equal(other.usages, r.usages) && other.identities&r.identities == r.identities
	})
}

// subject compares what both say to a subject by decisions.
func (c *comparison) subject(s *subject, host string, id policy.Identity, purpose string) (all []record) {
	old, now := s.old, s.now
	if purpose != "" {
		old, now = c.old.WithPurpose(&old, purpose), c.now.WithPurpose(&now, purpose)
	}
	for _, u := range policy.Usages() {
		if u == policy.Other {
			continue // it shows in the usages that it stands for
		}
		a, b := newSide(c.old, &old, u, id, purpose, c.at), newSide(c.now, &now, u, id, purpose, c.at)
		ka, kb := a.key(), b.key()
		if ka == kb {
			continue
		}
		refuses := u == policy.Crawl && len(s.sent) > 0
		key := fmt.Sprint(u, refuses, "\n", ka, "\n\n", kb)
		found, ok := c.done[key]
		if !ok {
			found = c.usage(u, a.indexed(), b.indexed(), refuses)
			c.done[key] = found
		}
		all = append(all, found...)
	}
	return all
}

func (c *comparison) usage(u policy.Usage, a, b *side, refuses bool) (all []record) {
	add := func(regions []pathpattern.Pattern, state func(*side, pathpattern.Pattern) string, effect func(*record) Effect) {
		found := c.records(u.String(), regions, a, b, state)
		for i := range found {
			found[i].effect = effect(&found[i])
		}
		all = append(all, found...)
	}
	closed := func(s *side, r pathpattern.Pattern) string {
		if _, ok := s.standing(r, policy.ModeUnset); ok {
			return disallowed
		}
		return ""
	}
	add(slices.Concat(c.closed(b, a, policy.ModeUnset), c.closed(a, b, policy.ModeUnset)), closed, func(r *record) Effect {
		// Parts of what is closed, or was, may be allowed or unstated: the first is said.
		if r.now == disallowed {
			r.old = a.state(r.paths[0]).String()
			return Loss
		}
		r.now = b.state(r.paths[0]).String()
		return Gain
	})
	says := func(s *side, r pathpattern.Pattern) string { return s.state(r).String() }
	if u != policy.Crawl {
		add(slices.Concat(c.stated(a, b), c.stated(b, a)), says, func(*record) Effect { return Stated })
	}
	add(c.limited(a, b), says, func(r *record) Effect {
		if strings.HasPrefix(r.old, r.now) { // limits are dropped, and none is new
			return Gain
		}
		return Loss
	})
	if !refuses {
		return all
	}
	// What is blocked at the edge changes with the decision, or with the mode alone.
	var regions []pathpattern.Pattern
	for _, m := range []policy.Mode{policy.ModeLog, policy.ModeBlock} {
		regions = slices.Concat(regions, c.closed(b, a, m), c.closed(a, b, m))
	}
	add(regions, (*side).mode, func(*record) Effect { return Edge })
	return all
}

func (s *side) mode(r pathpattern.Pattern) string {
	for _, m := range []policy.Mode{policy.ModeBlock, policy.ModeLog} {
		if _, ok := s.standing(r, m); ok {
			return m.String()
		}
	}
	return policy.ModeOff.String()
}

const disallowed = "disallowed"

// records puts the regions together in which the same changes.
func (c *comparison) records(usage string, regions []pathpattern.Pattern, a, b *side, state func(*side, pathpattern.Pattern) string) (all []record) {
	for _, r := range union(regions, nil) {
		x, y := state(a, r), state(b, r)
		if x == y {
			continue
		}
		i := slices.IndexFunc(all, func(o record) bool { return o.old == x && o.now == y })
		if i < 0 {
			i = len(all)
			all = append(all, record{usages: []string{usage}, old: x, now: y})
		}
		all[i].paths = append(all[i].paths, r)
	}
	patterns := slices.Concat(a.all(), b.all())
	for i := range all {
		o := &all[i]
		o.paths = widest(o.paths)
		x := index(o.paths)
		for _, p := range c.candidates(o.paths, patterns) {
			for _, p := range p.Rooted() {
				p = p.Plain()
				c.budget.Spend(len(o.paths))
				inside := false
				x.Covering(p, func(int) { inside = true })
				if !inside {
					continue
				}
				switch x, y := state(a, p), state(b, p); {
				case x == o.now && y == o.now:
					o.already = append(o.already, p)
				case x != o.old || y != o.now:
					o.except = append(o.except, p)
				}
			}
		}
		o.except, o.already = widest(o.except), widest(o.already)
	}
	return all
}

func (c *comparison) candidates(regions, patterns []pathpattern.Pattern) []pathpattern.Pattern {
	patterns = union(patterns, nil)
	return append(patterns, c.crossings(regions, patterns)...)
}

// maxCrossings bounds the patterns that crossings returns.
const maxCrossings = 5000

// crossings returns patterns for what two of the patterns have in common of which neither covers the other.
func (c *comparison) crossings(some, others []pathpattern.Pattern) (all []pathpattern.Pattern) {
	for _, p := range some {
		for _, q := range others {
			if !c.budget.Spend(1) || len(all) > maxCrossings {
				return all
			}
			if !p.Overlaps(q) || p.Covers(q) || q.Covers(p) {
				continue
			}
			meet, _ := c.budget.Cross(p, q)
			all = append(all, meet...)
		}
	}
	return all
}

func (s *side) all() []pathpattern.Pattern {
	all := make([]pathpattern.Pattern, len(s.statements))
	for i := range s.statements {
		all[i] = s.statements[i].Statement.Pattern
	}
	return all
}

// widest sorts patterns and drops those that another one covers.
func widest(all []pathpattern.Pattern) []pathpattern.Pattern {
	slices.SortFunc(all, func(a, b pathpattern.Pattern) int {
		return cmp.Or(len(a.String())-len(b.String()), strings.Compare(a.String(), b.String()))
	})
	x := index(all)
	var left []pathpattern.Pattern
	for i, p := range all {
		narrower := false
		x.Covering(p, func(j int) {
			// Of two that cover each other the first is left.
			narrower = narrower || j != i && all[j] != p && (j < i || !p.Covers(all[j]))
		})
		if !narrower && (len(left) == 0 || left[len(left)-1] != p) {
			left = append(left, p)
		}
	}
	return left
}

func index(list []pathpattern.Pattern) *pathpattern.Index[int] {
	entries := make([]pathpattern.Entry[int], len(list))
	for i, p := range list {
		entries[i] = pathpattern.Entry[int]{Pattern: p, Value: i}
	}
	return pathpattern.NewIndex(entries, func(a, _ int) int { return a })
}
