// SPDX-License-Identifier: Apache-2.0

package robotstxt

import (
	"slices"
	"strings"

	"github.com/robotspolicy/caddy-robots-policy/pathpattern"
	"github.com/robotspolicy/caddy-robots-policy/policy"
)

// groups adds a rule for each set of equal groups.
func (im *importer) groups() {
	star := im.f.Group("*")
	if star != nil {
		im.rule([]policy.Audience{{Kind: policy.ForEveryoneElse}}, []*Group{star}, false)
		im.ignoringStar(star)
	}
	follow := im.followers()
	for _, gs := range im.joined() {
		var audience []policy.Audience
		for _, g := range gs {
			for _, token := range append([]string{g.Name}, follow[g]...) {
				audience = append(audience, policy.Audience{Kind: policy.ForToken, Name: token})
			}
		}
		im.rule(audience, gs, im.below || im.replaces(gs, (*Group).disallows))
	}
	if im.below {
		return
	}
	for _, g := range im.f.purposes {
		im.purpose(g, star)
	}
}

func (g *Group) disallows() bool {
	return slices.ContainsFunc(g.rules, func(r Rule) bool { return !r.Allow })
}

func (g *Group) delays() bool { return g.CrawlDelay() > 0 }

// replaces reports whether the groups replace, in robots.txt, that of "*" or of the crawlers' family (RFC 9309 section
// 2.2.1), and has is true of that. Rules of a policy add up, so theirs has to override it.
func (im *importer) replaces(gs []*Group, has func(*Group) bool) bool {
	other := func(name string) bool {
		g := im.f.Group(name)
		return g != nil && !slices.Contains(gs, g) && has(g)
	}
	return other("*") || slices.ContainsFunc(im.crawlers, func(c policy.Crawler) bool {
		return slices.ContainsFunc(gs, func(g *Group) bool { return strings.EqualFold(c.Token, g.Name) }) &&
			slices.ContainsFunc(c.Follows, other)
	})
}

// joined collects the groups of named crawlers that are equal.
func (im *importer) joined() (all [][]*Group) {
	at := map[string]int{}
	for _, g := range im.f.Groups {
		if g.Name == "*" {
			continue
		}
		key := g.key()
		i, ok := at[key]
		if !ok {
			i = len(all)
			at[key], all = i, append(all, nil)
		}
		all[i] = append(all[i], g)
	}
	return all
}

// followers finds unnamed crawlers that obey another one's group, unless a policy's rule reaches them anyway (see
// policy.Policy.Family).
func (im *importer) followers() map[*Group][]string {
	follow := map[*Group][]string{}
	for _, c := range im.crawlers {
		g := im.f.Obeyed(c)
		if im.f.Group(c.Token) == nil && g != nil && g.Name != "*" && !im.isFamily(c, g.Name) {
			follow[g] = append(follow[g], c.Token)
		}
	}
	return follow
}

// isFamily reports whether a policy's rule for a token reaches a crawler that follows it.
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

// ignoringStar adds a rule for unnamed crawlers that ignore the group of "*": they may crawl what it closes, at once.
func (im *importer) ignoringStar(star *Group) {
	r := policy.Rule{NoCrawlDelay: star.delays()}
	if star.disallows() {
		r.Statements = []policy.Statement{crawl(true, pathpattern.All, 0)}
	}
	for _, c := range im.crawlers {
		if c.IgnoresStar && im.f.Obeyed(c) == nil {
			r.For = append(r.For, policy.Audience{Kind: policy.ForToken, Name: c.Token})
		}
	}
	if r.For == nil || r.Statements == nil && !r.NoCrawlDelay {
		return
	}
	im.comments[len(im.spec.Rules)] = "These crawlers are documented to ignore the group of *, and this robots.txt does not name them."
	im.spec.Rules = append(im.spec.Rules, r)
}

// rule adds the rule of equal groups. With opens it allows every path that they do not mention.
func (im *importer) rule(audience []policy.Audience, gs []*Group, opens bool) {
	g := gs[0]
	r := policy.Rule{For: audience}
	decisive, respelled := g.decisive()
	for _, left := range respelled {
		im.f.note(left.number, respelledNote, "Allow: "+left.text())
	}
	for _, line := range im.lengthen(im.beginnings(decisive)) {
		opens = opens && (line.Allow || !line.Pattern.IsAll())
		s := crawl(line.Allow, line.Pattern, line.number)
		s.Written = line.Written
		r.Statements = append(r.Statements, s)
	}
	if opens && !slices.ContainsFunc(r.Statements, func(s policy.Statement) bool { return s.Allow && s.Pattern == pathpattern.All }) {
		r.Statements = append(r.Statements, crawl(true, pathpattern.All, 0))
	}
	if audience[0].Kind == policy.ForToken && slices.ContainsFunc(r.Statements, func(s policy.Statement) bool { return s.Allow }) {
		im.permitted = append(im.permitted, audience...)
	}
	im.delay(&r, g)
	r.NoCrawlDelay = r.CrawlDelay == 0 && im.replaces(gs, (*Group).delays)
	if !im.below {
		im.extensions(&r, audience, g)
	}
	r.Pos = firstPos(&r)
	if len(r.Statements)+len(r.AppDirectives) > 0 || r.CrawlDelay > 0 || r.NoCrawlDelay {
		im.commentRule(gs, &r)
		im.spec.Rules = append(im.spec.Rules, r)
	}
}

// extensions adds the lines that extend RFC 9309.
func (im *importer) extensions(r *policy.Rule, audience []policy.Audience, g *Group) {
	for _, l := range g.lines {
		im.extension(r, l)
	}
	replaceDirectives(r)
	if star := im.f.Group("*"); star != nil && g != star {
		im.fallsThrough(audience, g, star)
		im.dropDirectives(r, star)
	}
}

