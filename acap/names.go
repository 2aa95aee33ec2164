// SPDX-License-Identifier: Apache-2.0

package acap

import (
	"fmt"
	"slices"
	"strings"

	"github.com/robotspolicy/caddy-robots-policy/pathpattern"
	"github.com/robotspolicy/caddy-robots-policy/policy"
)

// names holds the names of a policy's sets and usages that are valid in ACAP (section 2.7).
type names struct {
	sets      []policy.ResourceSet
	usages    []policy.LocalUsage
	usedSets  map[string]bool
	usedNames map[string]bool
}

func newNames(spec *policy.Spec) *names {
	d := &names{}
	taken := map[string]bool{}
	for _, s := range spec.Resources {
		if key := strings.ToLower(s.Name); isName(s.Name) && !taken[key] && len(s.Patterns) > 0 {
			taken[key] = true
			d.sets = append(d.sets, s)
		}
	}
	qualified := map[string]policy.LocalUsage{}
	taken = map[string]bool{}
	for _, u := range spec.Usages {
		u.Parts = slices.DeleteFunc(slices.Clone(u.Parts), func(p policy.UsagePart) bool { return p.Usage.IsRight() })
		key := strings.ToLower(u.Name)
		if !isName(u.Name) || taken[key] || len(u.Parts) == 0 {
			continue
		}
		if len(u.Parts) == 1 && u.Parts[0].Local == "" && u.Parts[0].Qualifiers != nil {
			qualified[key] = u
		}
		taken[key] = true
		d.usages = append(d.usages, u)
	}
	d.usages = slices.DeleteFunc(d.usages, func(u policy.LocalUsage) bool {
		if _, ok := qualified[strings.ToLower(u.Name)]; ok {
			return false
		}
		// In a usage with several parts, a part with qualifiers must be a named usage (section 2.7.2).
		return slices.ContainsFunc(u.Parts, func(p policy.UsagePart) bool {
			if p.Qualifiers == nil {
				return false
			}
			q, ok := qualified[strings.ToLower(p.Local)]
			return !ok || q.Parts[0].Usage != p.Usage || qualifierText(q.Parts[0].Qualifiers) != qualifierText(p.Qualifiers)
		})
	})
	return d
}

func qualifierText(q *policy.Qualifiers) string { return strings.Join(q.Strings(), " ") }

// isName reports whether s is a valid name according to the grammar of section 3.
func isName(s string) bool {
	const letters = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
	return strings.Trim(s, letters+"0123456789-_.") == "" && strings.IndexAny(s, letters) == 0
}

// lines returns the definitions of the used names. A definition follows the definitions that it refers to.
func (d *names) lines() (lines []Line) {
	for _, s := range d.sets {
		if d.usedSets[s.Name] {
			lines = append(lines, Line{Text: "ACAP-resource-set: " + s.Name + " " + joinPatterns(s.Patterns), Pos: s.Pos})
		}
	}
	for _, u := range d.usages {
		if p := u.Parts[0]; d.usedNames[u.Name] && len(u.Parts) == 1 && p.Local == "" && p.Qualifiers != nil {
			lines = append(lines, Line{Text: "ACAP-qualified-usage: " + u.Name + " " + p.Usage.String() + " " + qualifierText(p.Qualifiers), Pos: u.Pos})
		}
	}
	for _, u := range d.usages {
		if p := u.Parts[0]; !d.usedNames[u.Name] || len(u.Parts) == 1 && p.Local == "" && p.Qualifiers != nil {
			continue
		}
		var text strings.Builder
		text.WriteString("ACAP-composite-usage: " + u.Name)
		for _, p := range u.Parts {
			if p.Qualifiers != nil {
				text.WriteString(" (" + d.spelling(p.Local) + ")")
			} else {
				text.WriteString(" " + p.Usage.String())
			}
		}
		lines = append(lines, Line{Text: text.String(), Pos: u.Pos})
	}
	return lines
}

// spelling returns a name in the spelling of its definition.
func (d *names) spelling(name string) string {
	for _, u := range d.usages {
		if strings.EqualFold(u.Name, name) {
			return u.Name
		}
	}
	return name
}

var reserved = strings.NewReplacer("[", "%5B", "]", "%5D", "'", "%27")

