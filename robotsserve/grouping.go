// SPDX-License-Identifier: Apache-2.0

package robotsserve

import (
	"slices"
	"strconv"
	"strings"

	"github.com/robotspolicy/caddy-robots-policy/channels"
	"github.com/robotspolicy/caddy-robots-policy/pathpattern"
	"github.com/robotspolicy/caddy-robots-policy/policy"
	"github.com/robotspolicy/caddy-robots-policy/policy/solve"
	"github.com/robotspolicy/caddy-robots-policy/rights"
	"github.com/robotspolicy/caddy-robots-policy/robotstxt"
)

type grouping struct {
	*layout
	host     string
	star     *group            // the group of "*"
	groups   []*group          // all other groups, in the order of the policy
	byKey    map[string]*group // groups by their keys
	due      map[string]*group // the group that each crawler in a rule should obey; the key is the token in lower case
	nameless map[string]bool   // crawlers that groups need not name; the key is the token in lower case
	left     map[string]bool   // crawlers that a group's comment counts without naming them; the key is the token in lower case
	below    *robotstxt.File   // the site's own file, whose lines are the policy's fallback, or nil
	room     int               // the maximum size of all groups in bytes
	budget   *solve.Budget
	shut     int // number of crawlers whose groups had no room
	losses   []Loss
	problems []policy.Problem

	// mixed is the hint about Disallow lines if robots.txt does not list all spellings of their paths. asWritten is the
	// hint about Allow lines, which are printed in only one spelling.
	mixed, asWritten spelledHint
}

func (g *grouping) report(severity policy.Severity, code string, at policy.Pos, format string, args ...any) {
	g.problems = append(g.problems, policy.NewProblem(severity, code, at, format, args...))
}

// maxRoom is the maximum total size of the groups of a file, in bytes. It limits the work for a file that is far larger
// than crawlers read.
const maxRoom = 4 * robotstxt.MaxSize

// collect makes a group for each class of crawlers. Classes with equal lines share a group.
func (g *grouping) collect() {
	classes := g.p.PublicClasses(g.host)
	units := g.controls(g.units(classes))
	for i, body := range g.bodies(units) {
		u, gr := &units[i], g.star
		closer := narrower(g.p, u.class)
		if i == 0 {
			gr.lines, gr.key = body.lines, body.key
			gr.add(g.p.Rules(u.class, policy.TierEveryone))
		} else {
			gr = g.group(body)
			gr.add(closer)
		}
		tokens := []string{"*"}
		if i > 0 {
			tokens = nil
		}
		shaped := u.control != nil || slices.ContainsFunc(closer, (*policy.Rule).InGroups)
		refused := g.refuses(u, gr)
		for _, info := range u.infos {
			if info.NoToken && !g.written[info.lower] && (g.below == nil || g.below.Group(info.Token) == nil) {
				continue // a crawler without a token cannot find a group of its own
			}
			if tokens = append(tokens, info.Token); shaped {
				g.due[info.lower] = gr
				g.nameless[info.lower] = g.needsNoName(info, refused)
			}
		}
		for j := range body.losses {
			body.losses[j].Crawlers = tokens
			g.warn(&body.losses[j])
		}
		g.losses = append(g.losses, body.losses...)
	}
	var purposes []purpose
	if g.p.Spec().Publish.UserAgentPurpose != policy.Off {
		purposes = g.published(&classes[0])
	}
	g.hintNamed()
	g.name(len(purposes) > 0)
	g.addPurposes(purposes)
	g.addUsageTokens()
	g.problems = append(g.problems, slices.Concat(g.mixed.problem(), g.asWritten.problem())...)
}

// hintNamed reports lines that are meant for everyone but appear only in groups of named crawlers.
func (g *grouping) hintNamed() {
	groups := append([]*group{g.star}, g.groups...)
	for _, ch := range channels.Groups() {
		hint := ch.Group.Named
		has := func(l Line) bool { return l.key == ch.Group.Field }
		at := slices.IndexFunc(groups, func(gr *group) bool { return slices.ContainsFunc(gr.lines, has) })
		if hint.Text != "" && at > 0 {
			lines := groups[at].lines
			g.report(policy.Hint, hint.Code, lines[slices.IndexFunc(lines, has)].Pos, "%s", hint.Text)
		}
	}
}

// narrower lists the rules that apply to a class more specifically than rules for everyone.
func narrower(p *policy.Policy, c *policy.Class) (rules []*policy.Rule) {
	for tier := range policy.TierEveryone {
		rules = append(rules, p.Rules(c, tier)...)
	}
	return rules
}

