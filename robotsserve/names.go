// SPDX-License-Identifier: Apache-2.0

package robotsserve

import (
	"slices"
	"strings"

	"github.com/robotspolicy/caddy-robots-policy/policy"
)

// name decides which crawlers the groups name. Everybody's group names those
// for whom "*" alone would not do. Beside groups of purposes, which come before that
// of "*", all are named that have rules of their own.
func (g *grouping) name(purposes bool) {
	everybody := g.groups[0]
	everybody.tokens = []string{"*"}
	named := map[string]*group{} // by token in lower case
	var all []policy.Crawler
	for _, info := range g.p.Crawlers {
		all = append(all, info)
	}
	all = append(all, g.extra...)
	// Beside "*" some readers would not look for a name.
	alike := func(why string) *group {
		return &group{lines: everybody.lines, key: everybody.key, pos: everybody.pos, labels: slices.Concat(everybody.labels, []string{why})}
	}
	shadowed, own := alike(notTaken), alike(notOfPurpose)
	for _, info := range all {
		gr := g.of[strings.ToLower(info.Token)]
		if gr == everybody {
			gr = nil
			if purposes {
				gr = own
			}
		}
		if gr != nil {
			gr.tokens = append(gr.tokens, info.Token)
			named[strings.ToLower(info.Token)] = gr
		}
	}
	for _, info := range all {
		if named[strings.ToLower(info.Token)] != nil {
			continue
		}
		switch {
		case g.isShadowed(info.Token, named):
			shadowed.tokens = append(shadowed.tokens, info.Token)
		case info.IgnoresStar && !everybody.trivial(), g.followsOther(info, named):
			everybody.tokens = append(everybody.tokens, info.Token)
		}
	}
	g.groups = append(g.groups, shadowed, own) // without tokens they are left out
}

// The comments of crawlers that are named although they do what everybody does.
const (
	notTaken     = "named so that no reader takes them for a crawler of a shorter name"
	notOfPurpose = "named so that the groups of purposes are not taken for theirs"
)

// followsOther reports whether a crawler that no group names would obey another
// one's group.
func (g *grouping) followsOther(info policy.Crawler, named map[string]*group) bool {
	return slices.ContainsFunc(info.Follows, func(t string) bool { return named[strings.ToLower(t)] != nil })
}

// isShadowed reports whether a crawler's token contains one that a group names:
// some readers look for substrings (urllib.robotparser, Protego) or prefixes.
func (g *grouping) isShadowed(token string, named map[string]*group) bool {
	token = strings.ToLower(token)
	for i := range len(token) {
		for j := i + 1; j <= len(token); j++ {
			if named[token[i:j]] != nil {
				return true
			}
		}
	}
	return false
}

// arrange puts the groups into the order of the file: as the policy has them,
// but a crawler before those whose names are part of its own, as some readers
// take the first group that is for such a part; and everybody's last. A group is
// split where that asks for it.
func (g *grouping) arrange() []*group {
	var all []*group
	of := map[string]*group{} // by token
	for _, gr := range g.groups[1:] {
		if len(gr.tokens) == 0 {
			continue
		}
		all = append(all, gr)
		for _, t := range gr.tokens {
			of[strings.ToLower(t)] = gr
		}
	}
	blocks := newBlocks(of)
	var done []*group
	for len(all) > 0 {
		i, tokens := blocks.next(all)
		part := *all[i]
		part.tokens = tokens
		done = append(done, &part)
		for _, t := range tokens {
			blocks.release(t)
		}
		if len(tokens) == len(all[i].tokens) {
			all = slices.Delete(all, i, i+1)
			continue
		}
		rest := *all[i]
		rest.tokens = slices.DeleteFunc(slices.Clone(rest.tokens), func(t string) bool { return slices.Contains(tokens, t) })
		all[i] = &rest
	}
	return append(done, g.groups[0])
}

// blocks knows which tokens must wait, as they are part of a token of another
// group that is not printed yet.
type blocks struct {
	parts   map[string][]string // of each token, those in other groups
	waiting map[string]int      // for so many tokens
}

func newBlocks(of map[string]*group) *blocks {
	b := &blocks{parts: map[string][]string{}, waiting: map[string]int{}}
	for t, gr := range of {
		for i := range len(t) {
			for j := i + 1; j <= len(t); j++ {
				part := t[i:j]
				if other := of[part]; other != nil && other.key != gr.key && !slices.Contains(b.parts[t], part) {
					b.parts[t] = append(b.parts[t], part)
					b.waiting[part]++
				}
			}
		}
	}
	return b
}

func (b *blocks) release(token string) {
	for _, part := range b.parts[strings.ToLower(token)] {
		b.waiting[part]--
	}
}

// next picks the first group that may be printed whole, else the first tokens
// that may be printed. The longest token always may.
func (b *blocks) next(all []*group) (int, []string) {
	first, tokens := -1, []string(nil)
	for i, gr := range all {
		free := slices.DeleteFunc(slices.Clone(gr.tokens), func(t string) bool { return b.waiting[strings.ToLower(t)] > 0 })
		if len(free) == len(gr.tokens) {
			return i, free
		}
		if first < 0 && len(free) > 0 {
			first, tokens = i, free
		}
	}
	return first, tokens
}
