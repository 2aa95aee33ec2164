// SPDX-License-Identifier: Apache-2.0

package robotsserve

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/robotspolicy/caddy-robots-policy/policy"
	"github.com/robotspolicy/caddy-robots-policy/robotstxt"
)

// Merge renders the robots.txt of a policy and a host with another one below it:
// where the policy says nothing to a crawler about a path, the group of the
// other file decides that the crawler would have obeyed. Every crawler that the
// other file names gets a group with what both say, in which a comment stands
// before the other file's lines. Crawl-delays are taken over where the policy
// states none, Content-Usage and Content-Signal where it states no preference
// about AI and search, App-Directives where it has none, and sitemaps are added.
// What else the other file says is left out and noted: a reader could not tell
// ours from theirs. With a problem that is an error the result must not be
// published.
func Merge(p *policy.Policy, host string, other *robotstxt.File, o Options) (*File, []policy.Problem, []robotstxt.Note) {
	d, problems, notes := newLayout(p).drawMerged(host, o.Short, other)
	v := d.vary(p, host, o)
	problems = append(problems, addSitemaps(other, d, &v)...)
	f, problems := d.file(p, v, problems)
	return f, problems, notes
}

// maxDrawings bounds how often a merged file is made that comes out too large.
const maxDrawings = 3

// mergeSlack is for what the sizes of groups are estimated too low.
const mergeSlack = 4 << 10

// mostClosing is how many lines that close are taken over from a file that has no room.
const mostClosing = 1000

// drawMerged is draw with another file below. What has no room, or would take too long,
// is shut: robots.txt disallows everything to those crawlers.
func (l *layout) drawMerged(host string, short bool, other *robotstxt.File) (*drawing, []policy.Problem, []robotstxt.Note) {
	d, problems := l.draw(host, short, other, robotstxt.MaxSize)
	for n, room := 1, robotstxt.MaxSize; n < maxDrawings; n++ {
		d.theirs = other.Preamble()
		over := d.least(l.p) - robotstxt.MaxSize
		if room -= over + mergeSlack; over <= 0 || room <= 0 {
			break
		}
		d, problems = l.draw(host, short, other, room)
	}
	d.theirs = other.Preamble()
	if d.least(l.p) > robotstxt.MaxSize || slices.ContainsFunc(problems, func(p policy.Problem) bool { return p.Severity == policy.Error }) {
		closing, left := other.Closing(mostClosing)
		d, problems = l.draw(host, short, closing, robotstxt.MaxSize)
		problems = append(problems, policy.Problem{
			Severity: policy.Warning, Code: "merge-too-large",
			Message: fmt.Sprintf("with the robots.txt of the site, the file would be larger than the %d KiB that crawlers read, or take too long: its Allow lines are left out, and %d Disallow lines for everyone; shorten it, or import it into the policy", robotstxt.MaxSize>>10, left),
		})
	}
	if d.shut > 0 {
		problems = append(problems, policy.Problem{
			Severity: policy.Warning, Code: "merge-too-large",
			Message: fmt.Sprintf("the robots.txt of the site has too many groups: with the policy they come to more than the %d KiB that crawlers read, or take too long; robots.txt disallows everything to %d of its crawlers; shorten it, or import it into the policy", robotstxt.MaxSize>>10, d.shut),
		})
	}
	return d, problems, other.LeftOut(l.speaks)
}

// addSitemaps adds the file's sitemaps to those of the policy, of both as many as fit:
// they are hints, groups are not.
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
		problems = append(problems, policy.Problem{
			Severity: policy.Warning, Code: "merge-too-large",
			Message: fmt.Sprintf("with the robots.txt of the site, the file would be larger than the %d KiB that crawlers read; %d sitemaps are left out; list them in a sitemap index", robotstxt.MaxSize>>10, left),
		})
	}
	return problems
}

// The comments that stand before the lines of the file below, and before those of
// the policy where they follow.
const (
	theirsComment = "# from the robots.txt of the site"
	oursComment   = "# from the policy"
)

// statedBy says which extensions of groups a policy uses.
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

// unit is crawlers to which the policy and the file below say the same.
type unit struct {
	class *policy.Class
	infos []*crawler // none: everybody
	below *robotstxt.Group

	control bool // infos are control tokens, and training is disallowed
}

// units lists those of a host. The first is everybody's.
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

// statedBelow is what a group says of paths of which the policy says nothing.
func statedBelow(b *robotstxt.Group) (all []stated) {
	for _, r := range b.Decisive() {
		all = append(all, stated{pattern: r.Pattern, allow: r.Allow, written: r.Written, size: r.Size})
	}
	return all
}

// crawlDelayBelow is the Crawl-delay line of a group, or "".
func crawlDelayBelow(b *robotstxt.Group) string {
	if s := b.CrawlDelay(); s > 0 {
		return "Crawl-delay: " + strconv.FormatFloat(s, 'f', -1, 64)
	}
	return ""
}