func (g *grouping) group(body groupBody) *group {
	gr := g.byKey[body.key]
	if gr == nil {
		gr = &group{lines: body.lines, key: body.key}
		g.byKey[body.key] = gr
		g.groups = append(g.groups, gr)
	}
	return gr
}

// body returns the lines of the group of the class c, without its User-agent lines. The group also disallows everything
// that the policy disallows for the classes in alike.
func (g *grouping) body(c *policy.Class, alike ...*policy.Class) ([]Line, []Loss) {
	all, value := g.crawling(c, alike...)
	lines, losses := g.crawlLines(all, len(alike) > 0, value)
	return g.assemble(lines, 0, "", c, alike...), losses
}

func (g *grouping) crawlLines(all []stated, apart bool, value func(pathpattern.Pattern) []verdict) ([]*line, []Loss) {
	lines, losses := g.lines(all, apart, value)
	g.countSpellings(lines)
	return lines, losses
}

// assemble returns the lines of one group. The lines of the policy come first, then the lines of the site's own file,
// if it is merged. But if only the site's file has Allow or Disallow lines, its lines come first. The parameter "of" is
// the index of the group in line.verdicts.
func (g *grouping) assemble(lines []*line, of int, purpose string, c *policy.Class, alike ...*policy.Class) []Line {
	var ours, theirs, also []Line
	// The map "there" holds the texts of the lines added so far. A text can occur twice, because two statements about
	// two spellings of a path can result in the same line.
	there := map[string]bool{}
	for i := range lines {
		for _, l := range lines[i].printed(of) {
			if there[l.Text] {
				continue
			}
			there[l.Text] = true
			if l.isBelow() {
				theirs = append(theirs, l)
			} else {
				ours = append(ours, l)
			}
		}
	}
	delay := g.crawlDelay(c, purpose)
	for _, a := range alike {
		if longer := g.crawlDelay(a, purpose); longer != nil && (delay == nil || longer.Rule.CrawlDelay > delay.Rule.CrawlDelay) {
			delay = longer
		}
	}
	if delay != nil && !delay.isBelow() {
		also = append(also, *delay)
	}
	if g.speaks != (robotstxt.Stated{}) {
		ex, problems := extensions(rights.NewClient(g.p, c, g.host, purpose))
		g.problems = append(g.problems, problems...)
		also = append(also, ex...)
		also = append(also, refuse(also, g.refusedBy(alike))...)
	}
	if len(ours)+len(theirs) == 0 {
		ours = []Line{{Text: allowAll}}
	}
	if delay != nil && delay.isBelow() {
		theirs = append(theirs, *delay)
	}
	if below := g.obeyedBelow(c); below != nil {
		for _, e := range below.Extensions(g.speaks) {
			theirs = append(theirs, extensionBelow(e))
		}
		if g.speaks.Preferences {
			theirs = append(theirs, refuse(also, below.Disallowed())...)
		}
	}
	switch {
	case len(theirs) == 0:
		return append(ours, also...)
	case len(ours) > 0:
		return slices.Concat(ours, also, []Line{{Text: theirsComment}}, theirs)
	case len(also) > 0: // Allow and Disallow lines, here in theirs, come first
		return slices.Concat([]Line{{Text: theirsComment}}, theirs, []Line{{Text: oursComment}}, also)
	}
	return append([]Line{{Text: theirsComment}}, theirs...)
}

// extensionBelow converts a line of the site's own file that is not about crawling, such as a preference. If the line
// begins with a path that is not a valid pattern, the result has no key.
func extensionBelow(e robotstxt.Extension) Line {
	l := Line{Text: e.Text, Below: e.Number, pattern: pathpattern.All}
	name, value, _ := strings.Cut(e.Text, ": ")
	if startsWithPath(value) {
		path, _, _ := strings.Cut(value, " ")
		pattern, err := pathpattern.Parse(path)
		if err != nil {
			return l
		}
		l.pattern = pattern
	}
	l.key = name
	return l
}

// keyCrawlDelay is the key of lines with a Crawl-delay.
const keyCrawlDelay = "crawl-delay"

func (g *grouping) crawlDelay(c *policy.Class, purpose string) *Line {
	q := policy.Query{Host: g.host, Identity: policy.Verified}
	if len(c.Crawlers) > 0 {
		q.Crawler = c.Crawlers[0]
	}
	if purpose != "" {
		q.Purposes = []string{purpose}
	}
	r := g.p.CrawlDelay(q)
	if r == nil || r.NoCrawlDelay {
		return nil
	}
	text := "Crawl-delay: " + strconv.FormatFloat(r.CrawlDelay.Seconds(), 'f', -1, 64)
	return &Line{Text: text, Rule: r, Pos: r.CrawlDelayPos, key: keyCrawlDelay, pattern: pathpattern.All}
}

