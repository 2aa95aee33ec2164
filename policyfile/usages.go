// SPDX-License-Identifier: Apache-2.0

package policyfile

import (
	"cmp"
	"regexp"
	"slices"
	"strings"
	"time"

	"go.yaml.in/yaml/v3"

	"github.com/robotspolicy/caddy-robots-policy/policy"
)

type localUsage struct {
	name      string
	pos       policy.Pos
	parts     []policy.UsagePart
	composite bool
	used      bool
}

type qualified struct {
	usage      policy.Usage
	ok         bool
	qualifiers []qualifierText
}

type qualifierText struct {
	name  policy.QualifierName
	value string
	node  *yaml.Node
}

var qualifiedFields = append(fields[*qualified]{
	key("usage", "the usage that the qualifiers limit, such as present-snippet", usageShape, readQualifiedUsage, nil).must(),
}, qualifierFields(func(q *qualified) *[]qualifierText { return &q.qualifiers })...)

// qualifierFields returns the qualifiers of ACAP 1.0 section 2.5 as keys of a map.
func qualifierFields[T any](into func(T) *[]qualifierText) fields[T] {
	var fs fields[T]
	for name, accepted := range policy.AllQualifiers {
		values := textShape(accepted, "")
		if name == policy.QualifierProhibitedModification {
			values = oneOrMore(values)
		}
		fs = append(fs, key(string(name), "a condition of the allow entry: "+accepted, values, func(p *parser, value *yaml.Node, t T) {
			add := func(n *yaml.Node, text string) { *into(t) = append(*into(t), qualifierText{name, text, n}) }
			if name == policy.QualifierProhibitedModification {
				p.texts(value, string(name), add)
			} else if text, ok := p.text(value, string(name)); ok {
				add(value, text)
			}
		}, nil))
	}
	return fs
}

func readQualifiedUsage(p *parser, n *yaml.Node, q *qualified) {
	text, ok := p.text(n, "usage")
	if !ok {
		return
	}
	if q.usage, q.ok = policy.ParseUsage(text); !q.ok {
		p.unknownUsage(n, nil, text, false, nil)
	}
}

// readUsages parses the section "usages". It parses qualified usages first, because combined usages refer to them.
func readUsages(p *parser, n *yaml.Node, _ *policy.Spec) {
	var simple, combined []*localUsage
	values := map[*localUsage]*yaml.Node{}
	p.eachPair(n, "usages", func(key, value *yaml.Node) {
		if !p.isName(key, "a usage") {
			return
		}
		if u, ok := policy.ParseUsage(key.Value); ok {
			p.report(posOf(key), "bad-name", "", "%s is already the name of a usage; choose another name", quote(u.String()))
			return
		}
		local := &localUsage{name: key.Value, pos: posOf(key)}
		if value.Kind == yaml.MappingNode {
			p.qualifiedUsage(local, value)
			simple = append(simple, local)
		} else {
			local.composite = true
			combined = append(combined, local)
			values[local] = value
		}
		p.usages[strings.ToLower(key.Value)] = local
	})
	for _, local := range combined {
		p.combinedUsage(local, values[local])
	}
	// ACAP requires that a definition precedes the definitions that use it (section 2.7).
	for _, local := range append(simple, combined...) {
		p.spec.Usages = append(p.spec.Usages, policy.LocalUsage{Name: local.name, Pos: local.pos, Parts: local.parts})
	}
}

// isDefinable reports whether the syntax of policy files can define the usage u. A file can define a single usage with
// qualifiers, or a list of usages. The usages in a list cannot have qualifiers, unless they are the names of other
// defined usages.
func isDefinable(u *policy.LocalUsage) bool {
	isQualified := func(part policy.UsagePart) bool { return part.Local == "" && part.Qualifiers != nil }
	return len(u.Parts) == 1 || len(u.Parts) > 1 && !slices.ContainsFunc(u.Parts, isQualified)
}

func printUsages(w *printer, spec *policy.Spec) {
	w.under("usages", func() {
		for i := range spec.Usages {
			if u := &spec.Usages[i]; w.usages[u.Name] == u {
				w.under(u.Name, func() { w.usage(u) })
			}
		}
	})
}

