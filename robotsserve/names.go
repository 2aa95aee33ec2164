// SPDX-License-Identifier: Apache-2.0

package robotsserve

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/robotspolicy/caddy-robots-policy/pathpattern"
	"github.com/robotspolicy/caddy-robots-policy/policy"
)

// name sets the tokens of the groups. A group names a crawler if a rule names the crawler, and if the crawler needs
// other lines than the group of "*" and the groups of the crawlers that it follows. If purposes is true, there are
// groups of purposes, which win over the group of "*". In this case, every crawler that rules name gets a group.
func (g *grouping) name(purposes bool) {
	g.star.tokens = []string{"*"}
	all := g.candidates()
	named := map[string]*group{} // by token in lower case
	for _, info := range all {
		if gr := g.due[info.lower]; gr != nil && (gr.key != g.star.key || info.IgnoresStar || purposes) {
			named[info.lower] = gr
		}
	}
	g.skipIdle(all, named)
	g.leave(all, named)
	followers := map[*group]*group{} // second group with the lines of "*", for crawlers that would follow another group
	for _, info := range all {
		token := info.lower
		gr, due := named[token], g.due[token]
		head := g.followed(info, named)
		switch {
		case gr == nil && head != nil:
			named := due != nil
			if !named {
				due = g.star
			}
			if gr = due; due.key != head.key && (named || g.isFamily(info) || laxer(head, due)) {
				if gr == g.star {
					if followers[gr] == nil {
						followers[gr] = &group{lines: gr.lines, key: gr.key, rules: gr.rules}
					}
					gr = followers[gr]
				}
				gr.tokens = append(gr.tokens, info.Token)
			}
		case gr == nil:
			if info.IgnoresStar && g.p.Spec().Publish.EveryoneNamed {
				g.star.tokens = append(g.star.tokens, info.Token)
			}
		case head != nil && head.key == gr.key && g.isFamily(info):
		default:
			gr.tokens = append(gr.tokens, info.Token)
		}
	}
	if also := followers[g.star]; also != nil {
		g.groups = append(g.groups, also)
	}
}

// skipIdle removes crawlers that need no group: they ignore "*", and their own group would only allow everything and
// repeat the preferences in the group of "*". Without a group, they may crawl everything, too.
func (g *grouping) skipIdle(all []*crawler, named map[string]*group) {
	if g.p.Spec().Publish.EveryoneNamed {
		return
	}
	starSays := map[string]bool{allowAll: true}
	for _, l := range g.star.lines {
		starSays[l.Text] = l.key != keyCrawlDelay
	}
	idle := func(gr *group) bool {
		return gr.lines[0].Text == allowAll && !slices.ContainsFunc(gr.lines, func(l Line) bool { return !starSays[l.Text] })
	}
	for again := true; again; {
		again = false
		for _, info := range all {
			token := info.lower
			if gr := named[token]; gr != nil && info.IgnoresStar && idle(gr) && g.followed(info, named) == nil {
				delete(named, token)
				again = true
			}
		}
	}
}

// candidates lists the crawlers that may have to be named, in the order of the policy. They are the crawlers that
// rules name, and their followers. If all crawlers are to be named, the crawlers that ignore "*" are also candidates.
func (g *grouping) candidates() []*crawler {
	var ids []policy.CrawlerID
	for token := range g.due {
		if id := g.p.Crawler(token); id != 0 {
			ids = append(ids, id)
		}
		ids = append(ids, g.followers[token]...)
	}
	if g.p.Spec().Publish.EveryoneNamed {
		ids = append(ids, g.ignoring...)
	}
	slices.Sort(ids)
	ids = slices.Compact(ids)
	all := make([]*crawler, len(ids))
	for i, id := range ids {
		all[i] = g.crawler(id)
	}
	return all
}

// followed returns the group that a crawler obeys if no group names it, or nil if that is the group of "*".
func (g *grouping) followed(info *crawler, named map[string]*group) *group {
	for _, t := range info.Follows {
		if gr := named[strings.ToLower(t)]; gr != nil {
			return gr
		}
	}
	return nil
}

