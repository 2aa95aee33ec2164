// SPDX-License-Identifier: Apache-2.0

package robotstxt

import (
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/robotspolicy/caddy-robots-policy/internal/leaf/english"
	"github.com/robotspolicy/caddy-robots-policy/pathpattern"
	"github.com/robotspolicy/caddy-robots-policy/policy"
)

// maxLine is the maximum length in bytes of a line that a merge copies. Google's parser cuts lines after 2083 * 8
// bytes.
const maxLine = 16 << 10

// Stated reports which extensions of RFC 9309 a policy uses. If the policy uses an extension, a merge leaves out the
// lines of this extension in the site's own robots.txt. If the merged file had the lines of both, a line of the site
// could replace a line of the policy, because its path is longer.
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

func (l *line) merged(stated Stated) (text, why string) {
	key := extensionKeys[l.key]
	text = key + ": " + l.value
	switch {
	case key == "":
		return "", "write it in the policy"
	case l.key == "app-directives" && stated.Directives:
		return "", "the policy has app-directives, and for some paths, this line would replace them"
	case l.isPreferences() && stated.Preferences:
		return "", "the policy states preferences about AI or search, and for some paths, this line would replace them. Only a usage that a line disallows for all paths is copied"
	case !printable(l.value) || len(text) > maxLine:
		return "", "the line contains invalid or control characters, or is too long for crawlers"
	}
	return text, ""
}

// Extension is a line that is not part of RFC 9309, and that a merge copies from the site's own robots.txt.
type Extension struct {
	Text   string
	Number int
}

// Extensions returns the group's lines that are not part of RFC 9309, and that a merge copies. stated describes the
// policy that the file is merged with.
func (g *Group) Extensions(stated Stated) (lines []Extension) {
	for _, l := range g.lines {
		if text, why := l.merged(stated); why == "" {
			lines = append(lines, Extension{text, l.number})
		}
	}
	return lines
}

// Disallowed returns the names of the usages that the group's lines with preferences disallow for all paths, by the
// keys of the lines in lower case. For "Content-Usage: train-ai=n", it returns "train-ai" with the key "content-usage".
// A merge adds these usages to the preferences of the policy.
func (g *Group) Disallowed() map[string][]string {
	all := map[string][]string{}
	there := map[[2]string]bool{}
	for _, l := range g.lines {
		if !l.isPreferences() {
			continue
		}
		for _, name := range l.says.refuses {
			if !there[[2]string{l.key, name}] {
				there[[2]string{l.key, name}] = true
				all[l.key] = append(all[l.key], name)
			}
		}
	}
	for _, names := range all {
		slices.Sort(names)
	}
	return all
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
				l.noteLeftOut(&left, stated, why)
			}
		}
	}
	for _, g := range f.purposes {
		left.note(g.number, "the merge leaves out the group of the purpose %q; write its rules in the policy", g.Name)
	}
	if f.acap > 0 {
		left.note(0, "the merge leaves out ACAP records; write their rules in the policy")
	}
	for _, l := range f.licenses {
		left.note(l.number, "the merge leaves out the license %q; write it in the policy (publish: {license: …})", l.value)
	}
	return left.Notes()
}

// noteLeftOut adds a note about a line that a merge leaves out. If the line states preferences, the merge may copy the
// usages that it disallows. If these are only a part of the line, the note names them. If they are the whole line,
// there is no note.
func (l *line) noteLeftOut(f *File, stated Stated, why string) {
	var copied []string
	all := false
	if stated.Preferences && l.isPreferences() {
		copied = l.says.refuses
		all = len(copied) == len(l.says.members)
	}
	switch {
	case len(copied) == 0:
		f.note(l.number, "the merge leaves out %q: %s", l.text(), why)
	case !all: // otherwise a comment in the merged file reports the line
		f.note(l.number, "the merge copies only the part of %q that disallows %s: %s", l.text(), english.List(copied, "and"), why)
	}
}

func printable(s string) bool {
	return utf8.ValidString(s) && !strings.ContainsFunc(s, func(r rune) bool {
		return unicode.IsControl(r) && r != '\t' || r == '\u2028' || r == '\u2029'
	})
}

func shut(number int) []Rule {
	return []Rule{{Pattern: pathpattern.All, Size: len(pathpattern.All.String()), number: number}}
}