// warn reports a loss, once for each statement.
func (g *grouping) warn(l *Loss) {
	var problem policy.Problem
	switch {
	case l.all:
		problem = policy.NewProblem(policy.Warning, "not-flattenable", l.Pos,
			"making robots.txt would take too long, so for some crawlers, it has no Allow line for this allow entry or for later ones. Write fewer paths, fewer rules for single crawlers, or fewer patterns with *")
	case l.combined:
		problem = policy.NewProblem(policy.Warning, "not-flattenable", l.Pos,
			"robots.txt has no Allow line for %q, because the rules for crawlers with another purpose disallow %q. A crawler with both purposes reads the lines for both, so the Allow line would override those rules. A crawler without the other purpose may still fetch the pages that this entry allows",
			l.Pattern, l.Paths)
	case !l.spelling:
		problem = policy.NewProblem(policy.Warning, "not-flattenable", l.Pos,
			"robots.txt disallows %[2]q although the allow entry for %[1]q allows it, because the longest pattern wins in robots.txt. Write a longer path here, or a shorter path in the disallow entry",
			l.Pattern, l.Paths)
	case l.allow:
		g.asWritten.add(l.Pattern, func(others string) policy.Problem {
			return policy.NewProblem(policy.Hint, "other-spelling", l.Pos,
				"robots.txt allows %q%s in only one spelling. Crawlers that compare URLs as they are written may not fetch other spellings, although the server does not block them", l.written, others)
		})
		return
	default:
		problem = policy.NewProblem(policy.Hint, "other-spelling", l.Pos,
			"for crawlers that do not decode paths, robots.txt also has another spelling of %q. Some crawlers read this spelling as %q, so for them, robots.txt is stricter than the policy", l.Pattern, l.Paths)
	}
	if !slices.ContainsFunc(g.problems, func(p policy.Problem) bool { return p.Pos == problem.Pos && p.Code == problem.Code }) {
		g.problems = append(g.problems, problem)
	}
}

// Line is a line of a group, with its origin in the policy.
type Line struct {
	Text      string
	Rule      *policy.Rule // nil if no rule states the line
	Statement *policy.Statement
	Pos       policy.Pos
	Below     int // the number of the line in the site's own file, if the line is not about crawling; otherwise 0

	key     string
	pattern pathpattern.Pattern
	raw     pathpattern.Pattern // the path of an Allow or Disallow line, as written
}

// isBelow reports whether the line comes from the site's own file.
func (l *Line) isBelow() bool { return l.Rule != nil && l.Rule.Fallback }

// allowAll is the only line of a group that does not disallow anything. A group needs at least one line, because
// Google's parser joins a group without a line to the next group.
const allowAll = "Disallow:"

// group holds the lines that some crawlers obey.
type group struct {
	tokens   []string // product tokens; "*" for everyone who is not named
	purposes []string
	rules    []*policy.Rule // the rules that shape the group
	lines    []Line
	key      string // groups with equal lines have equal keys
	left     int    // number of crawlers that the group does not name
}

func keyOf(lines []Line) string {
	var b strings.Builder
	for i := range lines {
		b.WriteString(lines[i].Text)
		b.WriteByte('\n')
	}
	return b.String()
}

func (g *group) add(rules []*policy.Rule) {
	for _, r := range rules {
		if r.InGroups() && !r.Fallback && !slices.Contains(g.rules, r) {
			g.rules = append(g.rules, r)
		}
	}
}

// maxNames is the maximum number of rule names in a group's comment.
const maxNames = 8

func (g *group) names() (names []string) {
	for _, r := range g.rules {
		if name := commentText(r.Name); name != "" && !slices.Contains(names, name) && len(names) < maxNames {
			names = append(names, name)
		}
	}
	return names
}

func commentText(name string) string {
	return strings.Map(func(c rune) rune {
		if c < ' ' || c == 0x7f || c == '\u2028' || c == '\u2029' || c == '\u0085' {
			return ' '
		}
		return c
	}, name)
}

func (g *group) write(w *writer) {
	w.pos = policy.Pos{}
	if len(g.rules) > 0 {
		w.pos = g.rules[0].Pos
	}
	if names := g.names(); len(names) > 0 {
		w.line("# " + strings.Join(names, ", "))
	}
	if g.left > 0 {
		w.line(g.leftComment())
	}
	for _, t := range g.tokens {
		w.line("User-agent: " + t)
	}
	for _, p := range g.purposes {
		w.line("User-Agent-Purpose: " + p)
	}
	for i := range g.lines {
		w.line(g.lines[i].Text)
	}
}
