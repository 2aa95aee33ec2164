// SPDX-License-Identifier: Apache-2.0

package robotsserve

import (
	"errors"
	"slices"
	"strings"

	"github.com/robotspolicy/caddy-robots-policy/crawlers"
	"github.com/robotspolicy/caddy-robots-policy/pathpattern"
	"github.com/robotspolicy/caddy-robots-policy/policy"
	"github.com/robotspolicy/caddy-robots-policy/rights"
	"github.com/robotspolicy/caddy-robots-policy/robotstxt"
)

// Merge renders the robots.txt of a policy for a host, merged with the site's own robots.txt file, which is the
// parameter other. Where the policy does not state whether a crawler may crawl a path, the decision comes from the
// group that the crawler obeys in the site's file. Every crawler that the site's file names gets a group with the lines
// of the policy and of the site's file. The lines of the site's file follow a comment. Crawl-delays, preferences and
// directives for applications are added where the policy states none. Sitemaps are always added. The Notes name the
// lines that are left out. If a problem is an error, the result must not be published.
func Merge(p *policy.Policy, host string, other *robotstxt.File, o Options) (*File, []policy.Problem, []robotstxt.Note) {
	l, d, problems, notes := drawMerged(p, host, other)
	o.Below = other
	v, more := d.vary(p, host, o)
	f, problems := d.file(l.p, v, append(problems, more...))
	return f, problems, notes
}

const (
	maxDrawings = 3       // maximum number of attempts to make a merged file that fits
	mergeSlack  = 4 << 10 // maximum error of the estimated size of the groups, in bytes
)

// drawMerged renders the robots.txt of a policy merged with the file other. A group that does not fit, or would take
// too long, disallows everything.
func drawMerged(p *policy.Policy, host string, other *robotstxt.File) (l *layout, d *drawing, problems []policy.Problem, notes []robotstxt.Note) {
	below := other.Below(p)
	l = newLayout(below.Policy)
	d, problems = l.fit(host, below.File)
	if !below.Closed && !d.fits(l.p, problems) {
		below = other.BelowClosed(p)
		l = newLayout(below.Policy)
		d, problems = l.fit(host, below.File)
	}
	if below.Closed {
		problems = append(problems, policy.NewProblem(policy.Warning, "merge-too-large", policy.Pos{},
			"the merged robots.txt would be larger than the %d KiB that crawlers read, or merging would take too long. So it lacks the Allow lines of the site's file, and %d of its Disallow lines for everyone; shorten that file, or import it", robotstxt.MaxSize>>10, below.Left))
	}
	if d.shut > 0 {
		problems = append(problems, policy.NewProblem(policy.Warning, "merge-too-large", policy.Pos{},
			"the robots.txt of the site has too many groups. With them, the merged robots.txt would be larger than the %d KiB that crawlers read, or merging would take too long. So the merged file disallows everything for %d crawlers that the site's file names; shorten that file, or import it into the policy", robotstxt.MaxSize>>10, d.shut))
	}
	if errors.Is(other.Unreadable(), robotstxt.ErrUTF16) && disallows(other) {
		problems = append(problems, policy.NewProblem(policy.Warning, "merge-new-encoding", policy.Pos{},
			"the site's robots.txt is in UTF-16, which crawlers cannot read, so they could fetch all paths that it disallows. The merged robots.txt is in UTF-8, so it now disallows these paths; to keep these paths allowed, delete the Disallow lines from the site's file"))
	}
	return l, d, problems, below.Notes()
}

// disallows reports whether a file has an effective Disallow line.
func disallows(f *robotstxt.File) bool {
	return slices.ContainsFunc(f.Groups, func(g *robotstxt.Group) bool {
		return slices.ContainsFunc(g.Decisive(), func(r robotstxt.Rule) bool { return !r.Allow })
	})
}

// AboutMerge reports whether a problem of Merge is about combining the policy with the site's file, and not about the
// policy alone.
func AboutMerge(p policy.Problem) bool { return strings.HasPrefix(p.Code, "merge-") }

// fit renders a policy merged with the site's own file, below. If the result is larger than crawlers read, fit tries
// again with less room for groups.
func (l *layout) fit(host string, below *robotstxt.File) (*drawing, []policy.Problem) {
	d, problems := l.draw(host, below, robotstxt.MaxSize)
	for n, room := 1, robotstxt.MaxSize; n < maxDrawings; n++ {
		over := d.least(l.p) - robotstxt.MaxSize
		if room -= over + mergeSlack; over <= 0 || room <= 0 {
			break
		}
		d, problems = l.draw(host, below, room)
	}
	return d, problems
}

func (d *drawing) fits(p *policy.Policy, problems []policy.Problem) bool {
	return d.least(p) <= robotstxt.MaxSize && !slices.ContainsFunc(problems, func(p policy.Problem) bool { return p.Severity == policy.Error })
}

// addSitemaps adds the sitemaps of the site's file other after the policy's sitemaps. It leaves out sitemaps that do
// not fit, and reports their number.
func addSitemaps(other *robotstxt.File, d *drawing, v *varying, host string, o Options) (problems []policy.Problem) {
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
	for _, s := range fullAddresses(other.Sitemaps(), host, o) {
		if !there[s] && add(s, comment) {
			comment = ""
		}
	}
	v.sitemaps = w.text
	if left > 0 {
		problems = append(problems, policy.NewProblem(policy.Warning, "merge-too-large", policy.Pos{},
			"the merged robots.txt would be larger than the %d KiB that crawlers read, so %d of the site's sitemaps are left out; list them in a sitemap index", robotstxt.MaxSize>>10, left))
	}
	return problems
}

