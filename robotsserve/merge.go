// SPDX-License-Identifier: Apache-2.0

package robotsserve

import (
	"slices"
	"strconv"
	"strings"

	"github.com/robotspolicy/caddy-robots-policy/pathpattern"
	"github.com/robotspolicy/caddy-robots-policy/policy"
	"github.com/robotspolicy/caddy-robots-policy/policy/solve"
	"github.com/robotspolicy/caddy-robots-policy/rights"
	"github.com/robotspolicy/caddy-robots-policy/robotstxt"
)

// Merge renders the robots.txt of a policy and a host with another file below it: where the policy states nothing for
// a crawler and a path, the group of the other file decides that the crawler would have obeyed. Every crawler that
// the other file names gets a group with the lines of both, the other's after a comment. Crawl-delays, preferences and
// App-Directives are added where the policy states none, and sitemaps always; a Note names what is
// left out. With a problem that is an error the result must not be published.
func Merge(p *policy.Policy, host string, other *robotstxt.File, o Options) (*File, []policy.Problem, []robotstxt.Note) {
	d, problems, notes := newLayout(p).drawMerged(host, other)
	v := d.vary(p, host, o)
	problems = append(problems, addSitemaps(other, d, &v)...)
	f, problems := d.file(p, v, problems)
	return f, problems, notes
}

const (
	maxDrawings = 3       // tries to make a merged file that fits
	mergeSlack  = 4 << 10 // by which the sizes of groups are estimated too low
	mostClosing = 1000    // closing lines taken from a file for which there is no room
)

// drawMerged is draw with another file below. Crawlers whose group has no room, or would take too
// long, are disallowed everything.
func (l *layout) drawMerged(host string, other *robotstxt.File) (*drawing, []policy.Problem, []robotstxt.Note) {
	d, problems := l.draw(host, other, robotstxt.MaxSize)
	for n, room := 1, robotstxt.MaxSize; n < maxDrawings; n++ {
		d.theirs = other.Preamble()
		over := d.least(l.p) - robotstxt.MaxSize
		if room -= over + mergeSlack; over <= 0 || room <= 0 {
			break
		}
		d, problems = l.draw(host, other, room)
	}
	d.theirs = other.Preamble()
	if d.least(l.p) > robotstxt.MaxSize || slices.ContainsFunc(problems, func(p policy.Problem) bool { return p.Severity == policy.Error }) {
		closing, left := other.Closing(mostClosing)
		d, problems = l.draw(host, closing, robotstxt.MaxSize)
		problems = append(problems, policy.NewProblem(policy.Warning, "merge-too-large", policy.Pos{},
			"with the robots.txt of the site, the file would be larger than the %d KiB that crawlers read, or take too long: its Allow lines are left out, and %d Disallow lines for everyone; shorten it, or import it into the policy", robotstxt.MaxSize>>10, left))
	}
	if d.shut > 0 {
		problems = append(problems, policy.NewProblem(policy.Warning, "merge-too-large", policy.Pos{},
			"the robots.txt of the site has too many groups: with the policy they come to more than the %d KiB that crawlers read, or take too long; robots.txt disallows everything to %d of its crawlers; shorten it, or import it into the policy", robotstxt.MaxSize>>10, d.shut))
	}
	return d, problems, other.LeftOut(l.speaks)
}

// addSitemaps adds the other file's sitemaps to those of the policy, as many as fit.
func addSitemaps(other *robotstxt.File, d *drawing, v *varying) (problems []policy.Problem) {
	w := writer{eol: d.eol}
	room := robotstxt.MaxSize - len(v.front) - len(d.head) - len(d.tail)
	there := map[string]bool{}
	left := 0
	add := func(s, comment string) bool {
		there[s] = true
		if len(w.text)+len("Sitemap: ")+len(s)+len(comment)+3*len(d.eol) > room {
			left++
			return false
		}
		if len(w.text) == 0 {
			w.line("")
		}
		if comment != "" {
			w.line(comment)
		}
		w.line("Sitemap: " + s)
		return true
	}
	for line := range strings.SplitSeq(string(v.sitemaps), d.eol) {
		if s, ok := strings.CutPrefix(line, "Sitemap: "); ok {
			add(s, "")
		}
	}
	comment := theirsComment
	for _, s := range other.Sitemaps() {
		if !there[s] && add(s, comment) {
			comment = ""
		}
	}
	v.sitemaps = w.text
	if left > 0 {
		problems = append(problems, policy.NewProblem(policy.Warning, "merge-too-large", policy.Pos{},
			"with the robots.txt of the site, the file would be larger than the %d KiB that crawlers read; %d sitemaps are left out; list them in a sitemap index", robotstxt.MaxSize>>10, left))
	}
	return problems
}

// Comments before the lines of the file below, and before those of the policy that follow them.
const (
	theirsComment = "# from the robots.txt of the site"
	oursComment   = "# from the policy"
)

// statedBy returns the extensions of groups that a policy uses.
func statedBy(p *policy.Policy) (s robotstxt.Stated) {
	publish := &p.Spec().Publish
	s.Preferences = publish.ContentSignal != policy.Off && publish.ContentSignalUse != ""
	rules := p.Spec().Rules
	for i := range rules {
		s.Directives = s.Directives || len(rules[i].AppDirectives) > 0
		for j := range rules[i].Statements {
			u := rules[i].Statements[j].Usage
			s.Preferences = s.Preferences || !u.IsACAP() || u == policy.Other // which speaks of what no other rule speaks of
		}
	}
	return s
}

