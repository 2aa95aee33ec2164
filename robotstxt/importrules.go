// SPDX-License-Identifier: Apache-2.0

package robotstxt

import (
	"slices"
	"strings"

	"github.com/robotspolicy/caddy-robots-policy/internal/leaf/english"
	"github.com/robotspolicy/caddy-robots-policy/pathpattern"
	"github.com/robotspolicy/caddy-robots-policy/policy"
)

// groups adds one rule for each set of groups with equal lines.
func (im *importer) groups() {
	star := im.f.Group("*")
	if star != nil {
		n := len(im.spec.Rules)
		im.rule([]policy.Audience{{Kind: policy.ForEveryoneElse}}, []*Group{star}, false)
		im.remark(n, "everyone-else stands for the group of * in robots.txt. A rule for a named crawler can allow more than this rule.")
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
		n := len(im.spec.Rules)
		im.rule(audience, gs, im.below || im.replaces(gs, (*Group).disallows))
		for _, g := range gs {
			if len(follow[g]) > 0 {
				im.remark(n, "The group of "+g.Name+" also applies to these crawlers, which have no group in this robots.txt: "+english.Some(follow[g], 5)+".")
			}
		}
	}
	if im.below {
		return
	}
	for _, g := range im.f.purposes {
		im.purpose(g, star)
	}
}

// remark adds a comment to the rule with the index at, if there is such a rule. The comment is placed before the
// comments from the file that the rule already has.
func (im *importer) remark(at int, text string) {
	if at < len(im.spec.Rules) {
		im.comments[at] = strings.TrimSuffix(text+"\n"+im.comments[at], "\n")
	}
}

func (g *Group) disallows() bool {
	return slices.ContainsFunc(g.rules, func(r Rule) bool { return !r.Allow })
}

func (g *Group) delays() bool { return g.CrawlDelay() > 0 }

// replaces reports whether the rule for the groups gs must override another rule. In robots.txt, the crawlers that gs
// name obey only gs (RFC 9309 section 2.2.1). Without gs, they would obey the group of "*" or the group of a crawler
// that they follow. In a policy, the rules for these groups would apply to them, too. replaces returns true if one of
// these groups has lines that must be overridden, which is the case if has returns true for it.
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

// joined returns the groups of named crawlers. Groups with equal lines form one list.
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

// followers returns, for each group, the crawlers that obey it although it does not name them. For example, a crawler
// may obey the group of another crawler of the same operator. If a policy's rule for the named crawler applies to them
// anyway (see policy.Policy.Family), followers leaves them out.
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

// isFamily reports whether a policy's rule for a token also applies to the crawler c, which follows that token.
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

// IgnoresStar is the name of a rule if the file is the fallback of a policy. The rule is for crawlers that do not obey
// the group of "*", and that no other group of the file names.
const IgnoresStar = "crawlers that ignore the group of *"

// ignoringStar adds a rule for the crawlers that do not obey the group of "*", and do not have another group. Without
// this rule, the policy's rule for the group of "*" would apply to them. The added rule allows all paths, and cancels
// the crawl-delay.
func (im *importer) ignoringStar(star *Group) {
	r := policy.Rule{NoCrawlDelay: star.delays(), Pos: position(star.number)}
	if star.disallows() || im.below && len(star.rules) > 0 {
		r.Statements = []policy.Statement{im.implied(star)}
	}
	for _, c := range im.crawlers {
		if c.IgnoresStar && im.f.Obeyed(c) == nil {
			r.For = append(r.For, policy.Audience{Kind: policy.ForToken, Name: c.Token})
		}
	}
	if r.For == nil || r.Statements == nil && !r.NoCrawlDelay {
		return
	}
	if im.below {
		r.Name = IgnoresStar
	}
	im.comments[len(im.spec.Rules)] = "These crawlers are documented to ignore the group of *, and this robots.txt does not name them."
	im.spec.Rules = append(im.spec.Rules, r)
}

// implied returns a statement that allows all paths. Because its pattern is the shortest one, it decides only about the
// paths that no line of the group g matches. If the file is the fallback of a policy, the statement has the line number
// of the group, because the command "explain" cites that line.
func (im *importer) implied(g *Group) policy.Statement {
	if im.below {
		s := crawl(true, pathpattern.All, g.number)
		s.Implied = true
		return s
	}
	return crawl(true, pathpattern.All, 0)
}

