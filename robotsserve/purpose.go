// SPDX-License-Identifier: Apache-2.0

package robotsserve

import (
	"slices"
	"strings"

	"github.com/robotspolicy/caddy-robots-policy/channels"
	"github.com/robotspolicy/caddy-robots-policy/internal/leaf/english"
	"github.com/robotspolicy/caddy-robots-policy/pathpattern"
	"github.com/robotspolicy/caddy-robots-policy/policy"
	"github.com/robotspolicy/caddy-robots-policy/rights"
	"github.com/robotspolicy/caddy-robots-policy/robotstxt"
)

// purpose is a purpose that rules are for, with the lines of its group.
type purpose struct {
	name  string
	class policy.Class
	rules []*policy.Rule
	lines []Line
}

func (p *purpose) key() string { return strings.ToLower(p.name) }

// published returns the purposes that get User-Agent-Purpose lines (draft-illyes-rep-purpose-00). A
// client combines the groups of all its purposes, so the lines of all groups are made together.
func (g *grouping) published(everyone *policy.Class) []purpose {
	var all []purpose
	for _, name := range g.layout.purposes {
		p := purpose{name: name, class: g.p.WithPurpose(everyone, strings.ToLower(name))}
		p.rules = g.p.Rules(&p.class, policy.TierGroup)
		if len(p.rules) > 0 && g.isPurpose(name, p.rules[0]) {
			all = append(all, p)
		}
	}
	if len(all) == 0 {
		return nil
	}
	said, value := g.combined(all)
	lines, losses := g.crawlLines(said, len(all) > 1, value)
	for i := range all {
		p := &all[i]
		p.lines = g.assemble(lines, i, p.key(), &p.class)
		for _, l := range losses {
			l.Purpose = p.key()
			g.warn(&l)
			g.losses = append(g.losses, l)
		}
	}
	g.agree(all)
	return all
}

// combined returns all statements about crawling for the purposes. It also returns a function that returns the verdicts
// about the paths of a pattern, one for each purpose.
func (g *grouping) combined(purposes []purpose) (all []stated, value func(pathpattern.Pattern) []verdict) {
	queries := make([]policy.Query, len(purposes))
	for i := range purposes {
		p := &purposes[i]
		queries[i] = p.class.Query(g.host, policy.Crawl, p.key())
		all = append(all, statementsOf(g.p.Statements(&p.class, policy.Crawl, p.key()))...)
	}
	return all, func(at pathpattern.Pattern) []verdict {
		verdicts := make([]verdict, len(queries))
		for i, q := range queries {
			d := g.p.DecideAt(q, at)
			verdicts[i] = g.verdictOf(d)
			verdicts[i].own = d.Verdict == policy.Disallowed && slices.Contains(purposes[i].rules, d.Rule)
		}
		return verdicts
	}
}

// agree looks for channels whose lines differ between the groups of purposes, for example by their paths. A crawler
// with two purposes combines the two groups. Then the line with the longest path in one group would replace a shorter
// line in the other group, even if the shorter line disallows more. So agree replaces the lines of each purpose by one
// strict line for all paths (see makeStrict), if the channel has such a strict line.
func (g *grouping) agree(all []purpose) {
	differ := func(key string) bool {
		says := func(p *purpose) string {
			return keyOf(slices.DeleteFunc(slices.Clone(p.lines), func(l Line) bool { return l.key != key }))
		}
		return slices.ContainsFunc(all, func(p purpose) bool { return says(&p) != says(&all[0]) })
	}
	if differ(keyCrawlDelay) {
		g.report(policy.Hint, "purpose-groups-differ", all[0].rules[0].Pos,
			"the purpose %q and other purposes have different crawl-delays. A crawler with two purposes combines their groups, and waits for the longest delay", all[0].name)
	}
	var refused map[string][]string
	if below := g.obeyedBelow(&all[0].class); below != nil && g.speaks.Preferences {
		refused = below.Disallowed()
	}
	var names, strict, longest []string
	any := false
	for _, ch := range channels.Groups() {
		f := ch.Group
		if !f.ByPath {
			continue
		}
		differs := differ(f.Field)
		any = any || differs
		if names = append(names, f.Field); f.StrictLine == nil {
			longest = append(longest, f.Field)
			continue
		}
		strict = append(strict, f.Field)
		for i := range all {
			if differs {
				all[i].makeStrict(f, rights.NewClient(g.p, &all[i].class, g.host, all[i].key()), refused)
			}
		}
	}
	if !any {
		return
	}
	g.report(policy.Hint, "purpose-groups-differ", all[0].rules[0].Pos,
		"the %s lines differ between the purpose %q and other purposes, but a crawler with two purposes combines their groups. Therefore, if the policy disallows a usage for any path, the %s lines in robots.txt disallow it for all paths. If several %s lines match a path, the line with the longest path applies. The headers follow the policy for each path",
		english.List(names, "and"), all[0].name, english.List(strict, "and"), english.List(longest, "and"))
}

