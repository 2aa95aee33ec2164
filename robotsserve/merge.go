// SPDX-License-Identifier: Apache-2.0

package robotsserve

import (
	"crypto/sha256"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/robotspolicy/caddy-robots-policy/pathpattern"
	"github.com/robotspolicy/caddy-robots-policy/policy"
)

// Other is somebody else's robots.txt, read to be merged below a policy. It does
// not change and may be shared.
type Other struct {
	file *foreign
	sum  [sha256.Size]byte // of what it says in groups
}

// ParseOther reads a robots.txt as leniently as Import does, up to MaxFile.
func ParseOther(data []byte) *Other {
	x := &Other{file: readForeign(data, mayBeName)}
	h := sha256.New()
	fmt.Fprintf(h, "%v", x.file.over)
	for _, g := range x.file.groups {
		fmt.Fprintf(h, "%q %q", g.tokens, g.delay)
		for _, r := range g.rules {
			fmt.Fprintf(h, "%v %d %q", r.allow, r.size, r.pattern.String())
		}
		for _, l := range g.lines {
			fmt.Fprintf(h, "%q %q", l.key, l.value)
		}
	}
	h.Sum(x.sum[:0])
	return x
}

// saysNothing reports whether nothing of the file would be merged.
func (x *Other) saysNothing() bool { return len(x.file.groups)+len(x.file.sitemaps) == 0 }

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
func Merge(p *policy.Policy, host string, other *Other, o Options) (*File, []policy.Problem, []Note) {
	d, problems, notes := newLayout(p).drawMerged(host, other)
	v := d.vary(p, host, o)
	problems = append(problems, other.addSitemaps(d, &v)...)
	body := slices.Concat(v.front, d.head, v.sitemaps, d.tail)
	if len(body) > MaxFile {
		problems = append(problems, tooLarge(p, len(body)))
	}
	return &File{Body: body, ETag: d.etag(v), Losses: d.losses, drawn: d}, problems, notes
}

// maxDrawings bounds how often a merged file is made that comes out too large.
const maxDrawings = 3

// mergeSlack is for what the sizes of groups are estimated too low.
const mergeSlack = 4 << 10

// drawMerged is draw with another file below. What has no room, or would take too long,
// is shut: robots.txt disallows everything to those crawlers.
func (l *layout) drawMerged(host string, other *Other) (*drawing, []policy.Problem, []Note) {
	d, problems := l.draw(host, other.file, MaxFile)
	for n, room := 1, MaxFile; n < maxDrawings; n++ {
		over := d.least(l.p) - MaxFile
		if room -= over + mergeSlack; over <= 0 || room <= 0 {
			break
		}
		d, problems = l.draw(host, other.file, room)
	}
	if d.shut > 0 {
		problems = append(problems, policy.Problem{
			Severity: policy.Warning, Code: "merge-too-large",
			Message: fmt.Sprintf("the robots.txt of the site has too many groups: with the policy they come to more than the %d KiB that crawlers read, or take too long; robots.txt disallows everything to %d of its crawlers; shorten it, or import it into the policy", MaxFile>>10, d.shut),
		})
	}
	if other.file.over {
		problems = append(problems, policy.Problem{
			Severity: policy.Error, Code: "not-merged",
			Message: "the robots.txt of the site has so many lines for so many crawlers that they are not all read; shorten it, or import it into the policy",
		})
	}
	return d, problems, other.leftOut(l.speaks)
}

// leftOut notes what a merged file lacks.
func (x *Other) leftOut(policy spokenOf) []Note {
	notes := slices.Clone(x.file.notes)
	for _, g := range x.file.groups {
		for _, l := range g.lines {
			if _, why := l.carried(policy); why != "" {
				notes = append(notes, Note{Line: l.line, Message: fmt.Sprintf("%q is left out: %s", l.key+": "+l.value, why)})
			}
		}
	}
	for _, g := range x.file.purposes {
		notes = append(notes, Note{Line: g.line, Message: fmt.Sprintf("what is said to the purpose %q is left out: state it in the policy", g.tokens[0])})
	}
	if x.file.acap {
		notes = append(notes, Note{Message: "ACAP records are left out: state them in the policy"})
	}
	for _, l := range x.file.licenses {
		notes = append(notes, Note{Line: l.line, Message: fmt.Sprintf("the licence %q is left out: state it in the policy", l.value)})
	}
	slices.SortStableFunc(notes, func(a, b Note) int { return a.Line - b.Line })
	return slices.Compact(notes) // a line of several crawlers is one
}

