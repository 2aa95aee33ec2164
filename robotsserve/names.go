// SPDX-License-Identifier: Apache-2.0

package robotsserve

import (
	"slices"
	"strings"

	"github.com/robotspolicy/caddy-robots-policy/pathpattern"
	"github.com/robotspolicy/caddy-robots-policy/policy"
)

// name decides which crawlers the groups name: those that rules name and that would
// not find the same lines anyway, in the group of "*" or in that of the crawler that
// they follow. Beside groups of purposes, which win over that of "*", all are named
// that rules name.
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
	followers := map[*group]*group{} // of crawlers that only stand there for what they follow
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

// skipIdle takes out crawlers that ignore "*" and that their own group would only tell
// that everything is allowed, and what the group of "*" says of preferences: to crawl,
// they read the same without a group.
func (g *grouping) skipIdle(all []*crawler, named map[string]*group) {
	if g.p.Spec().Publish.EveryoneNamed {
		return
	}
	starSays := map[string]bool{allowAll: true}
	for _, l := range g.star.lines {
		starSays[l.Text] = l.key != "crawl-delay"
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

// candidates lists the crawlers that may have to be named, in the order of the policy:
// those that rules name, those that follow them, and where all are to be named those
// that ignore "*". Others obey the group of "*" without a name.
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
	all := make([]*crawler, 0, len(ids)+len(g.extra))
	for _, id := range ids {
		all = append(all, g.crawler(id))
	}
	return append(all, g.extra...)
}

// followed is the group that a crawler obeys if none names it, nil for that of "*".
func (g *grouping) followed(info *crawler, named map[string]*group) *group {
	for _, t := range info.Follows {
		if gr := named[strings.ToLower(t)]; gr != nil {
			return gr
		}
	}
	return nil
}

// isFamily reports whether a crawler follows another one of its operator.
func (g *grouping) isFamily(info *crawler) bool {
	return g.p.Family(g.p.Crawler(info.Token)) != 0
}

// laxer reports whether a group may allow something that another one disallows.
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

// index is over the patterns of the group's lines of one key.
func (g *group) index(key string) *pathpattern.Index[struct{}] {
	var entries []pathpattern.Entry[struct{}]
	for i := range g.lines {
		if l := &g.lines[i]; l.key == key {
			entries = append(entries, pathpattern.Entry[struct{}]{Pattern: l.pattern})
		}
	}
	return pathpattern.NewIndex(entries, func(a, _ struct{}) struct{} { return a })
}

// arrange puts the groups into the order of the file: that of "*", then the others as
// the policy has them, but a crawler before those whose names are part of its own, as
// some readers take the first group that is for such a part (Python's urllib looks for
// substrings). A group is split where that asks for it.
func (g *grouping) arrange() []*group {
	var all []*group
	of := make(map[string]*group, len(g.due)) // by token
	for _, gr := range g.groups {
		if len(gr.tokens) == 0 {
			continue
		}
		all = append(all, gr)
		for _, t := range gr.tokens {
			of[strings.ToLower(t)] = gr
		}
	}
	order := newNameOrder(all, of)
	done := []*group{g.star}
	for next := order.next(); next != nil; next = order.next() {
		done = append(done, next)
	}
	return done
}

// nameOrder puts groups in order. A token must wait while it is part of a token of
// another group that is not printed yet.
type nameOrder struct {
	all     []*group            // nil for those that are printed
	place   map[string]int      // of the group of a token, in all
	parts   map[string][]string // of each token, those in other groups
	waiting map[string]int      // for so many tokens
	blocked []int               // how many tokens of each group wait
	free    []int               // the groups of which none waits, in order
}

func newNameOrder(all []*group, of map[string]*group) *nameOrder {
	b := &nameOrder{all: all, place: map[string]int{}, parts: map[string][]string{}, waiting: map[string]int{}, blocked: make([]int, len(all))}
	for i, gr := range all {
		for _, t := range gr.tokens {
			b.place[strings.ToLower(t)] = i
		}
	}
	tokens := newTokenSet(of)
	for t, gr := range of {
		for _, part := range tokens.within(t) {
			if other := of[part]; other != nil && other.key != gr.key {
				b.parts[t] = append(b.parts[t], part)
				if b.waiting[part]++; b.waiting[part] == 1 {
					b.blocked[b.place[part]]++
				}
			}
		}
	}
	for i, n := range b.blocked {
		if n == 0 {
			b.free = append(b.free, i)
		}
	}
	return b
}

// next returns the first group that may be printed whole, else what may be printed of
// the first other one, and nil in the end. The longest token always may.
func (b *nameOrder) next() *group {
	if len(b.free) > 0 {
		gr := b.all[b.free[0]]
		b.all[b.free[0]], b.free = nil, b.free[1:]
		b.release(gr.tokens)
		return gr
	}
	for i, gr := range b.all {
		if gr == nil {
			continue
		}
		waits := func(t string) bool { return b.waiting[strings.ToLower(t)] > 0 }
		first, rest := *gr, *gr
		if first.tokens = slices.DeleteFunc(slices.Clone(gr.tokens), waits); len(first.tokens) == 0 {
			continue
		}
		rest.tokens = slices.DeleteFunc(slices.Clone(gr.tokens), func(t string) bool { return !waits(t) })
		rest.purposes, rest.left = nil, 0 // they stand in the first part
		b.all[i] = &rest
		b.release(first.tokens)
		return &first
	}
	return nil
}

// release says that tokens are printed.
func (b *nameOrder) release(tokens []string) {
	for _, t := range tokens {
		for _, part := range b.parts[strings.ToLower(t)] {
			if b.waiting[part]--; b.waiting[part] > 0 {
				continue
			}
			i := b.place[part]
			if b.blocked[i]--; b.blocked[i] == 0 && b.all[i] != nil {
				at, _ := slices.BinarySearch(b.free, i)
				b.free = slices.Insert(b.free, at, i)
			}
		}
	}
}
