// SPDX-License-Identifier: Apache-2.0

package robotstxt

import (
	"encoding/binary"
	"slices"
	"strings"

	"github.com/robotspolicy/caddy-robots-policy/policy"
)

// preferences holds the path and the members of a Content-Usage or Content-Signal line. An import and a merge use it
// for all such lines, including those above the first group, so that they interpret each line in the same way.
type preferences struct {
	path    string // "" if the line is for all paths
	members []member
	refuses []string // the names of the preferences that the line disallows for all paths; see settle
}

// member is a member of a line with preferences, such as "train-ai=n".
type member struct {
	name  string // the current name, in lower case
	value string // in lower case; "yes" and "no" also for "y" and "n"
	usage policy.Usage
	known bool   // usage is set
	text  string // as written, without parameters
}

func (m member) no() bool { return m.value == "no" }

// isName reports whether the member has a name that a line of robots.txt can have.
func (m member) isName() bool {
	return m.name != "" && len(m.name) <= maxName && strings.Trim(m.name, "abcdefghijklmnopqrstuvwxyz0123456789-_") == ""
}

// maxMembers limits the number of members without a known usage, because thousands of groups may share a line.
const maxMembers = 32

// vocabulary holds the words of the lines with one key, such as Content-Usage.
type vocabulary struct {
	yes, no string
	names   map[policy.Usage]string
	usages  map[string]policy.Usage
}

// vocabularies holds the vocabulary of each key. Content-Usage also has names from earlier versions of
// draft-ietf-aipref-vocab (-02 to -04).
var vocabularies = map[string]*vocabulary{
	"content-usage": {
		"y", "n",
		map[policy.Usage]string{policy.TrainAI: "train-ai", policy.AIUse: "ai-use", policy.Search: "search"},
		map[string]policy.Usage{"train-ai": policy.TrainAI, "ai-use": policy.AIUse, "search": policy.Search, "train-genai": policy.TrainAI, "ai-output": policy.AIUse},
	},
	"content-signal": {
		"yes", "no",
		map[policy.Usage]string{policy.TrainAI: "ai-train", policy.AIUse: "ai-input", policy.Search: "search"},
		map[string]policy.Usage{"ai-train": policy.TrainAI, "ai-input": policy.AIUse, "search": policy.Search},
	},
}

// isPreferences reports whether a line states preferences about AI or search.
func (l *line) isPreferences() bool { return vocabularies[l.key] != nil }

// preferencesOf reads a line with preferences. It ignores white space, letter case and parameters, and treats the paths
// "/" and "*" as no path. If the line has two members with the same name, such as "train-ai=y, train-ai=n", the one
// that disallows the usage wins.
func preferencesOf(l *line) *preferences {
	path, value := l.path()
	if path == "/" || path == "*" {
		path = ""
	}
	s := &preferences{path: path}
	for text := range strings.SplitSeq(value, ",") {
		text, _, _ = strings.Cut(text, ";")
		if text = strings.TrimSpace(text); text != "" {
			s.add(vocabularies[l.key].member(text))
		}
	}
	s.settle()
	return s
}

func (v *vocabulary) member(text string) member {
	name, value, _ := strings.Cut(text, "=")
	m := member{name: strings.ToLower(strings.TrimSpace(name)), value: strings.ToLower(strings.TrimSpace(value)), text: text}
	switch m.value {
	case "y":
		m.value = "yes"
	case "n":
		m.value = "no"
	}
	if m.usage, m.known = v.usages[m.name]; m.known {
		m.name = v.names[m.usage]
	}
	return m
}

// add adds the member m. If s already has a member with the same name, m replaces this member if m disallows the usage;
// if m does not, add ignores m. If the usage of m is not known, add also ignores m if it is long, or if s has too many
// members with unknown usages.
func (s *preferences) add(m member) {
	others := 0
	for i := range s.members {
		if s.members[i].name == m.name {
			if m.no() {
				s.members[i] = m
			}
			return
		}
		if !s.members[i].known {
			others++
		}
	}
	if m.known || others < maxMembers && len(m.text) <= 2*maxName {
		s.members = append(s.members, m)
	}
}

// settle sets s.refuses, once for all groups that share the line.
func (s *preferences) settle() {
	for _, m := range s.members {
		if s.path == "" && m.no() && m.isName() {
			s.refuses = append(s.refuses, m.name)
		}
	}
}

// text returns the value of a line with these preferences.
func (s *preferences) text(v *vocabulary) string {
	texts := make([]string, len(s.members))
	for i, m := range s.members {
		switch {
		case m.known && m.no():
			texts[i] = m.name + "=" + v.no
		case m.known && m.value == "yes":
			texts[i] = m.name + "=" + v.yes
		default:
			texts[i] = m.text
		}
	}
	return strings.TrimSpace(s.path + " " + strings.Join(texts, ", "))
}

// derived creates new lines that the file does not contain, such as a line with some members of another line. It maps
// the text of each new line to a number, which becomes the field same of the line, so that equal lines have the same
// number.
type derived map[string]int

