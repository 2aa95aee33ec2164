// SPDX-License-Identifier: Apache-2.0

package robotsserve

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/robotspolicy/caddy-robots-policy/pathpattern"
	"github.com/robotspolicy/caddy-robots-policy/policy"
)

// group is the lines that some crawlers obey.
type group struct {
	star     bool // it is the group of everybody who is not named
	tokens   []string
	purposes []string
	labels   []string // what the rules are for that it comes from
	lines    []string
	key      string // equal for groups of equal lines
	pos      policy.Pos
}

// allowAll is the rule of a group that disallows nothing, as each group needs
// one: Google's parser joins a group without to the next.
const allowAll = "Allow: /"

// trivial reports whether a crawler does the same when it has no group at all.
func (g *group) trivial() bool { return g.key == allowAll }

func (g *group) write(w *writer) {
	w.pos = g.pos
	if len(g.labels) > 0 {
		w.line("# " + strings.Join(g.labels, ", "))
	}
	for _, t := range g.tokens {
		w.line("User-agent: " + t)
	}
	for _, t := range g.purposes {
		w.line("User-Agent-Purpose: " + t)
	}
	for _, l := range g.lines {
		w.line(l)
	}
}

// grouping finds the groups of a host.
type grouping struct {
	p        *policy.Policy
	host     string
	groups   []*group // the first is everybody's
	byKey    map[string]*group
	of       map[string]*group // by the tokens, in lower case, of those that have rules of their own
	below    *foreign          // a file that is merged, or nil
	extra    []policy.Crawler  // that only it names
	speaks   spokenOf          // what the policy says of extensions, where there is a file below
	size     int               // of all groups' lines
	work     int               // statements that were flattened
	losses   []Loss
	problems []policy.Problem
}

func newGrouping(p *policy.Policy, host string) *grouping {
	return &grouping{p: p, host: host, byKey: map[string]*group{}, of: map[string]*group{}}
}

// collect makes a group of each class of crawlers and joins those of equal
// lines.
func (g *grouping) collect() {
	classes := g.p.Classes(g.host)
	bodies := newBodies(g.p)
	for i, u := range g.units(classes) {
		lines, losses := []string{"Disallow: /"}, []Loss(nil)
		if g.size <= 4*MaxFile && g.work <= g.mostWork() { // what is far too large is not worth the time
			lines, losses = bodies.of(g, u)
		}
		gr := g.group(lines)
		gr.label(g.rulesOf(u.class, i == 0))
		gr.star = gr.star || i == 0
		tokens := []string{"*"}
		if i > 0 {
			tokens = nil
		}
		for _, info := range u.infos {
			tokens = append(tokens, info.Token)
			g.of[strings.ToLower(info.Token)] = gr
		}
		for j := range losses {
			losses[j].Crawlers = tokens
			g.warn(&losses[j])
		}
		g.losses = append(g.losses, losses...)
	}
	if g.below == nil && g.work > maxWork {
		g.problems = append(g.problems, tooMuch(g.p))
	}
	var purposes []purpose
	if g.p.Spec().Publish.UserAgentPurpose != policy.Off {
		purposes = g.published(&classes[0])
	}
	g.name(len(purposes) > 0)
	g.addPurposes(purposes)
}

// maxWork bounds the statements that groups are made of, counted once for each
// class of crawlers with rules of its own about crawling, and of all hosts
// together.
const maxWork = 4 << 20

func (g *grouping) mostWork() int {
	if g.below != nil {
		return maxMergeWork
	}
	return maxWork
}

func (g *grouping) group(lines []string) *group {
	key := strings.Join(lines, "\n")
	gr := g.byKey[key]
	if gr == nil {
		gr = &group{lines: lines, key: key}
		g.size += len(key)
		g.byKey[key] = gr
		g.groups = append(g.groups, gr)
	}
	return gr
}

