// SPDX-License-Identifier: Apache-2.0

package robotstxt

import (
	"slices"
	"strings"

	"github.com/robotspolicy/caddy-robots-policy/policy"
)

// Below is a policy with a site's own robots.txt as its fallback.
type Below struct {
	Policy *policy.Policy // the policy, with the lines of the file as its fallback
	File   *File          // the file in the form that is used, with notes about unused lines
	Closed bool           // the file was too large, so File only has Disallow lines
	Left   int            // number of Disallow lines for everyone that File lacks
}

// Below makes the file the fallback of a policy. Where the policy does not state whether a crawler may crawl a path,
// the group of the file that the crawler obeys decides (see [policy.Policy.WithFallback]). Below reads the lines in the
// same way as Import, so a path that the file disallows is never allowed by mistake.
func (f *File) Below(p *policy.Policy) *Below {
	if f.crawlWeight() > maxImported {
		return f.BelowClosed(p)
	}
	rules, read := f.fallback(p)
	return &Below{Policy: p.WithFallback(rules), File: read}
}

// Notes returns notes on the lines of the file that the policy does not take over, or reads differently.
func (b *Below) Notes() []Note { return b.File.LeftOut(StatedBy(b.Policy)) }

// BelowClosed is like Below, but uses a shorter file without Allow lines.
func (f *File) BelowClosed(p *policy.Policy) *Below {
	closing, left := f.closing()
	rules, read := closing.fallback(p)
	return &Below{Policy: p.WithFallback(rules), File: read, Closed: true, Left: left}
}

// fallback converts the file to rules. They let each crawler crawl the same paths as the file. The rules are for the
// crawlers of a policy, and for crawlers that only the file names. fallback also returns a copy of the file without the
// groups that it did not convert.
func (f *File) fallback(p *policy.Policy) ([]policy.Rule, *File) {
	own := f.withGroups(func(g *Group) *Group {
		clone := *g
		return &clone
	})
	own.notes = slices.Clone(f.notes)
	im := importer{f: own, spec: &policy.Spec{}, known: map[string]bool{}, comments: map[int]string{}, below: true}
	for _, c := range p.Crawlers {
		if !c.Signer {
			im.crawlers = append(im.crawlers, c)
			im.known[strings.ToLower(c.Token)] = true
		}
	}
	im.dropGroups(func(g *Group) bool {
		if !slices.ContainsFunc(p.Spec().Publish.UsageTokens[:], func(token string) bool { return strings.EqualFold(token, g.Name) }) {
			return false
		}
		im.f.note(g.number, "the group %q is left out, because the policy publishes this name for a usage; write the rule in the policy", g.Name)
		return true
	})
	im.joinCutNames()
	im.groups()
	return im.spec.Rules, own
}

// withGroups returns a copy of the file in which each group is replaced.
func (f *File) withGroups(replace func(*Group) *Group) *File {
	c := *f
	c.Groups, c.byName = nil, map[string]*Group{}
	for _, g := range f.Groups {
		g = replace(g)
		c.Groups = append(c.Groups, g)
		c.byName[strings.ToLower(g.Name)] = g
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

// joinCutNames leaves out groups whose names Google's parser cuts to the name of a crawler in the catalog. Google's
// parser would join them with the group that the policy writes for that crawler. It reads "sistrix" in "SISTRIX
// Crawler", and "GPTBot" in "GPTBot2". If the file has a group for that crawler, the group gets the Disallow lines of
// the removed groups. Otherwise, a group for the crawler's first word becomes the crawler's group.
func (im *importer) joinCutNames() {
	of := map[string]policy.Crawler{}
	for _, c := range im.crawlers {
		if cut := cutName(c.Token); cut != "" && !im.known[cut] || strings.EqualFold(cut, c.Token) {
			of[cut] = c
		}
	}
	var adopted []*Group
	im.dropGroups(func(g *Group) bool {
		cut := cutName(g.Name)
		c, ok := of[cut]
		if !ok || im.known[strings.ToLower(g.Name)] {
			return false
		}
		im.f.note(g.number, "Google's parser reads %q as the name of a crawler in the catalog, so this group is left out; its Disallow lines apply to that crawler", g.Name)
		own := im.f.Group(c.Token)
		switch {
		case own != nil:
			own.rules = append(slices.Clip(own.rules), slices.DeleteFunc(slices.Clone(g.rules), func(r Rule) bool { return r.Allow })...)
		case strings.EqualFold(g.Name, cut):
			named := *g
			own, named.Name = &named, c.Token
			im.f.byName[strings.ToLower(c.Token)] = own
			adopted = append(adopted, own)
		}
		return true
	})
	im.f.Groups = append(im.f.Groups, adopted...)
}

// cutName returns the part of a name that Google's parser reads, in lower case.
func cutName(name string) string {
	return strings.ToLower(name[:len(name)-len(strings.TrimLeft(name, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ-_"))])
}

const (
	maxClosing      = 1000    // maximum number of Disallow lines in a group, if the file is too large
	maxClosingLines = 1 << 16 // maximum number of lines in all groups of such a file
)

// closing returns a shorter file without Allow lines. The group of "*" keeps its first Disallow lines. Another group
// with too many Disallow lines disallows everything. left is the number of Disallow lines of "*" that closing left out.
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
