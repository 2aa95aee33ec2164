// SPDX-License-Identifier: Apache-2.0

package acap

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"slices"
	"strings"
	"unicode/utf16"

	"github.com/robotspolicy/caddy-robots-policy/pathpattern"
	"github.com/robotspolicy/caddy-robots-policy/policy"
)

// setPrefix precedes the name of a set that is used in place of a pattern (section 2.4.4).
const setPrefix = "the-acap:resource-set:"

// These constants limit the size of definitions.
const (
	maxParts    = 64    // maximum number of usages in a locally defined usage
	maxPatterns = 10000 // maximum number of patterns in a set
)

// Parse reads the ACAP fields of a robots.txt according to section 3. It accepts any line ends, superfluous white
// space, and field names in any letter case. It skips all other lines, such as Allow and Disallow.
func Parse(text []byte) *File {
	p := parser{f: &File{}, sets: map[string]*Set{}, usages: map[string]*Usage{}}
	text = Decode(text)
	lines := strings.Split(strings.NewReplacer("\r\n", "\n", "\r", "\n").Replace(string(text)), "\n")
	for _, p.defining = range []bool{true, false} {
		for i, line := range lines {
			p.line = i + 1
			p.read(line)
		}
	}
	slices.SortStableFunc(p.f.Problems, func(a, b Problem) int { return a.Line - b.Line })
	p.separateAny()
	return p.f
}

// separateAny splits each record that is for "*" and also names crawlers, because ACAP does not permit such a record
// (section 2.3.1). The result is a record for "*" and a record for the named crawlers. The second one does not have the
// permissions, because they could override prohibitions in other records of the named crawlers.
func (p *parser) separateAny() {
	for i := range p.f.Records {
		r := &p.f.Records[i]
		if len(r.Crawlers) == 1 || !slices.Contains(r.Crawlers, "*") {
			continue
		}
		permits := func(f Field) bool { return f.Allow && !f.Unreadable }
		named := Record{Line: r.Line, Fields: slices.DeleteFunc(slices.Clone(r.Fields), permits)}
		for _, s := range r.Subs {
			if fields := slices.DeleteFunc(slices.Clone(s.Fields), permits); len(fields) > 0 {
				named.Subs = append(named.Subs, SubRecord{s.Purposes, fields})
			}
		}
		named.Crawlers = slices.DeleteFunc(slices.Clone(r.Crawlers), func(c string) bool { return c == "*" })
		r.Crawlers = []string{"*"}
		if len(named.Fields)+len(named.Subs) > 0 {
			p.f.Records = append(p.f.Records, named)
		}
	}
}

type parser struct {
	f      *File
	line   int
	sets   map[string]*Set
	usages map[string]*Usage
	open   bool // the last field was a crawler field

	defining bool // the parser is in its first pass, which reads the definitions
	records  int  // the line of the first record so far, or 0 if there is none
}

func (p *parser) problem(format string, args ...any) {
	p.f.Problems = append(p.f.Problems, Problem{p.line, fmt.Sprintf(format, args...)})
}

func (p *parser) read(line string) {
	if v, ok := strings.CutPrefix(line, "##ACAP version="); ok && p.f.Version == "" {
		p.f.Version = strings.TrimSpace(v)
	}
	line, _, _ = strings.Cut(line, "#")
	key, value, colon := strings.Cut(line, ":")
	key, value = strings.ToLower(strings.TrimSpace(key)), strings.TrimSpace(value)
	name, ok := strings.CutPrefix(key, "acap-")
	if !ok {
		return
	}
	if name == "ignore-conventional-records" {
		p.f.IgnoreConventional = true
		return
	}
	if defines := slices.Contains([]string{"qualified-usage", "composite-usage", "resource-set"}, name); defines != p.defining {
		if name == "crawler" && p.records == 0 {
			p.records = p.line
		}
		return
	}
	if !colon {
		p.problem("%q has no colon", key)
		return
	}
	words := strings.Fields(value)
	if len(words) == 0 {
		p.problem("%q has no value", key)
		return
	}
	switch {
	case name == "qualified-usage":
		p.qualified(words)
	case name == "composite-usage":
		p.composite(words)
	case name == "resource-set":
		p.set(words)
	case name == "crawler":
		p.crawler(value)
	case len(p.f.Records) == 0:
		p.problem("%q comes before any ACAP-crawler", key)
	default:
		p.field(name, value, words)
	}
}

func (p *parser) crawler(name string) {
	if !p.open {
		p.f.Records = append(p.f.Records, Record{Line: p.line})
		p.open = true
	}
	r := &p.f.Records[len(p.f.Records)-1]
	r.Crawlers = append(r.Crawlers, name)
	if len(r.Crawlers) > 1 && slices.Contains(r.Crawlers, "*") {
		p.problem(`"*" must be the only crawler of its record`)
	}
}