// addSitemaps adds the file's sitemaps to those of the policy, of both as many as fit:
// they are hints, groups are not.
func (x *Other) addSitemaps(d *drawing, v *varying) (problems []policy.Problem) {
	w := writer{eol: d.eol}
	room := MaxFile - len(v.front) - len(d.head) - len(d.tail)
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
	for _, l := range x.file.sitemaps {
		if s := l.value; !there[s] && strings.Contains(s, "://") && printable(s) && len(s) <= maxLine/2 {
			if add(s, comment) {
				comment = ""
			}
		}
	}
	v.sitemaps = w.text
	if left > 0 {
		problems = append(problems, policy.Problem{
			Severity: policy.Warning, Code: "merge-too-large",
			Message: fmt.Sprintf("with the robots.txt of the site, the file would be larger than the %d KiB that crawlers read; %d sitemaps are left out; list them in a sitemap index", MaxFile>>10, left),
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

// spokenOf says which kinds of extensions a policy speaks of.
type spokenOf struct{ preferences, directives bool }

func spokenOfBy(p *policy.Policy) (s spokenOf) {
	publish := &p.Spec().Publish
	s.preferences = publish.ContentSignal != policy.Off && publish.ContentSignalUse != ""
	rules := p.Spec().Rules
	for i := range rules {
		s.directives = s.directives || len(rules[i].AppDirectives) > 0
		for j := range rules[i].Statements {
			u := rules[i].Statements[j].Usage
			s.preferences = s.preferences || !u.IsACAP() || u == policy.Other // which speaks of what no other rule speaks of
		}
	}
	return s
}

// carried is a line of an extension as it is carried over, or why it is not. The
// longest path of such lines replaces all that shorter ones say, so that those
// of two files cannot be mixed.
func (l foreignLine) carried(policy spokenOf) (line, why string) {
	key := map[string]string{"app-directives": "App-Directives", "content-usage": "Content-Usage", "content-signal": "Content-Signal"}[l.key]
	line = key + ": " + l.value
	switch {
	case key == "":
		return "", "state it in the policy"
	case l.key == "app-directives" && policy.directives:
		return "", "the policy states app-directives, and where a line of them has a longer path it would replace the policy's"
	case l.key != "app-directives" && policy.preferences:
		return "", "the policy states preferences about AI or search, and where a line of them has a longer path it would replace the policy's"
	case !printable(l.value) || len(line) > maxLine:
		return "", "it is not text, or is longer than crawlers read"
	}
	return line, ""
}

// extensions are the lines of extensions that are carried over.
func (b *foreignGroup) extensions(policy spokenOf) (lines []string) {
	for _, l := range b.lines {
		if line, why := l.carried(policy); why == "" {
			lines = append(lines, line)
		}
	}
	return lines
}

// printable reports whether a text of another's can stand in our file.
func printable(s string) bool {
	return utf8.ValidString(s) && !strings.ContainsFunc(s, func(r rune) bool {
		return unicode.IsControl(r) && r != '\t' || r == '\u2028' || r == '\u2029'
	})
}

// unit is crawlers to which the policy and the file below say the same.
type unit struct {
	class *policy.Class
	infos []*crawler // none: everybody
	below *foreignGroup

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
	add := func(c *policy.Class, info *crawler, below *foreignGroup) {
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
			if t != "*" && g.p.Crawler(t) == 0 && !g.isUsageToken(t) {
				info := newCrawler(policy.Crawler{Token: t})
				g.extra = append(g.extra, info)
				add(units[0].class, info, b)
			}
		}
	}
	return units
}

// obeyed is the group that a crawler obeys, nil for none.
func (f *foreign) obeyed(info *crawler) *foreignGroup {
	if g := f.byToken[info.lower]; g != nil {
		return g
	}
	for _, t := range info.Follows {
		if g := f.byToken[strings.ToLower(t)]; g != nil {
			return g
		}
	}
	if info.IgnoresStar {
		return nil
	}
	return f.byToken["*"]
}

// stated is what a group says of paths of which the policy says nothing.
func (b *foreignGroup) stated() (all []stated) {
	for _, r := range b.decisive() {
		all = append(all, stated{pattern: r.pattern, allow: r.allow, size: r.size})
	}
	return all
}

// decisive is the rules of a group without those that another of the same
// pattern beats: a longer one, as it may be written, or an Allow as long.
func (b *foreignGroup) decisive() []foreignRule {
	at := map[pathpattern.Pattern]int{}
	var rules []foreignRule
	for _, r := range b.rules {
		i, ok := at[r.pattern]
		switch {
		case !ok:
			at[r.pattern] = len(rules)
			rules = append(rules, r)
		case r.size > rules[i].size || r.size == rules[i].size && r.allow && !rules[i].allow:
			rules[i] = r
		}
	}
	return rules
}

// maxDelay is the longest crawl-delay that is taken for meant.
const maxDelay = 24 * time.Hour

// seconds is the group's crawl-delay, 0 for none that can be meant.
func (b *foreignGroup) seconds() float64 {
	s, err := strconv.ParseFloat(b.delay, 64)
	if err != nil || !(s > 0) || s > maxDelay.Seconds() {
		return 0
	}
	return s
}

// crawlDelay is the line of the group's own, or "".
func (b *foreignGroup) crawlDelay() string {
	if s := b.seconds(); s > 0 {
		return "Crawl-delay: " + strconv.FormatFloat(s, 'f', -1, 64)
	}
	return ""
}
