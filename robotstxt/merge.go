// SPDX-License-Identifier: Apache-2.0

package robotstxt

import (
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/robotspolicy/caddy-robots-policy/pathpattern"
	"github.com/robotspolicy/caddy-robots-policy/policy"
)

// maxLine is the maximum length in bytes of a line that a merged file takes over. Google's parser cuts lines after 2083
// * 8 bytes.
const maxLine = 16 << 10

// Stated reports which extensions of RFC 9309 a policy uses. A merge leaves out the site's lines of these extensions,
// because otherwise a line of one file could replace a line of the other file, if its path is longer.
type Stated struct {
	Preferences bool // Content-Usage or Content-Signal
	Directives  bool // App-Directives
}

// StatedBy returns the extensions that a policy uses.
func StatedBy(p *policy.Policy) (s Stated) {
	publish := &p.Spec().Publish
	s.Preferences = publish.ContentSignal != policy.Off && publish.ContentSignalUse != ""
	rules := p.Spec().Rules
	for i := range rules {
		s.Directives = s.Directives || len(rules[i].AppDirectives) > 0
		for j := range rules[i].Statements {
			u := rules[i].Statements[j].Usage
			// The usage "other" means all rights usages that no rule names.
			s.Preferences = s.Preferences || u.IsRight() || u == policy.Other
		}
	}
	return s
}

var extensionKeys = map[string]string{
	"app-directives": "App-Directives", "content-usage": "Content-Usage", "content-signal": "Content-Signal",
	"request-rate": "Request-rate", "visit-time": "Visit-time",
}

// withTop returns a copy of the file. It adds the preferences above the first group to each group that does not state
// them. By RFC 9309, these lines do not belong to any group, but their authors mean the whole site. For crawlers that no
// group names, the group of "*" has them, and withTop adds this group if it is missing. The added group has no Allow,
// Disallow and Crawl-delay lines, so it does not change who may crawl.
func (f *File) withTop() *File {
	with := f.withGroups(func(g *Group) *Group {
		clone := *g
		clone.lines = f.linesOf(g)
		return &clone
	})
	if len(f.top) > 0 && f.Group("*") == nil {
		with.add(&Group{Name: "*", written: "*", number: f.top[0].number, lines: f.top})
	}
	return with
}

// linesOf returns the lines of a group that extend RFC 9309, with the preferences above the first group that the group
// does not state. g may be nil.
func (f *File) linesOf(g *Group) []line {
	switch {
	case g == nil || len(g.lines) == 0:
		return slices.Clip(f.top)
	case len(f.top) == 0:
		return g.lines
	}
	lines := slices.Clone(g.lines)
	stated := map[[3]string]bool{}
	for _, l := range g.lines {
		path, members := l.members()
		for _, m := range members {
			stated[[3]string{l.key, path, nameOf(m)}] = true
		}
	}
	for _, l := range f.top {
		path, members := l.members()
		all := len(members)
		members = slices.DeleteFunc(members, func(m string) bool { return stated[[3]string{l.key, path, nameOf(m)}] })
		if len(members) == all {
			lines = append(lines, l)
		} else if len(members) > 0 {
			lines = append(lines, line{number: l.number, key: l.key, value: strings.TrimSpace(path + " " + strings.Join(members, ", "))})
		}
	}
	return lines
}

// members splits a line with preferences into its path, which may be "", and members such as "train-ai=n".
func (l line) members() (path string, members []string) {
	path, value := l.path()
	for m := range strings.SplitSeq(value, ",") {
		members = append(members, strings.TrimSpace(m))
	}
	return path, members
}

// nameOf returns the name in a member such as "train-ai=n".
func nameOf(member string) string {
	name, _, _ := strings.Cut(member, "=")
	return strings.ToLower(strings.TrimSpace(name))
}

// signals combines the Content-Signal lines of each group that has such a line with a path. By its definition, a
// Content-Signal line has no path and applies to the whole site. So a usage that a line disallows for a path is
// disallowed for the whole site, and the other members of this line are left out. An import does the same.
func (f *File) signals() {
	noted := map[int]bool{}
	for _, g := range f.Groups {
		if !slices.ContainsFunc(g.lines, line.isSignalOfPath) {
			continue
		}
		var lines []line
		var members []string
		at := -1
		for _, l := range g.lines {
			if l.key != "content-signal" {
				lines = append(lines, l)
				continue
			}
			if at < 0 {
				at, lines = len(lines), append(lines, line{number: l.number, key: l.key})
			}
			_, own := l.members()
			for _, m := range own {
				_, says, _ := strings.Cut(m, "=")
				no := strings.EqualFold(strings.TrimSpace(says), "no")
				same := func(other string) bool { return nameOf(other) == nameOf(m) }
				switch i := slices.IndexFunc(members, same); {
				case !no && l.isSignalOfPath():
				case i < 0:
					members = append(members, m)
				case no:
					members[i] = m
				}
			}
			if l.isSignalOfPath() && !noted[l.number] {
				noted[l.number] = true
				f.note(l.number, "a Content-Signal line cannot have a path. If %q disallows a usage, the merged robots.txt disallows it for the whole site", l.value)
			}
		}
		if lines[at].value = strings.Join(members, ", "); members == nil {
			lines = slices.Delete(lines, at, at+1)
		}
		g.lines = lines
	}
}

