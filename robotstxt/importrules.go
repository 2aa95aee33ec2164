// SPDX-License-Identifier: Apache-2.0

package robotstxt

import (
	"slices"
	"strings"

	"github.com/robotspolicy/caddy-robots-policy/pathpattern"
	"github.com/robotspolicy/caddy-robots-policy/policy"
)

// groups adds a rule for each set of groups that say the same.
func (im *importer) groups() {
	star := im.f.Group("*")
	if star != nil {
		im.rule([]policy.Audience{{Kind: policy.ForEveryoneElse}}, []*Group{star}, false)
		im.deaf(star)
	}
	follow := im.followers()
	for _, gs := range im.joined() {
		var audience []policy.Audience
		add := func(token string) { audience = append(audience, policy.Audience{Kind: policy.ForToken, Name: token}) }
		for _, g := range gs {
			add(g.Name)
			for _, token := range follow[g] {
				add(token)
			}
		}
		im.rule(audience, gs, im.opens(gs, star))
	}
	for _, g := range im.f.purposes {
		im.purpose(g, star)
	}
}

// opens reports whether a rule for the groups has to allow what they do not speak of:
// whether everyone's rule or that of the crawlers' family would close it. In a
// robots.txt, a group stands in the place of that of "*" (RFC 9309 section 2.2.1); in a
// policy, rules add up.
func (im *importer) opens(gs []*Group, star *Group) bool {
	return im.inherits(gs, star, func(g *Group) bool {
		return slices.ContainsFunc(g.rules, func(r Rule) bool { return !r.Allow })
	})
}

// inherits reports whether a rule for the groups would add up, in a policy, with a group
// that they stand in the place of and of which something holds: that of "*", or of
// the crawlers' family.
func (im *importer) inherits(gs []*Group, star *Group, holds func(*Group) bool) bool {
	is := func(g *Group) bool { return g != nil && !slices.Contains(gs, g) && holds(g) }
	if is(star) {
		return true
	}
	for _, g := range gs {
		for _, c := range im.crawlers {
			if strings.EqualFold(c.Token, g.Name) && slices.ContainsFunc(c.Follows, func(t string) bool { return is(im.f.Group(t)) }) {
				return true
			}
		}
	}
	return false
}

// joined puts the groups of named crawlers together that say the same.
func (im *importer) joined() (all [][]*Group) {
	for _, g := range im.f.Groups {
		if g.Name == "*" {
			continue
		}
		i := slices.IndexFunc(all, func(gs []*Group) bool { return gs[0].sameAs(g) })
		if i < 0 {
			all = append(all, []*Group{g})
		} else {
			all[i] = append(all[i], g)
		}
	}
	return all
}

// followers finds the crawlers of the catalogue that the file does not name and that
// obey a named group, but for those that a policy's rule for that name reaches anyway:
// crawlers of the same operator (see policy.Policy.Family).
func (im *importer) followers() map[*Group][]string {
	follow := map[*Group][]string{}
	for _, c := range im.crawlers {
		if im.f.Group(c.Token) != nil {
			continue
		}
		g := im.f.Obeyed(c)
		if g == nil || g.Name == "*" || im.isFamily(c, g.Name) {
			continue
		}
		follow[g] = append(follow[g], c.Token)
	}
	return follow
}

// isFamily reports whether a policy's rule for a token reaches a crawler that follows
// it.
func (im *importer) isFamily(c policy.Crawler, token string) bool {
	for _, t := range c.Follows {
		for _, head := range im.crawlers {
			if strings.EqualFold(head.Token, t) && head.Operator == c.Operator && c.Operator != "" {
				return strings.EqualFold(t, token)
			}
		}
	}
	return false
}

// deaf adds a rule for the crawlers that do not obey the group of "*" and that the file
// does not name: they may crawl what it closes, and need not wait.
func (im *importer) deaf(star *Group) {
	r := policy.Rule{NoCrawlDelay: star.CrawlDelay() > 0}
	if slices.ContainsFunc(star.rules, func(r Rule) bool { return !r.Allow }) {
		r.Statements = []policy.Statement{crawl(true, pathpattern.All)}
	}
	for _, c := range im.crawlers {
		if c.IgnoresStar && im.f.Obeyed(c) == nil {
			r.For = append(r.For, policy.Audience{Kind: policy.ForToken, Name: c.Token})
		}
	}
	if r.For == nil || r.Statements == nil && !r.NoCrawlDelay {
		return
	}
	im.comments[len(im.spec.Rules)] = "These crawlers are documented to ignore the group of *, and the robots.txt does not name them."
	im.spec.Rules = append(im.spec.Rules, r)
}