func (w *printer) usage(u *policy.LocalUsage) {
	if part := u.Parts[0]; len(u.Parts) == 1 && part.Local == "" && part.Qualifiers != nil {
		w.plain("usage", part.Usage.String())
		w.qualifiers(part.Qualifiers)
		return
	}
	for _, part := range u.Parts {
		w.items([]string{cmp.Or(part.Local, part.Usage.String())})
	}
}

func (w *printer) qualifiers(q *policy.Qualifiers) {
	var names []string
	values := map[string][]string{}
	for _, text := range q.Strings() {
		name, value, _ := strings.Cut(text, "=")
		if values[name] == nil {
			names = append(names, name)
		}
		values[name] = append(values[name], value)
	}
	for _, name := range names {
		w.texts(name, values[name])
	}
}

// qualifiedUsage parses a usage with qualifiers (ACAP 1.0 section 2.7.1).
func (p *parser) qualifiedUsage(local *localUsage, n *yaml.Node) {
	var q qualified
	readMap(p, n, "the usage "+quote(local.name), qualifiedFields, &q)
	if !q.ok {
		return
	}
	if len(q.qualifiers) == 0 {
		p.report(posOf(n), "bad-qualifier", "", "the usage %s has no qualifiers, so it is the same as %s; add a qualifier, or use %s itself", quote(local.name), q.usage, q.usage)
		return
	}
	local.parts = []policy.UsagePart{{Usage: q.usage, Qualifiers: p.qualifiers(q.usage, q.qualifiers)}}
}

// combinedUsage parses several usages under one name (ACAP 1.0 section 2.7.2).
func (p *parser) combinedUsage(local *localUsage, n *yaml.Node) {
	seen := map[policy.Usage]bool{}
	p.texts(n, "a usage in "+quote(local.name), func(n *yaml.Node, text string) {
		var parts []policy.UsagePart
		other := p.usages[strings.ToLower(text)]
		usage, standard := policy.ParseUsage(text)
		switch {
		case standard && usage.IsRight():
			p.report(posOf(n), "bad-usage", "", "a combination under \"usages\" cannot contain %s; write it in the rule itself", quote(text))
			return
		case standard && usage == policy.Other:
			p.report(posOf(n), "bad-usage", "", `"other" can only be disallowed, and a name under "usages" can only be allowed; leave "other" out`)
			return
		case standard:
			parts = []policy.UsagePart{{Usage: usage}}
		case other == nil:
			p.unknownUsage(n, nil, text, true, nil)
			return
		case other.composite:
			p.report(posOf(n), "bad-usage", "", "%s combines several usages, so it cannot be a part of another combination; repeat its usages here", quote(text))
			return
		default:
			other.used = true
			for _, part := range other.parts {
				part.Local = other.name
				parts = append(parts, part)
			}
		}
		for _, part := range parts {
			if seen[part.Usage] {
				p.report(posOf(n), "bad-usage", "", "%s is already in %s; name each usage once", quote(part.Usage.String()), quote(local.name))
				continue
			}
			seen[part.Usage] = true
			local.parts = append(local.parts, part)
		}
	})
}

var dateForm = regexp.MustCompile(`^[0-9]{4}-[0-9]{2}-[0-9]{2}$`)

func (p *parser) qualifiers(u policy.Usage, texts []qualifierText) *policy.Qualifiers {
	qs := &policy.Qualifiers{}
	for _, t := range texts {
		if err := qs.SetQualifier(u, t.name, t.value); err != nil {
			day, isDay := strings.CutPrefix(t.value, "until-")
			if _, invalid := time.Parse(time.DateOnly, day); isDay && dateForm.MatchString(day) && invalid != nil && t.name == policy.QualifierTimeLimit {
				p.report(posOf(t.node), "bad-qualifier", "", "the day %s does not exist; write the last day on which the usage is allowed, as until-YYYY-MM-DD", day)
				continue
			}
			near := ""
			for _, guess := range []string{strings.ToLower(strings.Join(strings.Fields(t.value), "-")), "until-" + t.value, t.value + "-chars"} {
				if near == "" && guess != t.value && new(policy.Qualifiers).SetQualifier(u, t.name, guess) == nil {
					near = guess
				}
			}
			p.report(posOf(t.node), "bad-qualifier", near, "%s", err)
		}
	}
	return qs
}

func usageNames() []string { return texts(policy.Usages()) }
