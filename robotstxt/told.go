// SPDX-License-Identifier: Apache-2.0

package robotstxt

import (
	"slices"
	"strings"

	"github.com/robotspolicy/caddy-robots-policy/policy"
)

// Told returns two copies of the policy's Spec, for comparisons with other policies. If the server merges the file with
// the policy, the merged robots.txt also contains lines of the file that are not about crawling, such as preferences
// and sitemaps. Told converts these lines in the same way as Import, and adds them to the copies. settings does not
// contain the preferences, because they are not settings of the policy. Do not serve the copies, because a server
// publishes these lines only in robots.txt. The notes about the lines are in the result of [File.Below].
func (f *File) Told(p *policy.Policy) (told, settings *policy.Spec) {
	spec := *p.Spec()
	im := f.importerFor(p)
	im.f = im.f.withSignals()
	stated, follow := StatedBy(p), im.followers()
	rules := slices.Clone(spec.Rules)
	for _, g := range im.f.Groups {
		r := policy.Rule{For: []policy.Audience{{Kind: policy.ForEveryoneElse}}, Pos: position(g.number)}
		if g.Name != "*" {
			r.For = nil
			for _, token := range append([]string{g.Name}, follow[g]...) {
				r.For = append(r.For, policy.Audience{Kind: policy.ForToken, Name: token})
			}
		}
		for _, l := range g.told(stated) {
			im.extension(&r, l)
		}
		im.cancelDirectives(&r)
		if len(r.Statements)+len(r.AppDirectives) > 0 {
			rules = append(rules, r)
		}
	}
	publish := &spec.Publish
	publish.Lines = distinct(slices.Concat(publish.Lines, f.OtherLines()))
	if spec.Sitemaps = slices.Clone(spec.Sitemaps); len(f.Sitemaps()) > 0 {
		own := ofAllHosts(&spec.Sitemaps, func(s policy.Sitemaps) policy.Host { return s.Host })
		own.Addresses = distinct(slices.Concat(own.Addresses, f.Sitemaps()))
	}
	if publish.Preambles = slices.Clone(publish.Preambles); f.Preamble() != "" {
		own := ofAllHosts(&publish.Preambles, func(a policy.Preamble) policy.Host { return a.Host })
		own.Text = strings.TrimPrefix(strings.TrimRight(own.Text, "\n")+"\n"+f.Preamble(), "\n")
	}
	with := spec
	with.Rules = rules
	with.Publish.ContentUsage = max(publish.ContentUsage, im.spec.Publish.ContentUsage)
	with.Publish.ContentSignal = max(publish.ContentSignal, im.spec.Publish.ContentSignal)
	return &with, &spec
}

// ofAllHosts returns the entry of the list that applies to all hosts, which is the one whose host is "". If there is no
// such entry, it adds one.
func ofAllHosts[T any](list *[]T, hostOf func(T) policy.Host) *T {
	at := slices.IndexFunc(*list, func(e T) bool { return hostOf(e) == "" })
	if at < 0 {
		at = len(*list)
		*list = append(*list, *new(T))
	}
	return &(*list)[at]
}

// told returns the lines of the group that the merged robots.txt also contains. If a merge instead leaves out the
// group's preferences, and adds the usages that they disallow to the preferences of the policy, told also returns lines
// for these usages.
func (g *Group) told(stated Stated) (lines []*line) {
	for _, l := range g.lines {
		if _, why := l.merged(stated); why == "" {
			lines = append(lines, l)
		}
	}
	if !stated.Preferences {
		return lines
	}
	for _, key := range []string{"content-usage", "content-signal"} {
		for _, name := range g.Disallowed()[key] {
			l := &line{number: g.number, key: key, value: name + "=" + vocabularies[key].no}
			l.says = preferencesOf(l)
			lines = append(lines, l)
		}
	}
	return lines
}
