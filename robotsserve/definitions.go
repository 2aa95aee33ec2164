// SPDX-License-Identifier: Apache-2.0

package robotsserve

import (
	"slices"
	"strings"

	"github.com/robotspolicy/caddy-robots-policy/pathpattern"
	"github.com/robotspolicy/caddy-robots-policy/policy"
)

// recordField is a claim about a usage.
type recordField struct {
	claim
	usage policy.Usage
}

// definitions are the names of ACAP 1.0 section 2.7 that records use: those of
// the policy that its grammar can say.
type definitions struct {
	sets      []policy.ResourceSet
	usages    []policy.LocalUsage
	usedSets  map[string]bool
	usedNames map[string]bool
}

func newDefinitions(spec *policy.Spec) *definitions {
	d := &definitions{usedSets: map[string]bool{}, usedNames: map[string]bool{}}
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
		u.Parts = slices.DeleteFunc(slices.Clone(u.Parts), func(p policy.UsagePart) bool { return !p.Usage.IsACAP() })
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
		// A part with qualifiers has to have a name itself (section 2.7.2).
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

// isName reports whether s is a name of the grammar of section 3.
func isName(s string) bool {
	for i := range len(s) {
		c := s[i] | 0x20
		switch {
		case c >= 'a' && c <= 'z':
		case i > 0 && (s[i] >= '0' && s[i] <= '9' || s[i] == '-' || s[i] == '_' || s[i] == '.'):
		default:
			return false
		}
	}
	return s != ""
}

// write appends the definitions that records use, each after those it needs.
func (d *definitions) write(w *writer) {
	for _, s := range d.sets {
		if d.usedSets[s.Name] {
			w.pos = s.Pos
			w.line("ACAP-resource-set: " + s.Name + " " + joinPatterns(s.Patterns))
		}
	}
	for _, u := range d.usages {
		if p := u.Parts[0]; d.usedNames[u.Name] && len(u.Parts) == 1 && p.Local == "" && p.Qualifiers != nil {
			w.line("ACAP-qualified-usage: " + u.Name + " " + p.Usage.String() + " " + qualifierText(p.Qualifiers))
		}
	}
	for _, u := range d.usages {
		if p := u.Parts[0]; !d.usedNames[u.Name] || len(u.Parts) == 1 && p.Local == "" && p.Qualifiers != nil {
			continue
		}
		w.pos = u.Pos
		line := "ACAP-composite-usage: " + u.Name
		for _, p := range u.Parts {
			if p.Qualifiers != nil {
				line += " (" + d.spelling(p.Local) + ")"
			} else {
				line += " " + p.Usage.String()
			}
		}
		w.line(line)
	}
}

// spelling is a name as it is defined.
func (d *definitions) spelling(name string) string {
	for _, u := range d.usages {
		if strings.EqualFold(u.Name, name) {
			return u.Name
		}
	}
	return name
}

func joinPatterns(ps []pathpattern.Pattern) string {
	var texts []string
	for _, p := range ps {
		for _, rooted := range p.Rooted() {
			texts = append(texts, rooted.Plain().String())
		}
	}
	return strings.Join(texts, " ")
}

// item is fields that may be said in one.
type item struct {
	fields   []recordField
	resource string
	local    string
	gone     bool
}

// compact writes fields, those of a named set or usage as one.
func (d *definitions) compact(fields []recordField) []recordLine {
	items := d.joinSets(fields)
	d.joinUsages(items)
	var lines []recordLine
	said := map[recordLine]bool{}
	for _, it := range items {
		if it.gone {
			continue
		}
		f := &it.fields[0]
		text := "ACAP-" + yesNo(f.allow, "allow-", "disallow-")
		switch {
		case it.local != "":
			text += "(" + it.local + "): " + it.resource
		default:
			text += f.usage.String() + ": " + it.resource
			if f.allow && f.quals != "" {
				text += " " + f.quals
			}
		}
		if line := (recordLine{f.condition, text}); !said[line] {
			said[line] = true
			lines = append(lines, line)
		}
	}
	return lines
}

// joinSets makes one item of the fields that say the same of all patterns of a
// set.
func (d *definitions) joinSets(fields []recordField) []item {
	type key struct {
		set, condition, quals, local string
		allow                        bool
		usage                        policy.Usage
	}
	of := func(f *recordField) key {
		s := f.ref.Statement
		return key{s.Resource, f.condition, f.quals, s.Local, f.allow, f.usage}
	}
	groups := map[key][]int{}
	for i := range fields {
		if f := &fields[i]; !f.added && f.ref.Statement.Resource != "" {
			groups[of(f)] = append(groups[of(f)], i)
		}
	}
	joined := map[int]*policy.ResourceSet{} // by the first field
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
		it := item{fields: fields[i : i+1], resource: fields[i].pattern.String()}
		if s := joined[i]; s != nil {
			it.resource = "the-acap:resource-set:" + s.Name
		}
		items = append(items, it)
	}
	return items
}

// sameSet reports whether fields have the patterns of a set, no more, no less.
func (d *definitions) sameSet(fields []recordField, members []int, s *policy.ResourceSet) bool {
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

// joinUsages makes one item of the permissions that are all parts of a locally
// defined usage for one resource.
func (d *definitions) joinUsages(items []item) {
	type key struct{ local, resource, condition string }
	groups := map[key][]int{}
	var order []key
	for i := range items {
		f := &items[i].fields[0]
		if s := f.ref.Statement; f.allow && !f.added && s.Local != "" && s.Allow {
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

// noteUsed remembers the names that are to be defined.
func (d *definitions) noteUsed(items []item) {
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
