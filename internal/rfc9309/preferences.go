// SPDX-License-Identifier: Apache-2.0

package rfc9309

import (
	"slices"
	"strings"
)

// preference is a member of a Content-Usage or Content-Signal line, such as "train-ai=n".
type preference struct {
	key          string
	usage, value string // in one vocabulary for both keys; value is "yes", "no" or, for the usage "use", any other word
	path         pattern
	line         int
}

// vocabulary maps the names of usages, also from earlier drafts, and the values to one name each.
var vocabulary = map[string]string{
	"search": "search", "train-ai": "train-ai", "ai-use": "ai-use", "use": "use", "ai-train": "train-ai", "ai-input": "ai-use",
	"train-genai": "train-ai", "ai-output": "ai-use", "y": "yes", "n": "no", "yes": "yes", "no": "no",
}

func preferences(key, value string, line int) (all []preference) {
	path := "/"
	if strings.HasPrefix(value, "/") || strings.HasPrefix(value, "*") {
		if path, value = value, ""; strings.ContainsAny(path, " \t") {
			i := strings.IndexAny(path, " \t")
			path, value = path[:i], path[i:]
		}
	}
	for member := range strings.SplitSeq(strings.ToLower(value), ",") {
		member, _, _ = strings.Cut(member, ";")
		name, value, _ := strings.Cut(member, "=")
		usage, value := vocabulary[strings.TrimSpace(name)], strings.TrimSpace(value)
		if usage != "use" {
			value = vocabulary[value]
		}
		if usage != "" && value != "" {
			all = append(all, preference{key, usage, value, newPattern(normalize(path, true)), line})
		}
	}
	return all
}

// preference returns the value that applies to a usage of a path, or "" if there is none, and the line. For each key, the
// line with the longest path applies. If lines contradict each other, "no" wins. Lines above the first group belong to
// all groups that do not state this preference.
func (f *File) preference(g *group, usage, path string) (value string, line int) {
	if g == nil {
		return "", 0
	}
	own := slices.Clone(g.preferences)
	for _, t := range f.top {
		same := func(p preference) bool { return p.key == t.key && p.usage == t.usage && p.path.text == t.path.text }
		if t.usage == usage && !slices.ContainsFunc(g.preferences, same) {
			own = append(own, t)
		}
	}
	for _, key := range []string{contentUsage, contentSignal} {
		longest := 0
		for _, p := range own {
			if p.key == key && p.path.matches(path) {
				longest = max(longest, len(p.path.text))
			}
		}
		for _, p := range own {
			if p.key == key && p.usage == usage && len(p.path.text) == longest && p.path.matches(path) && (value == "" || p.value == "no") {
				value, line = p.value, p.line
			}
		}
	}
	return value, line
}

// states returns the first line that states a preference, or 0 if there is none.
func (f *File) states(usage, value string) int {
	i := slices.IndexFunc(f.preferences, func(p preference) bool { return p.usage == usage && p.value == value })
	if i < 0 {
		return 0
	}
	return f.preferences[i].line
}

// comparePreferences asks both files about the preferences for a pair of groups.
func (c *Comparison) comparePreferences(old, now *File, g, h *group, crawlers []string, asked []preference) {
	for _, p := range asked {
		path := rooted(strings.ReplaceAll(strings.TrimSuffix(p.path.text, "$"), "*", ""))
		a, from := old.preference(g, p.usage, path)
		b, to := now.preference(h, p.usage, path)
		if c.Questions += len(crawlers); a == b {
			continue
		}
		c.Differ += len(crawlers)
		i := slices.IndexFunc(c.Differences, func(d Difference) bool {
			return d.Usage == p.usage && d.Path == path && d.Values == [2]string{a, b} && d.Old.Line == from
		})
		if i < 0 {
			i = len(c.Differences)
			c.Differences = append(c.Differences, Difference{
				Usage: p.usage, Values: [2]string{a, b}, Stated: old.states(p.usage, b), Path: path, Asked: []string{path}, Old: Answer{a != "no", from}, New: Answer{b != "no", to},
			})
		}
		c.Differences[i].Crawlers = slices.Concat(c.Differences[i].Crawlers, crawlers)
	}
}

// preferencesToAsk returns one preference for each usage and path of both files, and for each usage of the whole site.
func preferencesToAsk(files ...*File) (all []preference) {
	seen := map[[2]string]bool{}
	for _, f := range files {
		for _, p := range f.preferences {
			for _, path := range []pattern{newPattern("/"), p.path} {
				if key := [2]string{p.usage, path.text}; !seen[key] {
					seen[key] = true
					all = append(all, preference{usage: p.usage, path: path})
				}
			}
		}
	}
	return all
}