// rule adds a rule for the crawlers in audience. gs are the groups that these crawlers obey, and all of them have equal
// lines. If opens is true, the rule also allows every path that these lines do not match.
func (im *importer) rule(audience []policy.Audience, gs []*Group, opens bool) {
	g := gs[0]
	r := policy.Rule{For: audience, Pos: position(g.number)}
	if im.below { // the command "explain" cites the lines of the file
		names := make([]string, len(gs))
		for i, g := range gs {
			names[i] = g.written
		}
		r.Name = "User-agent: " + strings.Join(names, ", ")
	}
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
	if len(r.Statements) > 0 {
		r.Pos = r.Statements[0].Pos
	}
	if opens && !slices.ContainsFunc(r.Statements, func(s policy.Statement) bool { return s.Allow && s.Pattern == pathpattern.All }) {
		r.Statements = append(r.Statements, im.implied(g))
	}
	if audience[0].Kind == policy.ForToken && slices.ContainsFunc(r.Statements, func(s policy.Statement) bool { return s.Allow }) {
		im.permitted = append(im.permitted, audience...)
	}
	im.delay(&r, g)
	r.NoCrawlDelay = r.CrawlDelay == 0 && im.replaces(gs, (*Group).delays)
	if !im.below {
		for _, l := range g.lines {
			im.extension(&r, l)
		}
		im.tooLarge = !im.cancelDirectives(&r) || im.tooLarge
	}
	if len(r.Statements)+len(r.AppDirectives) > 0 || r.CrawlDelay > 0 || r.NoCrawlDelay {
		im.commentRule(gs, &r)
		im.spec.Rules = append(im.spec.Rules, r)
	}
}

// commentRule sets the comments of r, which is the rule that is added next. It collects the comments of all lines of
// the groups gs, but leaves out comments that are written next to a statement of r.
func (im *importer) commentRule(gs []*Group, r *policy.Rule) {
	var texts []string
	done := map[string]bool{"": true}
	for _, s := range r.Statements {
		done[im.f.comments[s.Pos.Line]] = true
	}
	for _, g := range gs {
		lines := append([]int{g.number, g.delay.number}, g.Lines()...)
		for _, l := range g.lines {
			lines = append(lines, l.number)
		}
		for _, line := range lines {
			if text := im.f.comments[line]; !done[text] {
				done[text] = true
				texts = append(texts, text)
			}
		}
	}
	if texts != nil {
		im.comments[len(im.spec.Rules)] = strings.Join(texts, "\n")
	}
}

const maxPath = 2048

// beginnings shortens or leaves out the paths that are too long for a policy file (see importer.fit).
func (im *importer) beginnings(rules []Rule) (all []Rule) {
	for _, r := range rules {
		p, ok := im.fit(r.number, r.Allow, r.Pattern)
		if !ok {
			continue
		}
		if p != r.Pattern {
			r.Pattern, r.Written = p, ""
		}
		all = append(all, r)
	}
	return all
}

// fit returns p if it is not too long for a policy file. If p is too long, and allow is false, fit returns the
// beginning of p, which disallows more paths. If p is too long, and allow is true, ok is false.
func (im *importer) fit(line int, allow bool, p pathpattern.Pattern) (fitting pathpattern.Pattern, ok bool) {
	if p.Len() <= maxPath {
		return p, true
	}
	const long = "a path in a policy file can have up to %d bytes, and this one has %d; "
	if allow {
		im.f.note(line, long+"import and merge leave it out", maxPath, p.Len())
		return p, false
	}
	im.f.note(line, long+"the policy disallows the beginning of the path", maxPath, p.Len())
	text := p.String()[:maxPath]
	if i := strings.LastIndexByte(text, '%'); i > maxPath-3 {
		text = text[:i]
	}
	return pathpattern.MustParse(text), true
}

// purpose adds the rule for clients that send the name of a purpose (draft-illyes-rep-purpose-00). These clients obey
// the purpose's group g instead of star, the group of "*". In the policy, the rule for star would also apply to them,
// so the rule for g allows the paths that only star disallows.
func (im *importer) purpose(g, star *Group) {
	name := g.Name
	if !policy.IsPurpose(name) || len(name) > maxName {
		im.f.note(g.number, "%q is not a valid name of a purpose. A name begins with a letter, and continues with letters, digits, hyphens, underscores and dots. Import leaves out its group", name)
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
			im.f.note(d.number, "in the policy, this line also applies to clients that name the purpose %s, unless the group of this purpose has a line about the path", name)
		}
	}
	if open == nil {
		return
	}
	if rules == len(im.spec.Rules) { // the group has no lines that become rules
		im.spec.Rules = append(im.spec.Rules, policy.Rule{For: audience, Pos: position(g.number)})
	}
	r := &im.spec.Rules[rules]
	r.Statements = append(r.Statements, open...)
}