// rule adds what groups say that all say the same. If it opens, it allows what they do
// not speak of.
func (im *importer) rule(audience []policy.Audience, gs []*Group, opens bool) {
	g := gs[0]
	r := policy.Rule{For: audience}
	rules := beaten(g.Decisive())
	for _, fr := range rules {
		if im.tooLong(fr.number, fr.Pattern) {
			continue
		}
		opens = opens && (fr.Allow || !fr.Pattern.IsAll())
		r.Statements = append(r.Statements, policy.Statement{Pos: policy.Pos{Line: fr.number, Column: 1}, Allow: fr.Allow, Usage: policy.Crawl, Pattern: fr.Pattern})
	}
	r.Statements = append(r.Statements, im.settle(rules)...)
	if opens && !slices.ContainsFunc(r.Statements, func(s policy.Statement) bool { return s.Allow && s.Pattern == pathpattern.All }) {
		r.Statements = append(r.Statements, crawl(true, pathpattern.All))
	}
	if audience[0].Kind == policy.ForToken && slices.ContainsFunc(r.Statements, func(s policy.Statement) bool { return s.Allow }) {
		im.permitted = append(im.permitted, audience...)
	}
	im.delay(&r, g)
	r.NoCrawlDelay = r.CrawlDelay == 0 && im.inherits(gs, im.f.Group("*"), func(g *Group) bool { return g.CrawlDelay() > 0 })
	for _, l := range g.lines {
		im.extension(&r, l)
	}
	if star := im.f.Group("*"); star != nil && g != star {
		im.fallsThrough(audience, g, star)
		im.dropDirectives(&r, star)
	}
	r.Pos = firstPos(&r)
	if len(r.Statements)+len(r.AppDirectives) > 0 || r.CrawlDelay > 0 || r.NoCrawlDelay {
		im.commentRule(gs, &r)
		im.spec.Rules = append(im.spec.Rules, r)
	}
}

// commentRule gathers the comments of the rule to be added: those before the groups'
// names, those of lines that are no statements, and those that only stand in the later
// of groups that say the same.
func (im *importer) commentRule(gs []*Group, r *policy.Rule) {
	var texts []string
	add := func(line int) {
		if text := im.f.comments[line]; text != "" && !slices.Contains(texts, text) {
			texts = append(texts, text)
		}
	}
	used := map[int]bool{}
	for _, s := range r.Statements {
		used[s.Pos.Line] = true
	}
	for i, g := range gs {
		add(g.number)
		if g.delayLine > 0 {
			add(g.delayLine)
		}
		for _, fr := range g.rules {
			if i == 0 && !used[fr.number] {
				add(fr.number)
			} else if i > 0 && !slices.ContainsFunc(gs[0].rules, func(first Rule) bool { return im.f.comments[first.number] == im.f.comments[fr.number] }) {
				add(fr.number)
			}
		}
		for _, l := range g.lines {
			if !used[l.number] {
				add(l.number)
			}
		}
	}
	if texts != nil {
		im.comments[len(im.spec.Rules)] = strings.Join(texts, "\n")
	}
}

// maxPath is the longest pattern that a policy file takes.
const maxPath = 2048

// tooLong notes a pattern that a policy file does not take.
func (im *importer) tooLong(line int, p pathpattern.Pattern) bool {
	if p.Len() <= maxPath {
		return false
	}
	im.f.note(line, "a path in a policy file may have %d bytes, and this one has %d; it is left out", maxPath, p.Len())
	return true
}

// fallsThrough notes what is said to everyone and not in a group of its own: a
// crawler obeys its own group alone, while rules of a policy add up.
func (im *importer) fallsThrough(audience []policy.Audience, g, star *Group) {
	said := map[string]bool{}
	for _, l := range star.lines {
		if l.key == "license" || l.key == "app-directives" || said[l.key] || slices.ContainsFunc(g.lines, func(own line) bool { return own.key == l.key }) {
			continue
		}
		said[l.key] = true
		im.f.note(l.number, "a crawler with a group of its own does not read this line; in the policy it holds for %s too", audience[0])
	}
}

// dropDirectives takes back what "*" directs applications to do of which the rule's own
// group does not speak: a group stands in the place of that of "*" (draft-nottingham-plan-b,
// Applying Application Directives). An application without parameters is directed to
// nothing, and replaces what is said to everyone.
func (im *importer) dropDirectives(r *policy.Rule, star *Group) {
	var all policy.Rule
	notes := im.f.notes
	for _, l := range star.lines {
		if l.key == "app-directives" {
			im.extension(&all, l)
		}
	}
	im.f.notes = notes // which the rule of "*" has given
	for _, d := range all.AppDirectives {
		if !slices.ContainsFunc(r.AppDirectives, func(own policy.AppDirective) bool { return own.App == d.App }) {
			r.AppDirectives = append(r.AppDirectives, policy.AppDirective{Pos: d.Pos, Pattern: pathpattern.All, App: d.App, Text: d.App})
		}
	}
}

// wins reports whether a wins over b by these lengths (RFC 9309 section 2.2.2).
func wins(a, b Rule, sizeA, sizeB int) bool { return sizeA > sizeB || sizeA == sizeB && a.Allow }