// isFamily reports whether a crawler follows another crawler of the same operator.
func (g *grouping) isFamily(info *crawler) bool {
	return g.p.Family(g.p.Crawler(info.Token)) != 0
}

func laxer(g, than *group) bool {
	disallows, allows := g.index("disallow"), g.index("allow")
	for i := range than.lines {
		d := &than.lines[i]
		if d.key != "disallow" {
			continue
		}
		covered, opened := false, false
		disallows.Covering(d.pattern, func(struct{}) { covered = true })
		allows.Overlapping(d.pattern, func(struct{}) { opened = true })
		if !covered || opened {
			return true
		}
	}
	return false
}

func (g *group) index(key string) *pathpattern.Index[struct{}] {
	var entries []pathpattern.Entry[struct{}]
	for i := range g.lines {
		if l := &g.lines[i]; l.key == key {
			entries = append(entries, pathpattern.Entry[struct{}]{Pattern: l.pattern})
		}
	}
	return pathpattern.NewIndex(entries, func(a, _ struct{}) struct{} { return a })
}

// arrange returns the groups in the order of the printed file: first the group of "*", then the others in the order of
// the policy. Some readers, such as Python's urllib, take the first group whose name is a part of their own name. So a
// shorter name must come after the longer names that contain it. If necessary, arrange sorts the groups accordingly,
// and splits groups that no order suits.
func (g *grouping) arrange() []*group {
	all := slices.DeleteFunc(slices.Clone(g.groups), func(gr *group) bool { return len(gr.tokens) == 0 })
	of := make(map[string]*group, len(g.due)) // by token
	for _, gr := range all {
		for _, t := range gr.tokens {
			of[strings.ToLower(t)] = gr
		}
	}
	o := newNameOrder(of)
	if !o.holds(all) {
		slices.SortStableFunc(all, func(a, b *group) int { return cmp.Compare(o.deepest(a), o.deepest(b)) })
	}
	if !o.holds(all) {
		all = o.split(all)
	}
	return append([]*group{g.star}, all...)
}

// nameOrder holds which tokens are parts of tokens of other groups.
type nameOrder struct {
	of    map[string]*group   // group of each token
	parts map[string][]string // for each token, its parts that are tokens of groups with different lines
	depth map[string]int      // for each token, how deeply it is nested in other tokens
}

func newNameOrder(of map[string]*group) *nameOrder {
	o := &nameOrder{of: of, parts: map[string][]string{}, depth: map[string]int{}}
	tokens := newTokenSet(of)
	longestFirst := slices.SortedFunc(maps.Keys(of), func(a, b string) int { return cmp.Compare(len(b), len(a)) })
	for _, t := range longestFirst {
		for _, part := range tokens.within(t) {
			if of[part].key != of[t].key {
				o.parts[t] = append(o.parts[t], part)
				o.depth[part] = max(o.depth[part], o.depth[t]+1)
			}
		}
	}
	return o
}

func (o *nameOrder) holds(all []*group) bool {
	if len(o.parts) == 0 {
		return true
	}
	place := map[*group]int{}
	for i, gr := range all {
		place[gr] = i
	}
	for t, parts := range o.parts {
		if slices.ContainsFunc(parts, func(part string) bool { return place[o.of[part]] < place[o.of[t]] }) {
			return false
		}
	}
	return true
}

func (o *nameOrder) depthOf(token string) int { return o.depth[strings.ToLower(token)] }

func (o *nameOrder) deepest(gr *group) (n int) {
	for _, t := range gr.tokens {
		n = max(n, o.depthOf(t))
	}
	return n
}

// split makes groups whose tokens all have the same depth, and sorts these groups by depth. A token has a greater depth
// than all longer tokens that contain it and belong to groups with different lines. The first part of a group keeps its
// purposes.
func (o *nameOrder) split(all []*group) (parts []*group) {
	for _, gr := range all {
		rest := *gr
		for depth := 0; len(rest.tokens) > 0; depth++ {
			part := rest
			part.tokens = slices.DeleteFunc(slices.Clone(rest.tokens), func(t string) bool { return o.depthOf(t) != depth })
			if len(part.tokens) == 0 {
				continue
			}
			rest.tokens = slices.DeleteFunc(slices.Clone(rest.tokens), func(t string) bool { return o.depthOf(t) == depth })
			rest.purposes, rest.left = nil, 0
			parts = append(parts, &part)
		}
	}
	slices.SortStableFunc(parts, func(a, b *group) int { return cmp.Compare(o.deepest(a), o.deepest(b)) })
	return parts
}