// body is the lines of a class after those that name it. The purpose is one
// that its crawlers name themselves, or "".
func (g *grouping) body(c *policy.Class, purpose string, below *foreignGroup) ([]string, []Loss) {
	layers := g.p.Layers(c, policy.Crawl, purpose)
	own := len(layers)
	var size func(pathpattern.Pattern) int
	if below != nil && len(below.rules) > 0 {
		var layer policy.Layer
		layer, size = below.layer()
		layers = append(layers, layer)
	}
	g.work += statements(layers)
	lines, added, losses, ok := flatten(layers, own, size)
	if !ok {
		g.problems = append(g.problems, policy.Problem{
			Severity: policy.Error, Code: "not-flattenable", Pos: layers[0].Statements[0].Statement.Pos,
			Message: "too many paths with * are allowed here and disallowed there for robots.txt to say which one wins; state fewer of them",
		})
		lines, added = []string{"Disallow: /"}, nil
	}
	if len(lines)+len(added) == 0 {
		lines = []string{allowAll}
	}
	var also []string
	delay := g.crawlDelay(c, purpose)
	if delay != "" {
		also = append(also, delay)
	}
	ex, problems := extensions(g.p, c, purpose)
	g.problems = append(g.problems, problems...)
	also = append(also, ex...)
	if below != nil {
		if d := below.crawlDelay(); d != "" && delay == "" {
			added = append(added, d)
		}
		added = append(added, below.extensions(g.speaks)...)
	}
	switch {
	case len(added) == 0:
		lines = append(lines, also...)
	case len(lines) > 0:
		lines = slices.Concat(lines, also, []string{theirsComment}, added)
	default: // a rule stands first
		lines = append([]string{theirsComment}, added...)
		if len(also) > 0 {
			lines = append(append(lines, oursComment), also...)
		}
	}
	return lines, losses
}

func statements(layers []policy.Layer) (n int) {
	for i := range layers {
		n += len(layers[i].Statements)
	}
	return n
}

func (g *grouping) crawlDelay(c *policy.Class, purpose string) string {
	id := policy.CrawlerID(0)
	if len(c.Crawlers) > 0 {
		id = c.Crawlers[0]
	}
	q := policy.Query{Crawler: id, Host: g.host, Identity: policy.Verified}
	if purpose != "" {
		q.Purposes = []string{purpose}
	}
	r := g.p.CrawlDelay(q)
	if r == nil {
		return ""
	}
	return "Crawl-delay: " + strconv.FormatFloat(r.CrawlDelay.Seconds(), 'f', -1, 64)
}

func (g *grouping) warn(l *Loss) {
	for _, p := range g.problems {
		if p.Code == "not-flattenable" && p.Pos == l.Pos {
			return
		}
	}
	for _, m := range g.losses {
		if m.Pos == l.Pos && m.Pattern == l.Pattern && m.Rule == l.Rule {
			return
		}
	}
	g.problems = append(g.problems, policy.Problem{
		Severity: policy.Warning, Code: "not-flattenable", Pos: l.Pos,
		Message: fmt.Sprintf("robots.txt cannot say exactly what is stated for %q, as a longer pattern of another rule says the opposite there: it disallows %q; write %q without $, or the other pattern shorter",
			l.Pattern, l.Paths, l.Pattern),
	})
}

// rulesOf lists the rules that make a class's group what it is.
func (g *grouping) rulesOf(c *policy.Class, everybody bool) []*policy.Rule {
	if everybody {
		return g.p.Rules(c, policy.TierEveryone)
	}
	rules := slices.Concat(g.p.Rules(c, policy.TierToken), g.p.Rules(c, policy.TierGroup))
	return rules
}

// label adds the rules to the comment of the group.
func (g *group) label(rules []*policy.Rule) {
	for _, r := range rules {
		if !inGroup(r) {
			continue
		}
		if g.pos == (policy.Pos{}) {
			g.pos = r.Pos
		}
		g.mention(label(r))
	}
}

// mention adds to the comment of the group, unless it is long enough.
func (g *group) mention(what string) {
	if !slices.Contains(g.labels, what) && len(g.labels) < 8 {
		g.labels = append(g.labels, what)
	}
}

// inGroup reports whether a rule says something that stands in a group.
func inGroup(r *policy.Rule) bool {
	if r.CrawlDelay > 0 || len(r.AppDirectives) > 0 {
		return true
	}
	return slices.ContainsFunc(r.Statements, func(s policy.Statement) bool { return s.Usage == policy.Crawl || !s.Usage.IsACAP() })
}

// label is a rule's name, or what it is for.
func label(r *policy.Rule) string {
	name := r.Name
	if name == "" {
		for i, a := range r.For {
			if i > 0 {
				name += " "
			}
			if len(name) > 60 {
				name += "…"
				break
			}
			name += a.String()
		}
	}
	return strings.Map(func(c rune) rune {
		if c < ' ' || c == 0x7f || c == '\u2028' || c == '\u2029' || c == '\u0085' {
			return ' '
		}
		return c
	}, name)
}