func (p *parser) field(name, value string, words []string) {
	r := &p.f.Records[len(p.f.Records)-1]
	p.open = false
	if r.PermissionsReference != "" {
		p.problem("nothing may follow ACAP-permissions-reference in its record")
		return
	}
	switch {
	case name == "permissions-reference":
		if len(r.Fields)+len(r.Subs)+len(r.Requests) > 0 {
			p.problem("ACAP-permissions-reference must be alone in its record")
			return
		}
		r.PermissionsReference = words[0]
	case name == "usage-purpose":
		if n := len(r.Subs); n > 0 && len(r.Subs[n-1].Fields) == 0 {
			r.Subs[n-1].Purposes = append(r.Subs[n-1].Purposes, value)
			return
		}
		r.Subs = append(r.Subs, SubRecord{Purposes: []string{value}})
	case strings.HasPrefix(name, "request-"):
		action := name[len("request-"):]
		switch {
		case action != policy.TakeDown && action != policy.ReCrawl:
			p.problem("there is no action %q", action)
		case len(r.Subs) > 0:
			p.problem("an ACAP-request-… field must come before the ACAP-usage-purpose fields of its record")
		case len(words) > 1 || !strings.HasPrefix(words[0], "/") || strings.ContainsAny(words[0], "*$"):
			p.problem("%q is not the path of one resource", value)
		default:
			r.Requests = append(r.Requests, Request{p.line, action, words[0]})
		}
	case strings.HasPrefix(name, "allow-"):
		p.add(r, name[len("allow-"):], words, true)
	case strings.HasPrefix(name, "disallow-"):
		p.add(r, name[len("disallow-"):], words, false)
	default:
		p.problem("there is no field %q", "acap-"+name)
	}
}

func (p *parser) add(r *Record, usage string, words []string, allow bool) {
	f := Field{Line: p.line, Allow: allow}
	if local, ok := inParens(usage); ok {
		u := p.usages[local]
		if u == nil {
			p.problem("no usage %q is defined", local)
			return
		}
		f.Local, f.Parts, f.Unreadable = u.Name, u.Parts, p.late(u.line, local)
		if !allow {
			p.problem("a disallow entry cannot use the locally defined usage %q; it is read as a disallow entry for each usage in the definition", local)
		}
	} else {
		u, ok := policy.ParseUsage(usage)
		if !ok || u.IsRight() {
			p.problem("there is no usage %q", usage)
			return
		}
		f.Parts = []Part{{Usage: u}}
	}
	if !p.resource(&f, words[0]) {
		return
	}
	p.qualify(&f, words[1:])
	if n := len(r.Subs); n > 0 {
		r.Subs[n-1].Fields = append(r.Subs[n-1].Fields, f)
		return
	}
	r.Fields = append(r.Fields, f)
}

func inParens(s string) (string, bool) {
	inner, ok := strings.CutPrefix(s, "(")
	if ok {
		inner, ok = strings.CutSuffix(inner, ")")
	}
	return inner, ok
}

// resource reads a resource specification (section 2.4.3).
func (p *parser) resource(f *Field, spec string) bool {
	if len(spec) < len(setPrefix) || !strings.EqualFold(spec[:len(setPrefix)], setPrefix) {
		folded, ok := fold(spec)
		if !ok {
			p.problem("%q is not a valid resource", spec)
			return false
		}
		f.Patterns, f.folded = []string{spec}, []pathpattern.Pattern{folded}
		return true
	}
	s := p.sets[strings.ToLower(spec[len(setPrefix):])]
	if s == nil {
		p.problem("no resource set %q is defined", spec[len(setPrefix):])
		return false
	}
	f.Set, f.Patterns, f.folded = s.Name, s.Patterns, s.folded
	f.Unreadable = p.late(s.line, s.Name) || f.Unreadable
	return true
}

// late reports whether a definition is late: name is defined on the given line, which is below the start of the first
// record. Section 2.7 forbids this. A permission that uses such a name does not permit anything.
func (p *parser) late(line int, name string) bool {
	if line < p.records {
		return false
	}
	p.problem("%q is defined on line %d, but definitions must be above all records", name, line)
	return true
}

// qualify adds the qualifiers in words to the permission f. If they have a mistake, it sets f.Unreadable, so that f
// permits nothing, because it is not known which restriction was intended.
func (p *parser) qualify(f *Field, words []string) {
	words = joinQualifiers(words)
	if len(words) == 0 {
		return
	}
	switch {
	case !f.Allow:
		p.problem("a disallow entry has no qualifiers")
		return
	case f.Local != "":
		p.problem("an allow entry for a locally defined usage cannot have qualifiers")
		f.Unreadable = true
		return
	}
	q, err := qualifiers(f.Parts[0].Usage, words)
	if err != nil {
		p.problem("%v", err)
		f.Unreadable = true
		return
	}
	f.Parts[0].Qualifiers = q
}

