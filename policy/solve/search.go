// SPDX-License-Identifier: Apache-2.0

package solve

import "github.com/robotspolicy/caddy-robots-policy/pathpattern"

// Search finds regions, each the paths of one pattern, in which something holds. It
// begins with some patterns and goes on within those in which it does not hold.
//
// A path in which something holds that does not hold for the region around it must match
// one of few patterns. For example, a prohibition stands in all of a region but where a
// permission that overrides it matches. So visit, which is asked about a region, returns
// whether it holds there or else these patterns, and no combination of patterns is looked
// at that cannot matter.
func (b *Budget) Search(start []pathpattern.Pattern, visit func(region pathpattern.Pattern) (holds bool, within []pathpattern.Pattern)) (found []pathpattern.Pattern) {
	seen := map[pathpattern.Pattern]bool{}
	var walk func(pathpattern.Pattern)
	walk = func(p pathpattern.Pattern) {
		for _, r := range p.Rooted() {
			r = r.Plain()
			if seen[r] || !b.Spend(visitCost) {
				continue
			}
			seen[r] = true
			holds, within := visit(r)
			if holds {
				found = append(found, r)
				continue
			}
			for _, q := range within {
				if !b.Spend(1) {
					return
				}
				if !r.Overlaps(q) {
					continue
				}
				meet, _ := b.Cross(r, q)
				for _, m := range meet {
					walk(m)
				}
			}
		}
	}
	for _, p := range start {
		walk(p)
	}
	return found
}

// visitCost is the steps that it takes to look at a region.
const visitCost = 8
