// SPDX-License-Identifier: Apache-2.0

package robotsserve

import (
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/robotspolicy/caddy-robots-policy/policy"
)

// Merge renders the robots.txt of a policy and a host with another one below it:
// where the policy says nothing to a crawler about a path, the group of the
// other file decides that the crawler would have obeyed. Every crawler that the
// other file names gets a group with what both say. Crawl-delays are taken over
// where the policy states none, and sitemaps are added. What else the other file
// says is left out, and told: a reader could not tell ours from theirs.
func Merge(p *policy.Policy, host string, other []byte, o Options) (*File, []policy.Problem, []Told) {
	below := readForeign(other)
	for _, g := range below.groups {
		for _, l := range g.lines {
			below.tell(l.line, "%q is left out: state it in the policy", l.key+": "+l.value)
		}
	}
	if below.acap {
		below.tell(0, "ACAP records are left out: state them in the policy")
	}
	for _, url := range below.licenses {
		below.tell(0, "the licence %q is left out: state it in the policy", url)
	}
	d, problems := drawOn(p, host, below)
	sitemaps := d.sitemaps(p, host, o)
	for _, s := range below.sitemaps {
		line := "Sitemap: " + s + d.eol
		if !strings.Contains(s, "://") || strings.Contains(string(sitemaps), line) {
			continue
		}
		if len(sitemaps) == 0 {
			sitemaps = []byte(d.eol)
		}
		sitemaps = append(sitemaps, line...)
	}
	body := slices.Concat(d.head, sitemaps, d.tail)
	if len(body) > MaxFile {
		problems = append(problems, tooLarge(p, len(body)))
	}
	return &File{Body: body, ETag: d.etag(sitemaps), Losses: d.losses}, problems, below.told
}

// theirs is the comment of a group that has rules of the file below.
const theirs = "robots.txt of the site"

// unit is crawlers to which the policy and the file below say the same.
type unit struct {
	class *policy.Class
	infos []policy.Crawler // none: everybody
	below *foreignGroup
}

// units lists those of a host. The first is everybody's.
func (g *grouping) units(classes []policy.Class) []unit {
	if g.below == nil {
		units := make([]unit, len(classes))
		for i := range classes {
			units[i] = unit{class: &classes[i]}
			for _, id := range classes[i].Crawlers {
				units[i].infos = append(units[i].infos, g.p.CrawlerInfo(id))
			}
		}
		return units
	}
	units := []unit{{class: &classes[0], below: g.below.byToken["*"]}}
	classOf := map[policy.CrawlerID]*policy.Class{}
	for i := range classes {
		for _, id := range classes[i].Crawlers {
			classOf[id] = &classes[i]
		}
	}
	type key struct {
		class *policy.Class
		below *foreignGroup
	}
	at := map[key]int{}
	add := func(c *policy.Class, info policy.Crawler, below *foreignGroup) {
		k := key{c, below}
		n, ok := at[k]
		if !ok {
			n = len(units)
			at[k] = n
			units = append(units, unit{class: c, below: below})
		}
		units[n].infos = append(units[n].infos, info)
	}
	for id, info := range g.p.Crawlers {
		c := classOf[id]
		below := g.below.obeyed(info)
		if c == nil && below == units[0].below {
			continue
		}
		if c == nil {
			c = units[0].class
		}
		add(c, info, below)
	}
	for _, b := range g.below.groups {
		for _, t := range b.tokens {
			if t != "*" && g.p.Crawler(t) == 0 {
				info := policy.Crawler{Token: t}
				g.extra = append(g.extra, info)
				add(units[0].class, info, b)
			}
		}
	}
	return units
}

// obeyed is the group that a crawler obeys, nil for none.
func (f *foreign) obeyed(info policy.Crawler) *foreignGroup {
	for _, t := range slices.Concat([]string{info.Token}, info.Follows) {
		if g := f.byToken[strings.ToLower(t)]; g != nil {
			return g
		}
	}
	if info.IgnoresStar {
		return nil
	}
	return f.byToken["*"]
}

// layer is what a group says below all that a policy does. A tie allows, as in
// the tier for everyone.
func (b *foreignGroup) layer() policy.Layer {
	rule := &policy.Rule{Name: theirs}
	l := policy.Layer{Tier: policy.TierEveryone, Usage: policy.Crawl}
	for _, r := range b.rules {
		rule.Statements = append(rule.Statements, policy.Statement{Allow: r.allow, Usage: policy.Crawl, Pattern: r.pattern})
	}
	for i := range rule.Statements {
		l.Statements = append(l.Statements, policy.Ref{Rule: rule, Statement: &rule.Statements[i]})
	}
	return l
}

// maxDelay is the longest crawl-delay that is taken for meant.
const maxDelay = 24 * time.Hour

// crawlDelay is the group's own, if it is a number.
func (b *foreignGroup) crawlDelay() string {
	s, err := strconv.ParseFloat(b.delay, 64)
	if err != nil || !(s > 0) || s > maxDelay.Seconds() {
		return ""
	}
	return "Crawl-delay: " + strconv.FormatFloat(s, 'f', -1, 64)
}