// joinQualifiers removes the optional white space from "name = value".
func joinQualifiers(words []string) []string {
	var joined []string
	for _, w := range words {
		n := len(joined)
		if n > 0 && (strings.HasPrefix(w, "=") || strings.HasSuffix(joined[n-1], "=")) {
			joined[n-1] += w
			continue
		}
		joined = append(joined, w)
	}
	return joined
}

// qualifiers parses the qualifiers of a usage. Section 2.4.1.2 writes "until-recrawl" where section 2.5.3.1 has
// "until-recrawled". qualifiers accepts both.
func qualifiers(u policy.Usage, words []string) (*policy.Qualifiers, error) {
	q := &policy.Qualifiers{}
	seen := map[string]bool{}
	for _, w := range words {
		name, value, ok := strings.Cut(w, "=")
		name = strings.ToLower(name)
		if !ok {
			return nil, fmt.Errorf("%q is not a qualifier", w)
		}
		if seen[name] && name != string(policy.QualifierProhibitedModification) {
			return nil, fmt.Errorf("%q occurs twice", name)
		}
		seen[name] = true
		if strings.EqualFold(value, "until-recrawl") {
			value = "until-recrawled"
		}
		if err := q.SetQualifier(u, policy.QualifierName(name), value); err != nil {
			return nil, err
		}
	}
	return q, nil
}

func (p *parser) qualified(words []string) {
	if len(words) < 3 {
		p.problem("ACAP-qualified-usage must have a name, a usage and qualifiers")
		return
	}
	u, ok := policy.ParseUsage(words[1])
	if !ok || u.IsRight() {
		p.problem("there is no usage %q", words[1])
		return
	}
	q, err := qualifiers(u, joinQualifiers(words[2:]))
	if err != nil {
		p.problem("%v", err)
		return
	}
	p.define(Usage{Name: words[0], Parts: []Part{{Usage: u, Qualifiers: q}}})
}

func (p *parser) composite(words []string) {
	def := Usage{Name: words[0]}
	for _, w := range words[1:] {
		if local, ok := inParens(strings.ToLower(w)); ok {
			other := p.usages[local]
			if other == nil || len(def.Parts)+len(other.Parts) > maxParts {
				p.problem("no usage %q is defined", local)
				return
			}
			for _, part := range other.Parts {
				part.Local = other.Name
				def.Parts = append(def.Parts, part)
			}
			continue
		}
		u, ok := policy.ParseUsage(w)
		if !ok || u.IsRight() || len(def.Parts) >= maxParts {
			p.problem("there is no usage %q", w)
			return
		}
		def.Parts = append(def.Parts, Part{Usage: u})
	}
	if len(def.Parts) == 0 {
		p.problem("ACAP-composite-usage must have a name and usages")
		return
	}
	p.define(def)
}

func (p *parser) define(u Usage) {
	key := strings.ToLower(u.Name)
	u.line = p.line
	if p.usages[key] != nil {
		p.problem("the usage %q is defined twice", u.Name)
		return
	}
	p.usages[key] = &u
	p.f.Usages = append(p.f.Usages, u)
}

func (p *parser) set(words []string) {
	key := strings.ToLower(words[0])
	s := Set{Name: words[0], Patterns: words[1:], line: p.line}
	switch {
	case p.sets[key] != nil:
		p.problem("the resource set %q is defined twice", words[0])
		return
	case len(s.Patterns) == 0 || len(s.Patterns) > maxPatterns:
		p.problem("ACAP-resource-set must have a name and paths")
		return
	}
	for _, pattern := range s.Patterns {
		folded, ok := fold(pattern)
		if !ok {
			p.problem("%q is not a valid resource", pattern)
			return
		}
		s.folded = append(s.folded, folded)
	}
	p.sets[key] = &s
	p.f.Sets = append(p.f.Sets, s)
}

// Decode returns the text of a file in UTF-8, without a byte order mark. If the mark says that the file is in UTF-16,
// Decode converts it.
func Decode(data []byte) []byte {
	var order binary.ByteOrder
	switch {
	case bytes.HasPrefix(data, []byte{0xff, 0xfe}):
		order = binary.LittleEndian
	case bytes.HasPrefix(data, []byte{0xfe, 0xff}):
		order = binary.BigEndian
	default:
		// Google's parser also skips a byte order mark that is cut off.
		for mark := "\ufeff"; mark != "" && len(data) > 0 && data[0] == mark[0]; mark = mark[1:] {
			data = data[1:]
		}
		return data
	}
	units := make([]uint16, len(data)/2-1)
	_, _ = binary.Decode(data[2:], order, units) // cannot fail, because the sizes match
	return []byte(string(utf16.Decode(units)))
}
