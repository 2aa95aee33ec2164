// SPDX-License-Identifier: Apache-2.0

package rfc9309

import (
	"iter"
	"slices"
	"strings"
)

// preference is a member of a Content-Usage or Content-Signal line, such as "train-ai=n".
type preference struct {
	key          string
	usage, value string   // in one vocabulary for both keys; value is "yes", "no" or, for the usage "use", any other word
	written      string   // the member as written, in lower case
	path         *pattern // all members of a line share it
	line         int
}

// preferences is a list of preferences, with the work to compare a path with all of them.
type preferences struct {
	all  []preference
	work int
}

// add adds the preferences of a line.
func (ps *preferences) add(line []preference) {
	if len(line) > 0 {
		ps.all = append(ps.all, line...)
		ps.work += len(line) + line[0].path.work()
	}
}

// vocabulary maps the names of usages and values to the names in this package. Its keys are the names in Content-Usage
// lines, in Content-Signal lines, and in earlier drafts.
var vocabulary = map[string]string{
	"search": "search", "train-ai": "train-ai", "ai-use": "ai-use", "use": "use", "ai-train": "train-ai", "ai-input": "ai-use",
	"train-genai": "train-ai", "ai-output": "ai-use", "y": "yes", "n": "no", "yes": "yes", "no": "no",
}

func newPreferences(key, value string, line int) (all []preference) {
	path := "/"
	if strings.HasPrefix(value, "/") || strings.HasPrefix(value, "*") {
		if path, value = value, ""; strings.ContainsAny(path, " \t") {
			i := strings.IndexAny(path, " \t")
			path, value = path[:i], path[i:]
		}
	}
	where := newPattern(normalize(path, true))
	said := map[[2]string]bool{} // a line may repeat a preference thousands of times
	for member := range strings.SplitSeq(strings.ToLower(value), ",") {
		member, _, _ = strings.Cut(member, ";")
		name, value, _ := strings.Cut(member, "=")
		name, value = strings.TrimSpace(name), strings.TrimSpace(value)
		usage, written := vocabulary[name], name+"="+value
		if usage != "use" {
			value = vocabulary[value]
		}
		if usage != "" && value != "" && !said[[2]string{usage, value}] {
			said[[2]string{usage, value}] = true
			all = append(all, preference{key, usage, value, written, &where, line})
		}
	}
	return all
}

// statedPreference identifies what a preference is about.
type statedPreference struct{ key, usage, path string }

func (p *preference) about() statedPreference { return statedPreference{p.key, p.usage, p.path.text} }

// inherit makes all groups obey the preferences in top, which are above the first group of the file. If a group itself
// states a preference with the same key, usage and path, the preference in top does not apply to it (see states). All
// groups share the slice top, because a file can have thousands of groups.
func (f *File) inherit(top preferences, blocks []*block) {
	for _, b := range blocks {
		b.stated = map[statedPreference]int{}
		for i := range b.preferences.all {
			b.stated[b.preferences.all[i].about()] = i
		}
	}
	for _, g := range f.groups {
		g.above = top
	}
}

// states reports whether the group itself states a preference about the same usage and path as p.
func (g *group) states(p *preference) bool {
	return slices.ContainsFunc(g.blocks, func(b sharedBlock) bool {
		last, found := b.stated[p.about()]
		return found && last >= b.from
	})
}

// all yields the group's preferences from lines with a key, if the path of the line matches.
func (g *group) all(key, path string) iter.Seq[*preference] {
	return func(yield func(*preference) bool) {
		var last *pattern
		found := false
		matches := func(p *preference) bool {
			if p.key == key && p.path != last {
				last, found = p.path, p.path.matches(path)
			}
			return p.key == key && found
		}
		for _, b := range g.blocks {
			for i := b.from; i < len(b.preferences.all); i++ {
				if p := &b.preferences.all[i]; matches(p) && !yield(p) {
					return
				}
			}
		}
		for i := range g.above.all {
			if p := &g.above.all[i]; matches(p) && !g.states(p) && !yield(p) {
				return
			}
		}
	}
}

// preference returns the group's preference about a usage of a path. Only the lines with the longest matching path
// apply. The longest path is determined separately for Content-Usage and for Content-Signal. If lines contradict each
// other, "no" wins.
func (g *group) preference(usage, path string) (a Answer) {
	for _, key := range []string{contentUsage, contentSignal} {
		longest := 0
		for p := range g.all(key, path) {
			longest = max(longest, len(p.path.text))
		}
		for p := range g.all(key, path) {
			if p.usage == usage && len(p.path.text) == longest && (a.Preference == "" || p.value == "no") {
				a.Preference, a.Written, a.Line = p.value, p.written, p.line
			}
		}
	}
	a.Allowed = a.Preference != "no"
	return a
}

// state adds the preferences of a line to the preferences of the file.
func (f *File) state(all []preference) {
	f.preferences = append(f.preferences, all...)
	for _, p := range all {
		if said := [2]string{p.usage, p.value}; f.stated[said] == 0 {
			f.stated[said] = p.line
		}
	}
}