func (d derived) line(of *line, s *preferences) *line {
	s.settle()
	l := &line{number: of.number, key: of.key, value: s.text(vocabularies[of.key]), says: s, written: of.written}
	text := l.key + ":" + l.value
	if d[text] == 0 {
		d[text] = -1 - len(d) // no line of the file has a negative number
	}
	l.same = d[text]
	return l
}

// Written returns the text of the line with the given number, in the spelling of the file. above reports whether the
// line is above the first group. The text is "" if the file does not have this line, or if it is a line about crawling,
// such as Allow.
func (f *File) Written(number int) (text string, above bool) {
	for i, lines := range append([][]*line{f.top}, f.linesOfGroups()...) {
		for _, l := range lines {
			if l.number == number {
				return l.text(), i == 0
			}
		}
	}
	return "", false
}

func (f *File) linesOfGroups() (all [][]*line) {
	for _, g := range f.Groups {
		all = append(all, g.lines)
	}
	return all
}

// withLines returns a copy of the file. In each group, it replaces the lines that are not about crawling with the
// result of the function replace. Groups with equal lines share the result.
func (f *File) withLines(replace func(lines []*line) []*line) *File {
	replaced := map[string][]*line{}
	return f.withGroups(func(g *Group) *Group {
		var key []byte
		for i := range g.lines {
			key = binary.AppendVarint(key, int64(g.lines[i].same))
		}
		lines, ok := replaced[string(key)]
		if !ok {
			lines = replace(g.lines)
			replaced[string(key)] = lines
		}
		clone := *g
		clone.lines = lines
		return &clone
	})
}

// withTop returns a copy of the file. It adds the preferences above the first group to each group, unless the group
// states the same preference. By RFC 9309, lines above the first group do not belong to any group, but their authors
// mean the whole site. If the file does not have a group of "*", withTop adds one with these preferences, for all
// crawlers that the file does not name. The added group does not have Allow, Disallow or Crawl-delay lines, so all
// crawlers may still fetch the same paths.
func (f *File) withTop() *File {
	made := derived{}
	with := f.withLines(func(lines []*line) []*line { return f.linesWithTop(lines, made) })
	with.derived = made
	if len(f.top) > 0 && f.Group("*") == nil {
		with.add(&Group{Name: "*", written: "*", number: f.top[0].number, lines: f.top})
	}
	return with
}

// linesWithTop returns the given lines of a group, and adds preferences from the lines above the first group. It leaves
// out each of these preferences that the group's lines already state for the same path.
func (f *File) linesWithTop(lines []*line, made derived) []*line {
	switch {
	case len(f.top) == 0:
		return lines
	case len(lines) == 0:
		return slices.Clip(f.top)
	}
	with := slices.Clone(lines)
	stated := map[[3]string]bool{} // the members of f.top; true for those that lines state
	for _, l := range f.top {
		for _, m := range l.says.members {
			stated[[3]string{l.key, l.says.path, m.name}] = false
		}
	}
	for _, l := range lines {
		if l.isPreferences() {
			for _, m := range l.says.members {
				key := [3]string{l.key, l.says.path, m.name}
				if _, above := stated[key]; above {
					stated[key] = true
				}
			}
		}
	}
	for _, l := range f.top {
		left := &preferences{path: l.says.path}
		for _, m := range l.says.members {
			if !stated[[3]string{l.key, left.path, m.name}] {
				left.members = append(left.members, m)
			}
		}
		switch len(left.members) {
		case len(l.says.members):
			with = append(with, l)
		case 0:
		default:
			with = append(with, made.line(l, left))
		}
	}
	return with
}

// withSignals returns a copy of the file, in which no Content-Signal line has a path. By its definition, such a line
// applies to the whole site. So if a line with a path disallows a usage, withSignals disallows the usage for the whole
// site, and leaves out all other members of the line. It then combines the Content-Signal lines of the group. An import
// does the same. The file must be the result of withTop.
func (f *File) withSignals() *File {
	noted := map[int]bool{}
	with := f.withLines(func(lines []*line) []*line {
		if !slices.ContainsFunc(lines, (*line).isSignalOfPath) {
			return lines
		}
		for _, l := range lines {
			if l.isSignalOfPath() && !noted[l.same] {
				noted[l.same] = true
				f.note(l.number, "a Content-Signal line cannot have a path. If %q disallows a usage, the merged robots.txt disallows it for the whole site", l.value)
			}
		}
		return f.derived.combined(lines)
	})
	with.notes = f.notes
	return with
}

// combined replaces Content-Signal lines with one line for the whole site, in the place of the first of them.
func (d derived) combined(lines []*line) (left []*line) {
	var first *line
	all, at := &preferences{}, 0
	for _, l := range lines {
		if l.key != "content-signal" {
			left = append(left, l)
			continue
		}
		if first == nil {
			first, at = l, len(left)
		}
		for _, m := range l.says.members {
			if m.no() || l.says.path == "" {
				all.add(m)
			}
		}
	}
	if len(all.members) == 0 {
		return left
	}
	return slices.Insert(left, at, d.line(first, all))
}

// isSignalOfPath reports whether a Content-Signal line has a path.
func (l *line) isSignalOfPath() bool { return l.key == "content-signal" && l.says.path != "" }