// unit is crawlers for which the policy and the file below state the same.
type unit struct {
	class *policy.Class
	infos []*crawler // none: everybody
	below *robotstxt.Group

	control *policy.ControlToken // infos is a control token, and training is disallowed
}

// units lists those of a host, everyone first.
func (g *grouping) units(classes []policy.Class) []unit {
	if g.below == nil {
		units := make([]unit, len(classes))
		var infos []*crawler
		for i := range classes {
			units[i] = unit{class: &classes[i]}
			start := len(infos)
			for _, id := range classes[i].Crawlers {
				infos = append(infos, g.crawler(id))
			}
			units[i].infos = infos[start:len(infos):len(infos)]
		}
		return units
	}
	units := []unit{{class: &classes[0], below: g.below.Group("*")}}
	classOf := map[policy.CrawlerID]*policy.Class{}
	for i := range classes {
		for _, id := range classes[i].Crawlers {
			classOf[id] = &classes[i]
		}
	}
	type key struct {
		class *policy.Class
		below *robotstxt.Group
	}
	at := map[key]int{}
	add := func(c *policy.Class, info *crawler, below *robotstxt.Group) {
		k := key{c, below}
		n, ok := at[k]
		if !ok {
			n = len(units)
			at[k] = n
			units = append(units, unit{class: c, below: below})
		}
		units[n].infos = append(units[n].infos, info)
	}
	for id := range g.p.Crawlers {
		c, info := classOf[id], g.crawler(id)
		if info.Signer {
			continue
		}
		below := g.below.Obeyed(info.Crawler)
		if c == nil && below == units[0].below {
			continue
		}
		if c == nil {
			c = units[0].class
		}
		add(c, info, below)
	}
	for _, b := range g.below.Groups {
		if b.Name != "*" && g.p.Crawler(b.Name) == 0 && !g.isUsageToken(b.Name) {
			info := newCrawler(policy.Crawler{Token: b.Name})
			g.extra = append(g.extra, info)
			add(units[0].class, info, b)
		}
	}
	return units
}

// fileBelow is what a group of a merged file says, nil for nothing.
type fileBelow struct {
	all   []stated
	sizes map[*policy.Statement]int // as the patterns are written there
	set   solve.Set
}

func statedBelow(b *robotstxt.Group) *fileBelow {
	f := &fileBelow{sizes: map[*policy.Statement]int{}}
	if b == nil {
		return f
	}
	for _, r := range b.Decisive() {
		s := &policy.Statement{Pattern: r.Pattern, Allow: r.Allow, Written: r.Written}
		f.sizes[s] = r.Size
		f.set.Add(r.Pattern, len(f.all))
		f.all = append(f.all, stated{Statement: s})
	}
	return f
}

// at is what the file says about paths that match a pattern and, of its patterns, only those that cover it: the pattern
// that is longer as written decides, and of two equal ones the Allow.
func (f *fileBelow) at(p pathpattern.Pattern) verdict {
	var by *stated
	for _, i := range f.set.Covering(p) {
		if s := &f.all[i]; by == nil || f.wins(s.Statement, by.Statement) {
			by = s
		}
	}
	if by == nil {
		return verdict{}
	}
	return verdict{stated: *by, closes: !by.Allow, own: true}
}

func (f *fileBelow) wins(a, b *policy.Statement) bool {
	x, y := f.sizes[a], f.sizes[b]
	if a.Allow != b.Allow && !pathpattern.Compared(a.Pattern, a.Written, b.Pattern, b.Written) {
		x, y = a.Pattern.Len(), b.Pattern.Len()
	}
	return x > y || x == y && a.Allow && !b.Allow
}

// crawlDelayBelow is the Crawl-delay line of a group, or "".
func crawlDelayBelow(b *robotstxt.Group) string {
	if s := b.CrawlDelay(); s > 0 {
		return "Crawl-delay: " + strconv.FormatFloat(s, 'f', -1, 64)
	}
	return ""
}

// refuse adds to each line of preferences what another file disallows everywhere, because the line
// with the longest path replaces the others. It returns lines for keys without a line for all paths.
func refuse(ours []Line, refused map[string][]string) (more []Line) {
	for _, f := range rights.Vocabularies {
		key, no := f.LineKey(), "="+f.No()
		names := refused[key]
		if len(names) == 0 {
			continue
		}
		everywhere := false
		for i := range ours {
			l := &ours[i]
			if head, value, ok := strings.Cut(l.Text, ": "); ok && head == f.Field {
				path, members := "", value
				if strings.HasPrefix(value, "/") || strings.HasPrefix(value, "*") {
					path, members, _ = strings.Cut(value, " ")
					path += " "
				} else {
					everywhere = true
				}
				l.Text = f.Field + ": " + path + withRefused(members, names, no)
			}
		}
		if !everywhere {
			more = append(more, Line{Text: f.Field + ": " + withRefused("", names, no), key: key, pattern: pathpattern.All})
		}
	}
	return more
}

// withRefused adds disallowed names to a list of preferences.
func withRefused(members string, names []string, no string) string {
	var all []string
	for m := range strings.SplitSeq(members, ", ") {
		if name, _, _ := strings.Cut(m, "="); m != "" && !slices.Contains(names, name) {
			all = append(all, m)
		}
	}
	for _, name := range names {
		all = append(all, name+no)
	}
	return strings.Join(all, ", ")
}