// pathOf returns a pattern in the syntax of ACAP (sections 2.8 and 3). The syntax has the characters that RFC 3986
// allows in paths, except the apostrophe. pathOf encodes the other characters of patterns: brackets and the apostrophe.
func pathOf(p pathpattern.Pattern) string { return reserved.Replace(p.String()) }

func joinPatterns(ps []pathpattern.Pattern) string {
	var texts []string
	for _, p := range ps {
		for _, rooted := range p.Rooted() {
			texts = append(texts, pathOf(rooted.Plain()))
		}
	}
	return strings.Join(texts, " ")
}

type item struct {
	fields   []field
	resource string
	local    string
	gone     bool
}

// compact returns the lines of fields. It combines fields that a named set or usage can express together.
func (d *names) compact(fields []field) []recordLine {
	items := d.joinSets(fields)
	d.joinUsages(items)
	var lines []recordLine
	said := map[string]bool{}
	for _, it := range items {
		if it.gone {
			continue
		}
		f := &it.fields[0]
		text := "ACAP-" + yesNo(f.allow, "allow-", "disallow-")
		if it.local != "" {
			text += "(" + it.local + "): " + it.resource
		} else {
			text += strings.TrimSpace(f.usage.String() + ": " + it.resource + " " + f.quals)
		}
		if key := f.condition + "\x00" + text; !said[key] {
			said[key] = true
			l := recordLine{Line: Line{Text: text}, condition: f.condition}
			if st := f.by.Statement; st != nil {
				l.Pos = st.Pos
			}
			lines = append(lines, l)
		}
	}
	return lines
}

func (f *field) whole() bool {
	return !f.added && f.by.Statement != nil && f.allow == f.by.Statement.Allow
}

// joinSets returns the fields as items. If a set has a field for each of its patterns, and these fields differ only in
// the pattern, they become one item.
func (d *names) joinSets(fields []field) []item {
	type key struct {
		set, condition, quals, local string
		allow                        bool
		usage                        policy.Usage
	}
	of := func(f *field) key {
		s := f.by.Statement
		return key{s.Resource, f.condition, f.quals, s.Local, f.allow, f.usage}
	}
	groups := map[key][]int{}
	for i := range fields {
		if f := &fields[i]; f.whole() && f.by.Statement.Resource != "" {
			groups[of(f)] = append(groups[of(f)], i)
		}
	}
	joined := map[int]*policy.ResourceSet{} // by the index of the first field
	skip := map[int]bool{}
	for k, members := range groups {
		i := slices.IndexFunc(d.sets, func(s policy.ResourceSet) bool { return s.Name == k.set })
		if i < 0 || !d.sameSet(fields, members, &d.sets[i]) {
			continue
		}
		joined[members[0]] = &d.sets[i]
		for _, m := range members[1:] {
			skip[m] = true
		}
	}
	var items []item
	for i := range fields {
		if skip[i] {
			continue
		}
		it := item{fields: fields[i : i+1], resource: pathOf(fields[i].pattern)}
		if s := joined[i]; s != nil {
			it.resource = "the-acap:resource-set:" + s.Name
		}
		items = append(items, it)
	}
	return items
}

func (d *names) sameSet(fields []field, members []int, s *policy.ResourceSet) bool {
	want := map[pathpattern.Pattern]bool{}
	for _, p := range s.Patterns {
		for _, rooted := range p.Rooted() {
			want[rooted.Plain()] = true
		}
	}
	got := map[pathpattern.Pattern]bool{}
	for _, m := range members {
		if !want[fields[m].pattern] {
			return false
		}
		got[fields[m].pattern] = true
	}
	return len(got) == len(want) && len(got) > 1
}

