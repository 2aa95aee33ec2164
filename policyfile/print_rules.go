// SPDX-License-Identifier: Apache-2.0

package policyfile

import (
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/robotspolicy/caddy-robots-policy/pathpattern"
	"github.com/robotspolicy/caddy-robots-policy/policy"
	"github.com/robotspolicy/caddy-robots-policy/robotsrule"
)

func (w *printer) rules(comments map[int]string) {
	first := true
	for i := range w.spec.Rules {
		if len(w.spec.Rules[i].For) == 0 { // reaches nobody, and no file can express it
			continue
		}
		if first {
			w.line(0, "rules:")
		} else {
			w.out.WriteByte('\n')
		}
		first = false
		w.comment(1, comments[i])
		start := w.out.Len()
		w.rule(&w.spec.Rules[i])
		// The first line of the rule, indented like the others, gets the hyphen.
		copy(w.out.Bytes()[start+len("  "):], "- ")
	}
}

func (w *printer) rule(r *policy.Rule) {
	if r.Name != "" {
		w.line(2, "name: "+scalar(r.Name))
	}
	names := make([]string, len(r.For))
	for i, a := range r.For {
		names[i] = a.String()
	}
	w.names("for", names)
	hosts := make([]string, len(r.Hosts))
	for i, h := range r.Hosts {
		hosts[i] = string(h)
	}
	w.texts(2, "hosts", hosts)
	if r.Identity != policy.DemandClaimed {
		w.line(2, "identity: "+r.Identity.String())
	}
	w.texts(2, "usage-purposes", r.UsagePurposes)
	w.statements(r)
	w.appDirectives(r)
	w.robotsTag(r)
	switch {
	case r.NoCrawlDelay:
		w.line(2, "crawl-delay: none")
	case r.CrawlDelay > 0:
		delay := min(max(r.CrawlDelay.Round(time.Millisecond), time.Millisecond), maxDelay*time.Second)
		w.line(2, "crawl-delay: "+strconv.FormatFloat(delay.Seconds(), 'f', -1, 64))
	}
	w.limit(r)
	if r.Enforce != policy.ModeUnset {
		w.line(2, "enforce: "+r.Enforce.String())
	}
	switch {
	case len(r.IntendedGuards) > 0:
		w.line(2, "intended: ["+strings.Join(r.IntendedGuards, ", ")+"]")
	case r.Intended:
		w.line(2, "intended: true")
	}
	w.requests(r)
	if r.PermissionsReference != "" {
		w.line(2, "permissions-reference: "+scalar(r.PermissionsReference))
	}
}

var bracketed = regexp.MustCompile(`^[A-Za-z][A-Za-z0-9_-]*(?::[A-Za-z][A-Za-z0-9_-]*)?$`)

// maxBracketed is how many characters a list in brackets may have.
const maxBracketed = 60

// names writes a list in brackets while it is short.
func (w *printer) names(key string, names []string) {
	short := len(names) > 1 && !slices.ContainsFunc(names, func(s string) bool { return !bracketed.MatchString(s) || guessed.MatchString(s) })
	if text := "[" + strings.Join(names, ", ") + "]"; short && len(text) <= maxBracketed {
		w.line(2, key+": "+text)
		return
	}
	w.texts(2, key, names)
}

// mention is one item of a list of paths.
type mention struct {
	text       string
	comment    string
	qualifiers *policy.Qualifiers
}

// group is what a rule says of one usage.
type group struct {
	key      string
	mentions []mention
}

// statements writes allow and disallow, in the order in which they come.
func (w *printer) statements(r *policy.Rule) {
	var sections [2][]group
	var order []int
	for rest := r.Statements; len(rest) > 0; {
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
		w.line(2, []string{"disallow:", "allow:"}[section])
		for _, g := range sections[section] {
			w.group(g)
		}
	}
}

