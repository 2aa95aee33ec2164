// SPDX-License-Identifier: Apache-2.0

package robotstxt

import (
	"slices"
	"strings"

	"github.com/robotspolicy/caddy-robots-policy/crawlers"
	"github.com/robotspolicy/caddy-robots-policy/internal/leaf/english"
	"github.com/robotspolicy/caddy-robots-policy/policy"
)

// Below holds a policy whose fallback is the site's own robots.txt.
type Below struct {
	Policy *policy.Policy // the policy, with the lines of the file as its fallback
	File   *File          // a copy without the groups that the merge leaves out, with notes about unused lines
	Closed bool           // the file was too large, so File only has Disallow lines
	Left   int            // number of Disallow lines of the group of "*" that File lacks
}

// Below makes the file the fallback of a policy. Where the policy does not state whether a crawler may crawl a path,
// the group of the file that the crawler obeys decides (see [policy.Policy.WithFallback]). Below converts the lines to
// rules in the same way as Import, which does not allow a path that the file disallows.
func (f *File) Below(p *policy.Policy) *Below {
	if f.crawlWeight() > maxImported {
		return f.BelowClosed(p)
	}
	return f.over(p)
}

// Notes returns notes about lines of the file that have no effect in the policy, and about lines whose effect in the
// policy differs from their effect in the file.
func (b *Below) Notes() []Note { return b.File.LeftOut(StatedBy(b.Policy)) }

// BelowClosed is like Below, but for a file that is too large to be merged completely. It shortens the file, and
// leaves out all Allow lines.
func (f *File) BelowClosed(p *policy.Policy) *Below {
	closing, left := f.closing()
	below := closing.over(p)
	below.Closed, below.Left = true, left
	return below
}

// over converts the file to rules that let each crawler crawl the same paths as the file. The rules are for the
// crawlers of the policy, and for the crawlers that only the file names. The File of the result is a copy without the
// groups that the merge leaves out.
func (f *File) over(p *policy.Policy) *Below {
	im := f.importerFor(p)
	im.below = true
	im.f = im.f.withSignals()
	im.dropGroups(func(g *Group) bool {
		if !slices.ContainsFunc(p.Spec().Publish.UsageTokens[:], func(token string) bool { return strings.EqualFold(token, g.Name) }) {
			return false
		}
		im.f.note(g.number, "the merge leaves out the group %q, because the policy uses this name as a token for a usage (usage-tokens); write the group's rules in the policy", g.Name)
		return true
	})
	im.groups()
	im.noteReadAs()
	for i := range im.spec.Rules {
		im.spec.Rules[i].FallbackFile = f.Name
	}
	return &Below{Policy: p.WithFallback(im.spec.Rules), File: im.f}
}

// importerFor returns an importer that converts a copy of the file for the crawlers of a policy.
func (f *File) importerFor(p *policy.Policy) *importer {
	im := &importer{f: f.withTop(), spec: &policy.Spec{}, known: map[string]bool{}, comments: map[int]string{}}
	im.f.notes = slices.Clone(f.notes)
	for _, c := range p.Crawlers {
		if !c.Signer {
			im.crawlers = append(im.crawlers, c)
			im.known[strings.ToLower(c.Token)] = true
		}
	}
	return im
}

// withGroups returns a copy of the file. In the copy, each group is replaced with the group that the function replace
// returns for it.
func (f *File) withGroups(replace func(*Group) *Group) *File {
	c := *f
	c.Groups, c.byName = nil, map[string]*Group{}
	for _, g := range f.Groups {
		c.add(replace(g))
	}
	return &c
}

// dropGroups removes each group if drop returns true for it.
func (im *importer) dropGroups(drop func(*Group) bool) {
	im.f.Groups = slices.DeleteFunc(im.f.Groups, func(g *Group) bool {
		if !drop(g) {
			return false
		}
		delete(im.f.byName, strings.ToLower(g.Name))
		return true
	})
}

// noteReadAs adds notes about groups that Google's parser combines with the group of a crawler in the catalog, although
// the catalog does not have their name. For example, the parser reads the name "GPTBot2" as "GPTBot", and combines the
// groups of both names. So the group of "GPTBot2" must not allow a path that the policy disallows for "GPTBot".
func (im *importer) noteReadAs() {
	of := map[string][]string{}
	for _, c := range im.crawlers {
		of[readAs(c.Token)] = append(of[readAs(c.Token)], c.Token)
	}
	for _, g := range im.f.Groups {
		if read := readAs(g.Name); read != "" && of[read] != nil && !im.known[strings.ToLower(g.Name)] {
			im.f.note(g.number, "Google's parser reads %q and %s as the same name. So in the server's robots.txt, this group also disallows everything that the policy disallows for %[2]s", g.Name, english.Some(of[read], 5))
		}
	}
}

// readAs returns the part of a name that Google's parser reads, in lower case.
func readAs(name string) string { return strings.ToLower(crawlers.ReadAs(name)) }

const (
	maxClosing      = 1000    // maximum number of Disallow lines in a group, if the file is too large
	maxClosingLines = 1 << 16 // maximum number of lines in all groups of such a file
)

// closing returns a shorter file without Allow lines. The group of "*" keeps its first Disallow lines. Every other
// group with Disallow lines disallows everything if it has too many of them, or if the whole file has too many lines.
// left is the number of Disallow lines that closing left out of the group of "*".
func (f *File) closing() (closing *File, left int) {
	closing = f.withGroups(func(g *Group) *Group {
		h := *g
		h.rules = slices.DeleteFunc(slices.Clone(g.rules), func(r Rule) bool { return r.Allow })
		switch {
		case g.Name == "*" && len(h.rules) > maxClosing:
			left, h.rules = len(h.rules)-maxClosing, h.rules[:maxClosing]
		case g.Name != "*" && (len(h.rules) > maxClosing || len(h.rules) > 0 && f.lines > maxClosingLines):
			h.rules = shut(g.number)
		}
		return &h
	})
	return closing, left
}