// theirsComment precedes the lines of the site's own file in a merged file. oursComment precedes lines of the policy
// that come after the lines of the site's own file.
const (
	theirsComment = "# from the robots.txt of the site"
	oursComment   = "# from the policy"
)

// unit is a set of crawlers with the same rules.
type unit struct {
	class *policy.Class
	infos []*crawler // empty for everyone

	// alike holds the classes of further crawlers, whose names Google's parser reads as the names in infos. It is only
	// set in a merged file, and only for names that the site's own file has.
	alike []*policy.Class

	control *policy.ControlToken // set if the crawler is a control token and training is disallowed
}

// units lists the units of a host, everyone first.
func (g *grouping) units(classes []policy.Class) (units []unit) {
	alike := g.alike(classes)
	for i := range classes {
		c := &classes[i]
		all := []unit{{class: c}}
		at := map[string]int{} // for each name that Google's parser reads, the index of its unit in all
		for _, id := range c.Crawlers {
			info, n := g.crawler(id), 0
			if others := g.others(alike, info, c); len(others) > 0 {
				read := readAs(info)
				if n = at[read]; n == 0 {
					n = len(all)
					own := *c
					own.Crawlers = nil
					at[read], all = n, append(all, unit{class: &own, alike: others})
				}
				all[n].class.Crawlers = append(all[n].class.Crawlers, id)
			}
			all[n].infos = append(all[n].infos, info)
		}
		if i > 0 && all[0].infos == nil {
			all = all[1:]
		}
		units = append(units, all...)
	}
	return units
}

// others returns the classes of the policy's crawlers whose names are the same as the name of info for Google's parser.
// It omits own, which is the class of info. It returns nil if the site's own file has no group for info.
func (g *grouping) others(alike map[string][]*policy.Class, info *crawler, own *policy.Class) (others []*policy.Class) {
	if alike == nil || g.below.Group(info.Token) == nil {
		return nil
	}
	for _, c := range alike[readAs(info)] {
		if c != own {
			others = append(others, c)
		}
	}
	return others
}

// alike maps each name that Google's parser reads to the classes of the policy's crawlers with this name. It returns
// nil if no file is merged. Google's parser reads "SISTRIX Crawler" as "sistrix", and combines the groups of these two
// names. So if the site's own file has a group for "sistrix", this group must not allow what the policy disallows for
// the SISTRIX Crawler.
func (g *grouping) alike(classes []policy.Class) map[string][]*policy.Class {
	if g.below == nil {
		return nil
	}
	all := map[string][]*policy.Class{}
	for i := range classes {
		for _, id := range classes[i].Crawlers {
			if read := readAs(g.crawler(id)); read != "" && !g.p.OnlyFallback(id) && !slices.Contains(all[read], &classes[i]) {
				all[read] = append(all[read], &classes[i])
			}
		}
	}
	return all
}

func readAs(c *crawler) string { return crawlers.ReadAs(c.lower) }

// refusedBy returns the usages that the policy disallows for at least one of the classes on at least one path. The keys
// of the result are the keys of the lines in robots.txt that name usages.
func (g *grouping) refusedBy(classes []*policy.Class) map[string][]string {
	refused := map[string][]string{}
	for _, f := range rights.Vocabularies {
		for _, c := range classes {
			for member := range strings.SplitSeq(f.StrictLine(rights.NewClient(g.p, c, g.host, "")), ", ") {
				if name, no := strings.CutSuffix(member, "="+f.No()); no && f.On(&g.p.Spec().Publish) && !slices.Contains(refused[f.LineKey()], name) {
					refused[f.LineKey()] = append(refused[f.LineKey()], name)
				}
			}
		}
	}
	return refused
}

// obeyedBelow returns the group of the site's own file that a class obeys, or nil.
func (g *grouping) obeyedBelow(c *policy.Class) *robotstxt.Group {
	switch {
	case g.below == nil:
		return nil
	case len(c.Crawlers) == 0:
		return g.below.Group("*")
	}
	return g.below.Obeyed(g.p.CrawlerInfo(c.Crawlers[0]))
}

// refuse changes the lines of preferences about usages in ours, so that they disallow the usages in refused. The keys
// of refused are keys of lines. Every line has to change, because the line with the longest path replaces all others.
// For each key in refused, ours needs a line for all paths. refuse returns the missing lines.
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
				if startsWithPath(value) {
					path, members, _ = strings.Cut(value, " ")
					path += " "
				} else {
					everywhere = true
				}
				l.Text = f.Field + ": " + path + withRefused(members, names, no)
			}
		}
		if !everywhere {
			more = append(more, Line{Text: f.Field + ": " + withRefused("", names, no), key: f.Field, pattern: pathpattern.All})
		}
	}
	return more
}

// withRefused returns a list of preferences, such as "train-ai=n, search=y". It contains the preferences of the list
// members, but disallows all preferences whose names are in names. no is the ending of a disallowing preference, such
// as "=n".
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
