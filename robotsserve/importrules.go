// SPDX-License-Identifier: Apache-2.0

package robotsserve

import (
	"slices"
	"strings"

	"github.com/robotspolicy/caddy-robots-policy/pathpattern"
	"github.com/robotspolicy/caddy-robots-policy/policy"
)

// groups adds a rule for each set of groups that say the same.
func (im *importer) groups() {
	star := im.f.byToken["*"]
	if star != nil {
		im.rule([]policy.Audience{{Kind: policy.ForEveryoneElse}}, []*foreignGroup{star}, false)
		im.deaf(star)
	}
	follow := im.followers()
	for _, gs := range im.joined() {
		var audience []policy.Audience
		add := func(token string) { audience = append(audience, policy.Audience{Kind: policy.ForToken, Name: token}) }
		for _, g := range gs {
			add(g.tokens[0])
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
func (im *importer) opens(gs []*foreignGroup, star *foreignGroup) bool {
	return im.inherits(gs, star, func(g *foreignGroup) bool {
		return slices.ContainsFunc(g.rules, func(r foreignRule) bool { return !r.allow })
	})
}

// inherits reports whether a rule for the groups would add up, in a policy, with a group
// that they stand in the place of and of which something holds: that of "*", or of
// the crawlers' family.
func (im *importer) inherits(gs []*foreignGroup, star *foreignGroup, holds func(*foreignGroup) bool) bool {
	is := func(g *foreignGroup) bool { return g != nil && !slices.Contains(gs, g) && holds(g) }
	if is(star) {
		return true
	}
	for _, g := range gs {
		for _, c := range im.crawlers {
			if strings.EqualFold(c.Token, g.tokens[0]) && slices.ContainsFunc(c.Follows, func(t string) bool { return is(im.f.byToken[strings.ToLower(t)]) }) {
				return true
			}
		}
	}
	return false
}

// joined puts the groups of named crawlers together that say the same.
func (im *importer) joined() (all [][]*foreignGroup) {
	for _, g := range im.f.groups {
		if g.tokens[0] == "*" {
			continue
		}
		i := slices.IndexFunc(all, func(gs []*foreignGroup) bool { return sameSaid(gs[0], g) })
		if i < 0 {
			all = append(all, []*foreignGroup{g})
		} else {
			all[i] = append(all[i], g)
		}
	}
	return all
}

// followers finds the crawlers of the catalogue that the file does not name and that
// obey a named group, but for those that a policy's rule for that name reaches anyway:
// crawlers of the same operator (see policy.Policy.Family).
func (im *importer) followers() map[*foreignGroup][]string {
	follow := map[*foreignGroup][]string{}
	for _, c := range im.crawlers {
		if im.f.byToken[strings.ToLower(c.Token)] != nil {
			continue
		}
		g := im.f.obeyed(newCrawler(c))
		if g == nil || g.tokens[0] == "*" || im.isFamily(c, g.tokens[0]) {
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
func (im *importer) deaf(star *foreignGroup) {
	r := policy.Rule{NoCrawlDelay: star.seconds() > 0}
	if slices.ContainsFunc(star.rules, func(r foreignRule) bool { return !r.allow }) {
		r.Statements = []policy.Statement{crawl(true, pathpattern.All)}
	}
	for _, c := range im.crawlers {
		if c.IgnoresStar && im.f.obeyed(newCrawler(c)) == nil {
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
func (im *importer) rule(audience []policy.Audience, gs []*foreignGroup, opens bool) {
	g := gs[0]
	r := policy.Rule{For: audience}
	rules := beaten(g.decisive())
	for _, fr := range rules {
		if im.tooLong(fr.line, fr.pattern) {
			continue
		}
		opens = opens && (fr.allow || !fr.pattern.IsAll())
		r.Statements = append(r.Statements, policy.Statement{Pos: policy.Pos{Line: fr.line, Column: 1}, Allow: fr.allow, Usage: policy.Crawl, Pattern: fr.pattern})
	}
	r.Statements = append(r.Statements, im.settle(rules)...)
	if opens && !slices.ContainsFunc(r.Statements, func(s policy.Statement) bool { return s.Allow && s.Pattern == pathpattern.All }) {
		r.Statements = append(r.Statements, crawl(true, pathpattern.All))
	}
	if audience[0].Kind == policy.ForToken && slices.ContainsFunc(r.Statements, func(s policy.Statement) bool { return s.Allow }) {
		im.permitted = append(im.permitted, audience...)
	}
	im.delay(&r, g)
	r.NoCrawlDelay = r.CrawlDelay == 0 && im.inherits(gs, im.f.byToken["*"], func(g *foreignGroup) bool { return g.seconds() > 0 })
	for _, l := range g.lines {
		im.extension(&r, l)
	}
	if star := im.f.byToken["*"]; star != nil && g != star {
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
func (im *importer) commentRule(gs []*foreignGroup, r *policy.Rule) {
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
		add(g.line)
		if g.delayN > 0 {
			add(g.delayN)
		}
		for _, fr := range g.rules {
			if i == 0 && !used[fr.line] {
				add(fr.line)
			} else if i > 0 && !slices.ContainsFunc(gs[0].rules, func(first foreignRule) bool { return im.f.comments[first.line] == im.f.comments[fr.line] }) {
				add(fr.line)
			}
		}
		for _, l := range g.lines {
			if !used[l.line] {
				add(l.line)
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
func (im *importer) fallsThrough(audience []policy.Audience, g, star *foreignGroup) {
	said := map[string]bool{}
	for _, l := range star.lines {
		if l.key == "license" || l.key == "app-directives" || said[l.key] || slices.ContainsFunc(g.lines, func(own foreignLine) bool { return own.key == l.key }) {
			continue
		}
		said[l.key] = true
		im.f.note(l.line, "a crawler with a group of its own does not read this line; in the policy it holds for %s too", audience[0])
	}
}

// dropDirectives takes back what "*" directs applications to do of which the rule's own
// group does not speak: a group stands in the place of that of "*" (draft-nottingham-plan-b,
// Applying Application Directives). An application without parameters is directed to
// nothing, and replaces what is said to everyone.
func (im *importer) dropDirectives(r *policy.Rule, star *foreignGroup) {
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
func wins(a, b foreignRule, sizeA, sizeB int) bool { return sizeA > sizeB || sizeA == sizeB && a.allow }

// beaten drops rules over which another one always wins by its length as written,
// though not by that in the policy.
func beaten(rules []foreignRule) []foreignRule {
	if !slices.ContainsFunc(rules, func(r foreignRule) bool { return r.size != r.pattern.Len() }) {
		return rules
	}
	return slices.DeleteFunc(slices.Clone(rules), func(r foreignRule) bool {
		return slices.ContainsFunc(rules, func(w foreignRule) bool {
			return w.allow != r.allow && (w.size != w.pattern.Len() || r.size != r.pattern.Len()) &&
				wins(w, r, w.size, r.size) && !wins(w, r, w.pattern.Len(), r.pattern.Len()) && w.pattern.Covers(r.pattern)
		})
	})
}

// maxPairs bounds the pairs of rules that settle looks at.
const maxPairs = 1 << 22

// settle adds statements where, of a permission and a prohibition that both match, the
// longer one is another in the policy than it is as written: a pattern's normal form has
// one "*" for several, a "/" before a "*" at the start, and no needless "%".
//
//	Disallow: *.pdf         allow:    /docs/
//	Allow: /docs/      →    disallow: *.pdf     (6 bytes as written, 7 in the policy)
//	                        allow:    /docs/*.pdf
func (im *importer) settle(rules []foreignRule) (more []policy.Statement) {
	pairs := 0
	for i, r := range rules {
		if r.size == r.pattern.Len() {
			continue
		}
		for j, s := range rules {
			if pairs++; pairs > maxPairs {
				im.f.note(r.line, "this path has another length in the policy, and there are too many lines to find those that it overlaps")
				return more
			}
			if r.allow == s.allow || s.size != s.pattern.Len() && j < i || !r.pattern.Overlaps(s.pattern) ||
				wins(r, s, r.size, s.size) == wins(r, s, r.pattern.Len(), s.pattern.Len()) {
				continue
			}
			winner, loser := s, r
			if wins(r, s, r.size, s.size) {
				winner, loser = r, s
			}
			meet, ok := pathpattern.Intersect(r.pattern, s.pattern, maxCrossing)
			for k, m := range meet {
				if longer, err := pathpattern.Parse(m.String() + "*"); err == nil && !m.Anchored() && !winner.allow && m.Len() == loser.pattern.Len() {
					meet[k], m = longer, longer // a "*" at the end counts
				}
				ok = ok && m.Len() <= maxPath && (m.Len() > loser.pattern.Len() || m.Len() == loser.pattern.Len() && winner.allow) &&
					!slices.ContainsFunc(rules, func(t foreignRule) bool {
						return t.allow != winner.allow && wins(t, winner, t.size, winner.size) && t.pattern.Overlaps(m) && !(t.pattern.Len() > m.Len())
					})
			}
			if !ok {
				im.f.note(r.line, "where both this path and %q of line %d match, the other one decides in the policy: this one has %d bytes as written and %d in the policy", s.pattern, s.line, r.size, r.pattern.Len())
				continue
			}
			for _, m := range meet {
				if !slices.ContainsFunc(more, func(st policy.Statement) bool { return st.Pattern == m }) && !slices.ContainsFunc(rules, func(t foreignRule) bool { return t.pattern == m }) {
					st := crawl(winner.allow, m)
					st.Pos = policy.Pos{Line: winner.line, Column: 1}
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
func (im *importer) purpose(g, star *foreignGroup) {
	name := g.tokens[0]
	if name == "" || strings.ContainsAny(name, " *") || !printable(name) || len(name) > maxToken {
		im.f.note(g.line, "%q is not a purpose; what the group says to it is left out", name)
		return
	}
	im.spec.Publish.UserAgentPurpose = policy.On
	im.rule([]policy.Audience{{Kind: policy.ForPurpose, Name: name}}, []*foreignGroup{g}, false)
	if star == nil {
		return
	}
	var open []policy.Statement
	for _, d := range star.decisive() {
		if d.allow {
			continue
		}
		own := slices.IndexFunc(g.rules, func(r foreignRule) bool { return r.pattern.Overlaps(d.pattern) })
		switch {
		case own < 0:
			open = append(open, crawl(true, d.pattern))
		case g.rules[own].pattern != d.pattern && !g.rules[own].allow && !g.rules[own].pattern.Covers(d.pattern):
			im.f.note(d.line, "in the policy this line also holds for clients that name the purpose %s, unless their own group covers it", name)
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
