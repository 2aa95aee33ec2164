// SPDX-License-Identifier: Apache-2.0

package policyfile

import (
	"cmp"
	"slices"
	"strings"

	"github.com/robotspolicy/caddy-robots-policy/pathpattern"
	"github.com/robotspolicy/caddy-robots-policy/policy"
	"github.com/robotspolicy/caddy-robots-policy/robotsrule"
)

func printRules(w *printer, spec *policy.Spec) {
	w.under("rules", func() {
		first := true
		for i := range spec.Rules {
			if len(spec.Rules[i].For) == 0 { // such a rule has no effect, and no file can express it
				continue
			}
			if !first {
				w.out.WriteByte('\n')
			}
			first = false
			w.comment(w.options.Comments[i])
			w.item(func() { printMap(w, ruleFields, &ruleReader{rule: &spec.Rules[i]}) })
		}
	})
}

// mention is a path or the name of a set in a list of paths, with the settings to print next to it.
type mention struct {
	text       string
	comment    string
	qualifiers *policy.Qualifiers
	overSite   bool
}

// isPlain reports whether the mention has only a text, without settings.
func (m *mention) isPlain() bool { return m.qualifiers == nil && !m.overSite }

type group struct {
	key      string
	mentions []mention
}

func printStatements(w *printer, r *ruleReader) {
	var sections [2][]group
	var order []int
	for rest := r.rule.Statements; len(rest) > 0; {
		section := 0
		if rest[0].Allow {
			section = 1
		}
		if !slices.Contains(order, section) {
			order = append(order, section)
		}
		key, m, used := w.mention(rest)
		rest = rest[used:]
		groups := &sections[section]
		i := slices.IndexFunc(*groups, func(g group) bool { return g.key == key })
		if i < 0 {
			i = len(*groups)
			*groups = append(*groups, group{key: key})
		}
		(*groups)[i].mentions = append((*groups)[i].mentions, m)
	}
	for _, section := range order {
		w.under([]string{"disallow", "allow"}[section], func() {
			for _, g := range sections[section] {
				w.group(g)
			}
		})
	}
}

// mention returns the path, or the name of a set, that stands for the first statements of the list. The parser makes
// several statements from one entry of the file if the entry has a combined usage or the name of a set. The result used
// is the number of these statements.
func (w *printer) mention(list []policy.Statement) (key string, m mention, used int) {
	s := &list[0]
	parts, key := []policy.UsagePart{{Usage: s.Usage, Qualifiers: s.Qualifiers}}, s.Usage.String()
	m.qualifiers, m.overSite, m.comment = s.Qualifiers, s.OverSite, w.options.LineComments[s.Pos.Line]
	if u := w.usages[s.Local]; u != nil && s.Allow && written(list, s.Pattern, u.Parts, s) {
		parts, key, m.qualifiers = u.Parts, u.Name, nil
	}
	m.text = cmp.Or(s.Written, s.Pattern.String())
	if set := w.sets[s.Resource]; set != nil {
		n := 0
		for _, pattern := range set.Patterns {
			if !written(list[n:], pattern, parts, s) {
				return key, m, len(parts)
			}
			n += len(parts)
		}
		if n > 0 {
			m.text = set.Name
			return key, m, n
		}
	}
	return key, m, len(parts)
}

// written reports whether the list begins with the statements that the parser makes from one pattern. The parser makes
// one statement for each part of the usage that the author wrote. s is the first of these statements.
func written(list []policy.Statement, pattern pathpattern.Pattern, parts []policy.UsagePart, s *policy.Statement) bool {
	if len(list) < len(parts) {
		return false
	}
	for i, part := range parts {
		t := &list[i]
		if t.Allow != s.Allow || t.Pattern != pattern || t.Usage != part.Usage || t.Local != s.Local || t.Resource != s.Resource ||
			t.OverSite != s.OverSite || !sameQualifiers(t.Qualifiers, part.Qualifiers) {
			return false
		}
	}
	return true
}

func (w *printer) group(g group) {
	if len(g.mentions) == 1 && g.mentions[0].isPlain() && g.mentions[0].comment == "" {
		w.text(g.key, g.mentions[0].text)
		return
	}
	w.under(g.key, func() { w.mentions(g.mentions) })
}

func (w *printer) mentions(rest []mention) {
	printed := "" // the comment printed last; two statements of one line have the same comment
	for len(rest) > 0 {
		q, over := rest[0].qualifiers, rest[0].overSite
		if rest[0].isPlain() {
			if rest[0].comment != printed {
				w.comment(rest[0].comment)
			}
			printed = rest[0].comment
			w.items([]string{rest[0].text})
			rest = rest[1:]
			continue
		}
		var paths []string
		for len(rest) > 0 && !rest[0].isPlain() && rest[0].overSite == over && sameQualifiers(rest[0].qualifiers, q) {
			paths = append(paths, rest[0].text)
			rest = rest[1:]
		}
		w.item(func() {
			w.texts("paths", paths)
			w.qualifiers(q)
			if over {
				w.plain("over-site", "true")
			}
		})
	}
}

type directiveText struct {
	paths []string
	text  string
}

func (w *printer) directives(key, name string, texts []directiveText) {
	var merged []directiveText
	for _, t := range texts {
		if n := len(merged) - 1; n >= 0 && merged[n].text == t.text {
			merged[n].paths = append(merged[n].paths, t.paths...)
			continue
		}
		merged = append(merged, t)
	}
	everywhere := func(t directiveText) bool { return slices.Equal(t.paths, []string{pathpattern.All.String()}) }
	if len(merged) == 1 && everywhere(merged[0]) {
		w.text(key, merged[0].text)
		return
	}
	w.under(key, func() {
		for _, t := range merged {
			if everywhere(t) {
				w.items([]string{t.text})
				continue
			}
			w.item(func() {
				w.texts("paths", t.paths)
				w.text(name, t.text)
			})
		}
	})
}

func printAppDirectives(w *printer, r *ruleReader) {
	var texts []directiveText
	for rest := r.rule.AppDirectives; len(rest) > 0; {
		pattern := rest[0].Pattern
		var members []string
		for len(rest) > 0 && rest[0].Pattern == pattern {
			members = append(members, rest[0].Text)
			rest = rest[1:]
		}
		texts = append(texts, directiveText{[]string{pattern.String()}, strings.Join(members, ", ")})
	}
	w.directives("app-directives", "directives", texts)
}

// printRobotsTag writes the rules of search engines. It combines the rules of one path.
func printRobotsTag(w *printer, r *ruleReader) {
	var texts []directiveText
	for rest := r.rule.EngineRules; len(rest) > 0; {
		pattern, set := rest[0].Pattern, robotsrule.Set{}
		for len(rest) > 0 && rest[0].Pattern == pattern {
			set = set.Union(rest[0].Rule)
			rest = rest[1:]
		}
		texts = append(texts, directiveText{[]string{pattern.String()}, set.Meta()})
	}
	w.directives("robots-tag", "rules", texts)
}
