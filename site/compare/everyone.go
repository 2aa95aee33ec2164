// SPDX-License-Identifier: Apache-2.0

package compare

import (
	"slices"
	"strings"

	"github.com/robotspolicy/caddy-robots-policy/policy"
)

// everyone says for whom a record is if that is everyone or nearly: "everyone except
// ai-training crawlers", or of what is refused "every known crawler". It is empty if
// the crawlers are better listed.
func (c *comparison) everyone(r *record, rest bool) string {
	all := "everyone"
	if r.effect == Edge {
		all = "every known crawler"
	} else if !rest {
		return ""
	}
	listed := map[string]bool{}
	for _, s := range r.subjects {
		for _, t := range s.tokens {
			listed[t] = true
		}
	}
	left := map[string][]string{}
	for _, s := range c.subjects(nameOf(policy.Host(r.hosts[0]))) {
		tokens := s.tokens
		if r.effect == Edge {
			tokens = s.sent
		}
		if len(tokens) == 0 || listed[tokens[0]] || c.closedAlready(r, &s) {
			continue
		}
		for _, t := range tokens {
			left[c.kinds[t]] = append(left[c.kinds[t]], t)
		}
	}
	var parts []string
	for _, kind := range sortedKeys(left) {
		if names := left[kind]; kind != "" && len(names) == c.sentOf(kind, r.effect == Edge) {
			parts = append(parts, kind+" crawlers")
		} else {
			parts = append(parts, names...)
		}
	}
	switch {
	case len(parts) == 0:
		return all
	case len(parts) <= maxNames:
		return all + " except " + strings.Join(parts, ", ")
	}
	return ""
}

// sentOf counts the crawlers of a kind, or those of them that requests name.
func (c *comparison) sentOf(kind string, requests bool) (n int) {
	for _, t := range c.tokens {
		if c.kinds[t] == kind && !(requests && c.robotsOnly(t)) {
			n++
		}
	}
	return n
}

// closedAlready reports whether nothing changes for a subject because the new policy
// closes to everyone else what was closed to it before.
func (c *comparison) closedAlready(r *record, s *subject) bool {
	if r.effect != Loss || r.now != disallowed {
		return false
	}
	for _, name := range r.usages {
		u, ok := policy.ParseUsage(name)
		if !ok {
			return false
		}
		for _, id := range []policy.Identity{policy.Unknown, policy.Impostor, policy.Verified} {
			if r.identities&(1<<id) != 0 && !c.closes(r, newSide(c.now, &s.now, u, id, r.purpose, c.at).indexed()) {
				return false
			}
		}
	}
	return true
}

// closes reports whether a side closes all of a record's paths.
func (c *comparison) closes(r *record, s *side) bool {
	for _, p := range r.paths {
		if _, stands := s.standing(p, policy.ModeUnset); !stands {
			return false
		}
		if slices.ContainsFunc(s.statements, func(st statement) bool {
			return !st.prohibits && st.Statement.Pattern.Overlaps(p) && !st.Statement.Pattern.Covers(p)
		}) {
			return false
		}
	}
	return true
}