// mention finds what the first statements of a list were written as: a path or a
// set for a usage of the file or for a plain one. Used is how many they are.
func (w *printer) mention(list []policy.Statement) (key string, m mention, used int) {
	s := &list[0]
	parts, key := []policy.UsagePart{{Usage: s.Usage, Qualifiers: s.Qualifiers}}, s.Usage.String()
	m.qualifiers, m.comment = s.Qualifiers, w.lineComments[s.Pos.Line]
	if u := w.usages[s.Local]; u != nil && s.Allow && written(list, s.Pattern, u.Parts, s) {
		parts, key, m.qualifiers = u.Parts, u.Name, nil
	}
	m.text = s.Pattern.String()
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

// written reports whether a list starts with the statements that parts make of a
// pattern, mentioned where s is.
func written(list []policy.Statement, pattern pathpattern.Pattern, parts []policy.UsagePart, s *policy.Statement) bool {
	if len(list) < len(parts) {
		return false
	}
	for i, part := range parts {
		t := &list[i]
		if t.Allow != s.Allow || t.Pattern != pattern || t.Usage != part.Usage || t.Local != s.Local || t.Resource != s.Resource ||
			!sameQualifiers(t.Qualifiers, part.Qualifiers) {
			return false
		}
	}
	return true
}

func (w *printer) group(g group) {
	if len(g.mentions) == 1 && g.mentions[0].qualifiers == nil && g.mentions[0].comment == "" {
		w.line(3, g.key+": "+scalar(g.mentions[0].text))
		return
	}
	w.line(3, g.key+":")
	said := ""
	for rest := g.mentions; len(rest) > 0; {
		q := rest[0].qualifiers
		if q == nil {
			if rest[0].comment != said { // of a line that makes two statements once
				w.comment(4, rest[0].comment)
			}
			said = rest[0].comment
			w.line(4, "- "+scalar(rest[0].text))
			rest = rest[1:]
			continue
		}
		var paths []string
		for len(rest) > 0 && rest[0].qualifiers != nil && sameQualifiers(rest[0].qualifiers, q) {
			paths = append(paths, rest[0].text)
			rest = rest[1:]
		}
		w.entry(func() {
			w.texts(5, "paths", paths)
			w.qualifiers(5, q)
		})
	}
}

// entry writes an item of a list that is a map.
func (w *printer) entry(write func()) {
	start := w.out.Len()
	write()
	line := w.out.Bytes()[start:]
	copy(line[len(line)-len(strings.TrimLeft(string(line), " "))-len("- "):], "- ")
}

// directiveText is what some paths have under app-directives or robots-tag.
type directiveText struct {
	paths []string
	text  string
}

// directives writes texts, each for all paths or for some.
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
		w.line(2, key+": "+scalar(merged[0].text))
		return
	}
	for i, t := range merged {
		if i == 0 {
			w.line(2, key+":")
		}
		if everywhere(t) {
			w.line(3, "- "+scalar(t.text))
			continue
		}
		w.entry(func() {
			w.texts(4, "paths", t.paths)
			w.line(4, name+": "+scalar(t.text))
		})
	}
}

func (w *printer) appDirectives(r *policy.Rule) {
	var texts []directiveText
	for rest := r.AppDirectives; len(rest) > 0; {
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

// robotsTag writes the rules of one path together where that says the same.
func (w *printer) robotsTag(r *policy.Rule) {
	var texts []directiveText
	for rest := r.EngineRules; len(rest) > 0; {
		pattern := rest[0].Pattern
		n := 1
		text := rest[0].Rule.Meta()
		for n < len(rest) && rest[n].Pattern == pattern {
			joined := text + ", " + rest[n].Rule.Meta()
			if !sameRules(joined, rest[:n+1]) {
				break
			}
			text = joined
			n++
		}
		rest = rest[n:]
		if set, err := robotsrule.ParseStrict(text); err == nil && n > 1 {
			text = set.Meta() // in the order in which they are read again
		}
		texts = append(texts, directiveText{[]string{pattern.String()}, text})
	}
	w.directives("robots-tag", "rules", texts)
}

// sameRules reports whether reading text gives just the rules given.
func sameRules(text string, rules []policy.EngineRule) bool {
	set, err := robotsrule.ParseStrict(text)
	if err != nil {
		return false
	}
	read := engineRules(set)
	if len(read) != len(rules) {
		return false
	}
	for _, rule := range rules {
		if !slices.ContainsFunc(read, func(e policy.EngineRule) bool { return e.Name == rule.Name && e.Rule.Equal(rule.Rule) }) {
			return false
		}
	}
	return true
}