// commentRule collects the comments of the rule to be added: those before the groups' names, those of lines that do
// not become statements, and those that only later groups have.
func (im *importer) commentRule(gs []*Group, r *policy.Rule) {
	var texts []string
	done := map[string]bool{"": true}
	add := func(line int) {
		if text := im.f.comments[line]; !done[text] {
			done[text] = true
			texts = append(texts, text)
		}
	}
	statement := map[int]bool{}
	for _, s := range r.Statements {
		statement[s.Pos.Line] = true
	}
	first := map[string]bool{} // comments of rules of the first group
	for _, line := range gs[0].rules {
		first[im.f.comments[line.number]] = true
	}
	for i, g := range gs {
		add(g.number)
		add(g.delayLine)
		for _, line := range g.rules {
			if i == 0 && !statement[line.number] || i > 0 && !first[im.f.comments[line.number]] {
				add(line.number)
			}
		}
		for _, l := range g.lines {
			if !statement[l.number] {
				add(l.number)
			}
		}
	}
	if texts != nil {
		im.comments[len(im.spec.Rules)] = strings.Join(texts, "\n")
	}
}

const maxPath = 2048

func (im *importer) tooLong(line int, p pathpattern.Pattern) bool {
	if p.Len() <= maxPath {
		return false
	}
	im.f.note(line, "a path in a policy file can have up to %d bytes, and this one has %d; it is left out", maxPath, p.Len())
	return true
}

// beginnings replaces the rules whose path is longer than a policy file can have: a Disallow by one for the beginning of
// its path, and an Allow by none.
func (im *importer) beginnings(rules []Rule) (all []Rule) {
	for _, r := range rules {
		switch {
		case r.Pattern.Len() <= maxPath:
			all = append(all, r)
		case r.Allow:
			im.tooLong(r.number, r.Pattern)
		default:
			p := im.beginning(r.number, r.Pattern)
			all = append(all, Rule{Pattern: p, Size: r.Size, number: r.number})
		}
	}
	return all
}

// beginning is a pattern that a prohibition can have in a policy file: one that is too long ends early.
func (im *importer) beginning(line int, p pathpattern.Pattern) pathpattern.Pattern {
	if p.Len() <= maxPath {
		return p
	}
	im.f.note(line, "a path in a policy file can have up to %d bytes, and this one has %d; the policy disallows the beginning of the path", maxPath, p.Len())
	text := p.String()[:maxPath]
	if i := strings.LastIndexByte(text, '%'); i > maxPath-3 {
		text = text[:i]
	}
	return pathpattern.MustParse(text)
}

// fallsThrough notes extensions of "*" that a group lacks: in robots.txt its crawler does not read them, in a policy it does.
func (im *importer) fallsThrough(audience []policy.Audience, g, star *Group) {
	has := map[string]bool{"license": true, "app-directives": true, "request-rate": true, "visit-time": true} // which are not inherited
	for _, l := range g.lines {
		has[l.key] = true
	}
	for _, l := range star.lines {
		if !has[l.key] {
			has[l.key] = true
			im.f.note(l.number, "a crawler with its own group does not read this line, but in the policy the line also applies to %s", audience[0])
		}
	}
}

// dropDirectives overrides the App-Directives of "*", which the rule's group replaces, for each application without one for
// the whole site in that group (draft-nottingham-plan-b, Applying Application Directives).
func (im *importer) dropDirectives(r *policy.Rule, star *Group) {
	var all policy.Rule
	notes := im.f.notes
	for _, l := range star.lines {
		if l.key == "app-directives" {
			im.extension(&all, l)
		}
	}
	im.f.notes = notes // importing "*" has reported the same
	for _, d := range all.AppDirectives {
		if !slices.ContainsFunc(r.AppDirectives, func(own policy.AppDirective) bool { return own.App == d.App && own.Pattern == pathpattern.All }) {
			r.AppDirectives = append(r.AppDirectives, policy.AppDirective{Pos: d.Pos, Pattern: pathpattern.All, App: d.App, Text: d.App})
		}
	}
}

// purpose adds the rule for clients that name a purpose (draft-illyes-rep-purpose-00). Their group replaces the group
// of "*", so the rule allows paths that only "*" may not crawl.
func (im *importer) purpose(g, star *Group) {
	name := g.Name
	if !policy.IsPurpose(name) || len(name) > maxName {
		im.f.note(g.number, "%q is not a valid purpose, which is a letter, then letters, digits, hyphens, underscores and dots; its group is left out", name)
		return
	}
	im.spec.Publish.UserAgentPurpose = policy.On
	audience := []policy.Audience{{Kind: policy.ForPurpose, Name: name}}
	rules := len(im.spec.Rules)
	im.rule(audience, []*Group{g}, false)
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
			s := crawl(true, d.Pattern, 0)
			s.Written = d.Written
			open = append(open, s)
		case g.rules[own].Pattern != d.Pattern && !g.rules[own].Allow && !g.rules[own].Pattern.Covers(d.Pattern):
			im.f.note(d.number, "in the policy, this line also applies to clients that name the purpose %s, unless their own group says something about the path", name)
		}
	}
	if open == nil {
		return
	}
	if rules == len(im.spec.Rules) { // the group says nothing itself
		im.spec.Rules = append(im.spec.Rules, policy.Rule{For: audience})
	}
	r := &im.spec.Rules[rules]
	r.Statements = append(r.Statements, open...)
}

func firstPos(r *policy.Rule) policy.Pos {
	for _, s := range r.Statements {
		if s.Pos.Line > 0 {
			return s.Pos
		}
	}
	return policy.Pos{}
}