// beaten drops rules over which another one always wins by its length as written,
// though not by that in the policy.
func beaten(rules []Rule) []Rule {
	if !slices.ContainsFunc(rules, func(r Rule) bool { return r.Size != r.Pattern.Len() }) {
		return rules
	}
	return slices.DeleteFunc(slices.Clone(rules), func(r Rule) bool {
		return slices.ContainsFunc(rules, func(w Rule) bool {
			return w.Allow != r.Allow && (w.Size != w.Pattern.Len() || r.Size != r.Pattern.Len()) &&
				wins(w, r, w.Size, r.Size) && !wins(w, r, w.Pattern.Len(), r.Pattern.Len()) && w.Pattern.Covers(r.Pattern)
		})
	})
}

// maxCrossings bounds the patterns that match what two patterns match.
const maxCrossings = 16

// maxPairs bounds the pairs of rules that settle looks at.
const maxPairs = 1 << 22

// settle adds statements where, of a permission and a prohibition that both match, the
// longer one is another in the policy than it is as written: a pattern's normal form has
// one "*" for several, a "/" before a "*" at the start, and no needless "%".
//
//	Disallow: *.pdf         allow:    /docs/
//	Allow: /docs/      →    disallow: *.pdf     (6 bytes as written, 7 in the policy)
//	                        allow:    /docs/*.pdf
func (im *importer) settle(rules []Rule) (more []policy.Statement) {
	pairs := 0
	for i, r := range rules {
		if r.Size == r.Pattern.Len() {
			continue
		}
		for j, s := range rules {
			if pairs++; pairs > maxPairs {
				im.f.note(r.number, "this path has another length in the policy, and there are too many lines to find those that it overlaps")
				return more
			}
			if r.Allow == s.Allow || s.Size != s.Pattern.Len() && j < i || !r.Pattern.Overlaps(s.Pattern) ||
				wins(r, s, r.Size, s.Size) == wins(r, s, r.Pattern.Len(), s.Pattern.Len()) {
				continue
			}
			winner, loser := s, r
			if wins(r, s, r.Size, s.Size) {
				winner, loser = r, s
			}
			meet, ok := pathpattern.Intersect(r.Pattern, s.Pattern, maxCrossings)
			for k, m := range meet {
				if longer, err := pathpattern.Parse(m.String() + "*"); err == nil && !m.Anchored() && !winner.Allow && m.Len() == loser.Pattern.Len() {
					meet[k], m = longer, longer // a "*" at the end counts
				}
				ok = ok && m.Len() <= maxPath && (m.Len() > loser.Pattern.Len() || m.Len() == loser.Pattern.Len() && winner.Allow) &&
					!slices.ContainsFunc(rules, func(t Rule) bool {
						return t.Allow != winner.Allow && wins(t, winner, t.Size, winner.Size) && t.Pattern.Overlaps(m) && !(t.Pattern.Len() > m.Len())
					})
			}
			if !ok {
				im.f.note(r.number, "where both this path and %q of line %d match, the other one decides in the policy: this one has %d bytes as written and %d in the policy", s.Pattern, s.number, r.Size, r.Pattern.Len())
				continue
			}
			for _, m := range meet {
				if !slices.ContainsFunc(more, func(st policy.Statement) bool { return st.Pattern == m }) && !slices.ContainsFunc(rules, func(t Rule) bool { return t.Pattern == m }) {
					st := crawl(winner.Allow, m)
					st.Pos = policy.Pos{Line: winner.number, Column: 1}
					more = append(more, st)
				}
			}
		}
	}
	return more
}

// purpose adds what is said to clients that name a purpose (draft-illyes-rep-purpose-00):
// their group stands in the place of that of "*", so that the rule allows what everyone
// may not crawl and they may.
func (im *importer) purpose(g, star *Group) {
	name := g.Name
	if name == "" || strings.ContainsAny(name, " *") || !printable(name) || len(name) > maxName {
		im.f.note(g.number, "%q is not a purpose; what the group says to it is left out", name)
		return
	}
	im.spec.Publish.UserAgentPurpose = policy.On
	im.rule([]policy.Audience{{Kind: policy.ForPurpose, Name: name}}, []*Group{g}, false)
	if star == nil {
		return
	}
	var open []policy.Statement
	for _, d := range star.Decisive() {
		if d.Allow {
			continue
		}
		own := slices.IndexFunc(g.rules, func(r Rule) bool { return r.Pattern.Overlaps(d.Pattern) })
		switch {
		case own < 0:
			open = append(open, crawl(true, d.Pattern))
		case g.rules[own].Pattern != d.Pattern && !g.rules[own].Allow && !g.rules[own].Pattern.Covers(d.Pattern):
			im.f.note(d.number, "in the policy this line also holds for clients that name the purpose %s, unless their own group covers it", name)
		}
	}
	if open == nil {
		return
	}
	for i := range im.spec.Rules {
		if r := &im.spec.Rules[i]; r.For[0].Kind == policy.ForPurpose && r.For[0].Name == name {
			r.Statements = append(r.Statements, open...)
			return
		}
	}
	im.spec.Rules = append(im.spec.Rules, policy.Rule{For: []policy.Audience{{Kind: policy.ForPurpose, Name: name}}, Statements: open})
}

func firstPos(r *policy.Rule) policy.Pos {
	for _, s := range r.Statements {
		if s.Pos.Line > 0 {
			return s.Pos
		}
	}
	return policy.Pos{}
}