// refused tells how many of the paths that a unit's group disallows are blocked by the server anyway. It is only about
// paths that the group of "*" does not disallow. If the server blocks them all, robots.txt need not name the crawlers
// of the unit.
type refused int

const (
	refusesLess refused = iota
	refusesMore         // all paths that the unit's group disallows, but not the group of "*"
	refusesAll          // every page
)

// refuses returns how many paths are blocked by the server, of the paths that the group of u disallows and the group of
// "*" does not. It regards a path as blocked only if the rule that disallows the path has "enforce: block". The
// policy's default mode does not matter. refuses returns refusesLess if a rule allows something, or demands an
// identity, because the server may not know the identity at once. Robots.txt must then name the crawlers of u.
func (g *grouping) refuses(u *unit, gr *group) refused {
	if g.p.Spec().Publish.AllGroups {
		return refusesLess
	}
	closer := slices.DeleteFunc(g.p.Statements(u.class, policy.Crawl, ""), func(a policy.Applied) bool { return a.Tier == policy.TierEveryone })
	blocks := func(a policy.Applied) bool {
		return !a.Statement.Allow && a.Rule.Identity == policy.DemandAny && a.Rule.Enforce == policy.ModeBlock
	}
	switch {
	case len(closer) == 0 || slices.ContainsFunc(closer, func(a policy.Applied) bool { return !blocks(a) }):
		return refusesLess
	case slices.ContainsFunc(closer, func(a policy.Applied) bool { return a.Statement.Pattern.IsAll() }):
		return refusesAll
	case !slices.EqualFunc(gr.extensions(), g.star.extensions(), func(a, b Line) bool { return a.Text == b.Text }):
		return refusesLess
	}
	return refusesMore
}

func (g *grouping) needsNoName(info *crawler, by refused) bool {
	return info.Rare && !g.written[info.lower] && (by == refusesAll || by == refusesMore && !info.IgnoresStar)
}

func (g *group) extensions() []Line {
	return slices.DeleteFunc(slices.Clone(g.lines), func(l Line) bool { return l.key == "allow" || l.key == "disallow" || l.Text == allowAll })
}

// leave makes groups with many names shorter. It removes the names of crawlers that robots.txt need not name (see
// needsNoName), if the group also names other crawlers. It counts the removed names of each group.
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
			g.left[info.lower] = true
			gr.left++
		}
	}
}

func (g *group) leftComment() string {
	if g.left == 1 {
		return "# 1 rare crawler is not named here, because the policy blocks it"
	}
	return fmt.Sprintf("# %d rare crawlers are not named here, because the policy blocks them", g.left)
}

// tokenSet finds tokens that are part of other tokens. A site's own file can have thousands of tokens of any length.
type tokenSet struct {
	all     map[string]bool
	heads   map[string]bool // the first headLen bytes of each token, or all bytes of a shorter token
	lengths []int
}

const headLen = 4

func newTokenSet(of map[string]*group) *tokenSet {
	s := &tokenSet{all: make(map[string]bool, len(of)), heads: map[string]bool{}}
	lengths := map[int]bool{}
	for t := range of {
		s.all[t] = true
		s.heads[t[:min(len(t), headLen)]] = true
		lengths[len(t)] = true
	}
	s.lengths = slices.Sorted(maps.Keys(lengths))
	return s
}

// within lists all other tokens in the set that are contained in a token, each once.
func (s *tokenSet) within(token string) (parts []string) {
	seen := map[string]bool{token: true}
	for i := range len(token) {
		rest := token[i:]
		for _, n := range s.lengths {
			if n > len(rest) || n > headLen && !s.heads[rest[:headLen]] {
				break
			}
			if part := rest[:n]; s.all[part] && !seen[part] {
				seen[part] = true
				parts = append(parts, part)
			}
		}
	}
	return parts
}