// joinUsages combines several items into one item with a local usage, such as ACAP-allow-(name). It does so if the
// items are permissions of the same resource, one for each part of the local usage.
func (d *names) joinUsages(items []item) {
	type key struct{ local, resource, condition string }
	groups := map[key][]int{}
	var order []key
	for i := range items {
		f := &items[i].fields[0]
		if s := f.by.Statement; f.whole() && f.allow && s.Local != "" && s.Allow {
			k := key{strings.ToLower(s.Local), items[i].resource, f.condition}
			if groups[k] == nil {
				order = append(order, k)
			}
			groups[k] = append(groups[k], i)
		}
	}
	for _, k := range order {
		i := slices.IndexFunc(d.usages, func(u policy.LocalUsage) bool { return strings.EqualFold(u.Name, k.local) })
		if i < 0 {
			continue
		}
		var parts []int
		for _, p := range d.usages[i].Parts {
			for _, n := range groups[k] {
				if f := &items[n].fields[0]; f.usage == p.Usage && f.quals == qualifierText(p.Qualifiers) && !slices.Contains(parts, n) {
					parts = append(parts, n)
					break
				}
			}
		}
		if len(parts) != len(d.usages[i].Parts) {
			continue
		}
		for _, n := range parts {
			items[n].gone = true
		}
		first := slices.Min(parts)
		items[first].gone, items[first].local = false, d.usages[i].Name
	}
	d.noteUsed(items)
}

// noteUsed records the names that need a definition.
func (d *names) noteUsed(items []item) {
	for _, it := range items {
		if it.gone {
			continue
		}
		if name, ok := strings.CutPrefix(it.resource, "the-acap:resource-set:"); ok {
			d.usedSets[name] = true
		}
		for _, u := range d.usages {
			if u.Name != it.local {
				continue
			}
			d.usedNames[u.Name] = true
			for _, p := range u.Parts {
				if p.Qualifiers != nil && p.Local != "" {
					d.usedNames[d.spelling(p.Local)] = true
				}
			}
		}
	}
}

// checkQualifiers warns if the records cannot express a qualifier of the statement st for the usage u. It also warns if
// crawlers must fetch a resource that a qualifier names, but the policy disallows this.
func (w *writer) checkQualifiers(c *policy.Class, st *conditional, u policy.Usage) {
	q := st.Statement.Qualifiers
	if q == nil {
		return
	}
	if len(q.ProhibitedModification) > 0 && !slices.Contains(policy.QualifiersOf(u), policy.QualifierProhibitedModification) {
		w.warn(st.Statement, "acap-modification", fmt.Sprintf("ACAP defines prohibited-modification for %s, but not for %s, which is a part of it. So the records for %s contain %q without this qualifier",
			st.Statement.Usage, u, u, st.Statement.Pattern))
	}
	for _, resource := range []string{q.MustUseResource, q.MustIncludeResource} {
		host, path := w.resource(resource)
		if path == "" || !w.serves(host) {
			continue
		}
		query := policy.Query{Host: host, Path: path, Usage: policy.Crawl, Identity: policy.Verified}
		if len(c.Crawlers) > 0 {
			query.Crawler = c.Crawlers[0]
		}
		if w.p.Decide(query).Verdict == policy.Disallowed {
			w.warn(st.Statement, "acap-resource-disallowed", fmt.Sprintf("to obey this entry, crawlers must be able to fetch %q (ACAP sections 2.5.3.2 and 2.5.5.2), but the policy disallows crawl of it; allow crawl of %q", resource, path))
		}
	}
}

// resource returns the host and path of the resource in a qualifier. Both are "" for a resource within the page.
func (w *writer) resource(uri string) (host, path string) {
	for _, role := range []string{"the-acap:credit:", "the-acap:link:"} {
		uri = strings.TrimPrefix(uri, role)
	}
	if host, path = splitURL(uri, w.host); !strings.HasPrefix(path, "/") {
		return "", ""
	}
	return host, path
}

// qualifiersOf returns the limits as the qualifiers of a permission of the usage u. It leaves out limits that section
// 2.5 does not define for u. It returns false if a qualifier would occur twice, which section 2.5.5.2 forbids. This
// happens if two limits of the same kind apply and neither is stricter.
func qualifiersOf(limits policy.Limits, u policy.Usage) (text string, ok bool) {
	takes := policy.QualifiersOf(u)
	seen := map[policy.QualifierName]bool{}
	texts := slices.DeleteFunc(slices.Clone(limits.Strings()), func(text string) bool {
		name, _, _ := strings.Cut(text, "=")
		return !slices.Contains(takes, policy.QualifierName(name))
	})
	for _, text := range texts {
		n, _, _ := strings.Cut(text, "=")
		if name := policy.QualifierName(n); name != policy.QualifierProhibitedModification {
			if seen[name] {
				return "", false
			}
			seen[name] = true
		}
	}
	return strings.Join(texts, " "), true
}