// isSignalOfPath reports whether a Content-Signal line has a path, and not only "/".
func (l line) isSignalOfPath() bool {
	path, _ := l.path()
	return l.key == "content-signal" && path != "" && path != "/"
}

// isPreferences reports whether a line states preferences about AI or search.
func (l line) isPreferences() bool { return l.key == "content-usage" || l.key == "content-signal" }

func (l line) merged(stated Stated) (text, why string) {
	key := extensionKeys[l.key]
	text = key + ": " + l.value
	switch {
	case key == "":
		return "", "write it in the policy"
	case l.key == "app-directives" && stated.Directives:
		return "", "the policy has app-directives, and for some paths, this line would replace them"
	case l.isPreferences() && stated.Preferences:
		return "", "the policy states preferences about AI or search, and for some paths, this line would replace them; only lines that disallow a usage for all paths are copied"
	case !printable(l.value) || len(text) > maxLine:
		return "", "the line contains invalid or control characters, or is longer than crawlers read"
	}
	return text, ""
}

// Extension is a line that extends RFC 9309 and that a merged file takes over.
type Extension struct {
	Text   string
	Number int
}

// Extensions returns the lines that extend RFC 9309 and that a merged file takes over.
func (g *Group) Extensions(stated Stated) (lines []Extension) {
	for _, l := range g.lines {
		if text, why := l.merged(stated); why == "" {
			lines = append(lines, Extension{text, l.number})
		}
	}
	return lines
}

// Disallowed returns the preferences that lines without a path disallow, by the key of the line in lower case. For
// "Content-Usage: train-ai=n", it returns "train-ai" with the key "content-usage". A merged file adds them to the
// policy's preferences.
func (g *Group) Disallowed() map[string][]string {
	all := map[string][]string{}
	for _, l := range g.lines {
		if l.isPreferences() {
			names, _ := l.refused()
			all[l.key] = append(all[l.key], names...)
		}
	}
	for key, names := range all {
		slices.Sort(names)
		all[key] = slices.Compact(names)
	}
	return all
}

// refused returns the preferences that a line disallows. all is true if the line contains nothing else.
func (l line) refused() (names []string, all bool) {
	all = true
	for member := range strings.SplitSeq(l.value, ",") {
		member, _, _ = strings.Cut(member, ";") // without parameters
		name, value, _ := strings.Cut(strings.TrimSpace(member), "=")
		name, value = strings.ToLower(name), strings.ToLower(value)
		if value != "n" && value != "no" || !isPreference(name) {
			all = false
			continue
		}
		names = append(names, name)
	}
	return names, all
}

// isPreference reports whether a name is just a preference, without a path before it.
func isPreference(name string) bool {
	return name != "" && len(name) <= maxName && strings.Trim(name, "abcdefghijklmnopqrstuvwxyz0123456789-_") == ""
}

// OtherLines returns the lines for the whole file, such as Clean-param, each once.
func (f *File) OtherLines() []string { return distinct(f.others) }

// Sitemaps returns the sitemaps, each once, as URLs or as paths on the host of the file.
func (f *File) Sitemaps() []string { return distinct(f.sitemaps) }

func distinct(texts []string) (all []string) {
	seen := map[string]bool{}
	for _, text := range texts {
		if !seen[text] {
			seen[text] = true
			all = append(all, text)
		}
	}
	return all
}

// LeftOut returns notes about the lines that a merge leaves out, and about lines that could not be read.
func (f *File) LeftOut(stated Stated) []Note {
	left := File{Groups: f.Groups, notes: slices.Clone(f.notes)}
	left.noteSpellings()
	said := map[int]bool{} // a line may belong to thousands of groups
	for _, g := range f.Groups {
		for _, l := range g.lines {
			if said[l.number] {
				continue
			}
			said[l.number] = true
			if _, why := l.merged(stated); why != "" {
				if _, all := l.refused(); all && stated.Preferences && l.isPreferences() {
					continue // a comment in the merged file already reports this
				}
				left.note(l.number, "%q is left out: %s", l.key+": "+l.value, why)
			}
		}
	}
	for _, g := range f.purposes {
		left.note(g.number, "the group of the purpose %q is left out; write its rules in the policy", g.Name)
	}
	if f.acap > 0 {
		left.note(0, "ACAP records are left out; write their rules in the policy")
	}
	for _, l := range f.licenses {
		left.note(l.number, "the license %q is left out; write it in the policy (publish: {license: …})", l.value)
	}
	return left.Notes()
}

func printable(s string) bool {
	return utf8.ValidString(s) && !strings.ContainsFunc(s, func(r rune) bool {
		return unicode.IsControl(r) && r != '\t' || r == '\u2028' || r == '\u2029'
	})
}

func shut(number int) []Rule {
	return []Rule{{Pattern: pathpattern.All, Size: len(pathpattern.All.String()), number: number}}
}