// makeStrict replaces the purpose's lines of the channel f by one line for all paths. This line also disallows the
// usages in refused, which the site's own file disallows for all paths.
func (p *purpose) makeStrict(f *channels.Group, c *rights.Client, refused map[string][]string) {
	var others, strict []Line
	var first *Line
	at := 0
	for i := range p.lines {
		switch l := &p.lines[i]; {
		case l.key != f.Field:
			others = append(others, *l)
		case first == nil || first.Rule == nil && l.Rule != nil:
			first, at = l, len(others)
		}
	}
	if first == nil {
		return
	}
	if value := f.StrictLine(c); value != "" {
		one := *first
		one.Text, one.pattern = policy.NewLine(f.Field, pathpattern.All, value).Text, pathpattern.All
		strict = append(strict, one)
	}
	for _, l := range refuse(strict, refused) {
		if l.key == f.Field {
			strict = append(strict, l)
		}
	}
	p.lines = slices.Insert(others, at, strict...)
}

// addPurposes adds each purpose to the group with the same lines, if this group names a crawler with the purpose.
// Otherwise it adds a group for the purpose alone.
func (g *grouping) addPurposes(all []purpose) {
	for _, p := range all {
		gr := g.byKey[keyOf(p.lines)]
		if gr == nil || len(gr.tokens) == 0 || !g.hasPurpose(gr, p.name) {
			gr = &group{tokens: []string{robotstxt.PurposePrefix + p.key()}, lines: p.lines, key: keyOf(p.lines)}
			gr.add(p.rules)
			g.groups = append(g.groups, gr)
		}
		gr.purposes = append(gr.purposes, p.name)
	}
}

// isPurpose reports whether a name can be in a User-Agent-Purpose line. Google's parser reads such a line as a
// User-agent line, and cuts the name before the first character that is not a letter, "-" or "_". So neither the name
// nor this part of it may be the name of a crawler.
func (g *grouping) isPurpose(name string, rule *policy.Rule) bool {
	const letters = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ-_"
	read := name[:len(name)-len(strings.TrimLeft(name, letters))] // the part that Google's parser reads
	var why string
	switch {
	case !policy.IsPurpose(name):
		why = "the name must begin with a letter, and can only have letters, digits, hyphens, underscores and dots"
	case g.p.Crawler(name) != 0, g.p.Crawler(read) != 0:
		why = "some crawlers would read its rules as rules for the crawler with this name"
	default:
		return true
	}
	g.report(policy.Warning, "purpose-not-published", rule.Pos,
		"robots.txt has no User-Agent-Purpose line for the purpose %q, because %s; use another name", name, why)
	return false
}

// hasPurpose reports whether a group names a crawler that has a purpose.
func (g *grouping) hasPurpose(gr *group, purpose string) bool {
	return slices.ContainsFunc(gr.tokens, func(t string) bool {
		return slices.ContainsFunc(g.p.CrawlerInfo(g.p.Crawler(t)).Purposes, func(p string) bool { return strings.EqualFold(p, purpose) })
	})
}

func purposeAudiences(spec *policy.Spec) (names []string) {
	seen := map[string]bool{}
	for i := range spec.Rules {
		for _, a := range spec.Rules[i].For {
			if key := strings.ToLower(a.Name); a.Kind == policy.ForPurpose && !seen[key] {
				seen[key] = true
				names = append(names, a.Name)
			}
		}
	}
	return names
}
