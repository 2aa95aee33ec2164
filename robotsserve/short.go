// SPDX-License-Identifier: Apache-2.0

package robotsserve

import (
	"fmt"
	"slices"

	"github.com/robotspolicy/caddy-robots-policy/policy"
)

// refused is how much of what the group of a unit disallows beside that of "*" the server
// refuses.
type refused int

const (
	refusesLess refused = iota
	refusesMore         // all that the group of "*" does not disallow
	refusesAll          // every page
)

// refuses reports what the server refuses a unit with a group. Rules that permit something,
// or that demand an identity, which the server may not know at once, have to stand in the file.
func (g *grouping) refuses(u *unit, gr *group) refused {
	if !g.short || u.below != g.starBelow() {
		return refusesLess
	}
	closer := slices.DeleteFunc(g.p.Statements(u.class, policy.Crawl, ""), func(a policy.Applied) bool { return a.Tier == policy.TierEveryone })
	blocks := func(a policy.Applied) bool {
		return !a.Statement.Allow && a.Rule.Identity == policy.DemandClaimed && g.p.Mode(policy.Decision{Rule: a.Rule}) == policy.ModeBlock
	}
	switch {
	case len(closer) == 0 || slices.ContainsFunc(closer, func(a policy.Applied) bool { return !blocks(a) }):
		return refusesLess
	case slices.ContainsFunc(closer, func(a policy.Applied) bool { return a.Statement.Pattern.IsAll() }):
		return refusesAll
	case !slices.EqualFunc(gr.beside(), g.star.beside(), func(a, b Line) bool { return a.Text == b.Text }):
		return refusesLess
	}
	return refusesMore
}

// needsNoName reports whether the file may leave out a crawler, given what the server refuses.
func (g *grouping) needsNoName(info *crawler, by refused) bool {
	return info.Rare && !g.written[info.lower] && (by == refusesAll || by == refusesMore && !info.IgnoresStar)
}

// beside are the lines of a group that are no Allow or Disallow.
func (g *group) beside() []Line {
	return slices.DeleteFunc(slices.Clone(g.lines), func(l Line) bool { return l.key == "allow" || l.key == "disallow" || l.Text == allowAll })
}

// leave takes crawlers that need no name out of those that are named, where others of their
// group are, and counts them.
func (g *grouping) leave(all []*crawler, named map[string]*group) {
	names := map[*group]bool{}
	for _, info := range all {
		if gr := named[info.lower]; gr != nil && !g.nameless[info.lower] {
			names[gr] = true
		}
	}
	for _, info := range all {
		if gr := named[info.lower]; names[gr] && g.nameless[info.lower] && g.followed(info, named) == nil {
			delete(named, info.lower)
			gr.left++
		}
	}
}

// leftComment says how many crawlers a group does not name.
func (g *group) leftComment() string {
	if g.left == 1 {
		return "# and a rarer crawler, which the server refuses"
	}
	return fmt.Sprintf("# and %d rarer crawlers, which the server refuses", g.left)
}
