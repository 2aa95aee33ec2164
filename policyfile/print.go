// SPDX-License-Identifier: Apache-2.0

package policyfile

import (
	"bytes"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/robotspolicy/caddy-robots-policy/crawlers"
	"github.com/robotspolicy/caddy-robots-policy/policy"
)

// PrintOptions change what PrintWith writes.
type PrintOptions struct {
	// Header is a comment for the top of the file, without "#".
	Header string
	// Comments are comments to put before rules, without "#", by the rules' places
	// in Spec.Rules.
	Comments map[int]string
	// LineComments are comments to put before statements, without "#", by the lines of
	// their positions.
	LineComments map[int]string
	// Footer is a comment for the end of the file.
	Footer string
	// Catalogue knows by which strings the policy's own crawlers are recognised, and
	// by what they are verified, which a Spec does not. Nil leaves it out.
	Catalogue *crawlers.Catalogue
}

// Print writes a Spec as a policy file that a person could have written. Reading
// it gives a Spec of the same meaning, if spec is one that a file can state: its
// names fit the grammar, and no rule both allows and disallows a usage of one
// pattern. By what the policy's own crawlers are recognised and verified is not in a
// Spec; use File.Print to keep it.
func Print(spec *policy.Spec) []byte { return PrintWith(spec, PrintOptions{}) }

// Print writes the policy as a file without the comments of the original.
func (f *File) Print() []byte { return PrintWith(f.Spec, PrintOptions{Catalogue: f.Catalogue}) }

// PrintWith is Print with options.
func PrintWith(spec *policy.Spec, o PrintOptions) []byte {
	w := &printer{spec: spec, lineComments: o.LineComments, sets: map[string]*policy.ResourceSet{}, usages: map[string]*policy.LocalUsage{}}
	for i := range spec.Resources {
		w.sets[spec.Resources[i].Name] = &spec.Resources[i]
	}
	for i := range spec.Usages {
		if u := &spec.Usages[i]; w.sayable(u) {
			w.usages[u.Name] = u
		}
	}
	w.comment(0, o.Header)
	w.line(0, "version: "+formatVersion)
	w.section(func() { w.texts(0, "sitemaps", spec.Sitemaps) })
	w.section(w.resources)
	w.section(w.localUsages)
	w.section(func() { w.crawlers(o.Catalogue) })
	w.section(func() { w.rules(o.Comments) })
	w.section(w.enforcement)
	w.section(w.publish)
	w.section(w.rights)
	w.section(w.expect)
	w.section(func() { w.comment(0, o.Footer) })
	return w.out.Bytes()
}

// printer writes a policy file.
type printer struct {
	out  bytes.Buffer
	spec *policy.Spec

	lineComments map[int]string

	sets   map[string]*policy.ResourceSet
	usages map[string]*policy.LocalUsage // those that a file can define
}

func (w *printer) line(indent int, text string) {
	for range indent {
		w.out.WriteString("  ")
	}
	w.out.WriteString(text)
	w.out.WriteByte('\n')
}

// section writes a part of the file with an empty line before it, if there is
// anything in it.
func (w *printer) section(write func()) {
	w.out.WriteByte('\n')
	n := w.out.Len()
	write()
	if w.out.Len() == n {
		w.out.Truncate(n - 1)
	}
}

func (w *printer) comment(indent int, text string) {
	if text == "" {
		return
	}
	for _, line := range splitLines(text) {
		w.line(indent, strings.TrimRight("# "+oneLine(line), " "))
	}
}

// texts writes a key with a value, or with a list of them.
func (w *printer) texts(indent int, key string, values []string) {
	switch len(values) {
	case 0:
	case 1:
		w.line(indent, key+": "+scalar(values[0]))
	default:
		w.line(indent, key+":")
		for _, v := range values {
			w.line(indent+1, "- "+scalar(v))
		}
	}
}

var (
	plainScalar = regexp.MustCompile(`^[A-Za-z0-9/_.](?:[A-Za-z0-9/_.~+ -]|:[A-Za-z0-9/_.~+-])*$`)
	numberLike  = regexp.MustCompile(`^[0-9.:eExo_+-]+$`)
	guessed     = regexp.MustCompile(`(?i)^(?:y|n|yes|no|on|off|true|false|null|\.nan|\.inf|\d{4}-\d\d?-\d\d?.*)$`)
)

// scalar is a text as YAML writes it, in quotes where a reader could doubt.
func scalar(s string) string {
	switch {
	case plainScalar.MatchString(s) && !strings.HasSuffix(s, " ") && !numberLike.MatchString(s) && !guessed.MatchString(s) && !strings.HasPrefix(s, "..."):
		return s
	case strings.ContainsAny(s, `"\`) && !strings.ContainsFunc(s, func(c rune) bool { return c < ' ' || c > '~' }):
		return "'" + strings.ReplaceAll(s, "'", "''") + "'"
	}
	return strconv.Quote(s)
}

func (w *printer) resources() {
	for i, set := range w.spec.Resources {
		if i == 0 {
			w.line(0, "resources:")
		}
		var paths []string
		for _, p := range set.Patterns {
			paths = append(paths, p.String())
		}
		w.texts(1, set.Name, paths)
	}
}

// sayable reports whether a file can define a usage: by one usage with qualifiers,
// or by usages without and names of such with.
func (w *printer) sayable(u *policy.LocalUsage) bool {
	if len(u.Parts) == 1 && u.Parts[0].Local == "" && u.Parts[0].Qualifiers != nil {
		return true
	}
	for _, part := range u.Parts {
		if part.Local == "" && part.Qualifiers != nil {
			return false
		}
	}
	return len(u.Parts) > 0
}

func (w *printer) localUsages() {
	first := true
	for i := range w.spec.Usages {
		u := &w.spec.Usages[i]
		if w.usages[u.Name] != u {
			continue
		}
		if first {
			w.line(0, "usages:")
			first = false
		}
		if part := u.Parts[0]; len(u.Parts) == 1 && part.Local == "" && part.Qualifiers != nil {
			w.line(1, u.Name+":")
			w.line(2, "usage: "+part.Usage.String())
			w.qualifiers(2, part.Qualifiers)
			continue
		}
		w.line(1, u.Name+":")
		for _, part := range u.Parts {
			name := part.Local
			if name == "" {
				name = part.Usage.String()
			}
			w.line(2, "- "+name)
		}
	}
}

// qualifiers writes the qualifiers of a permission as keys.
func (w *printer) qualifiers(indent int, q *policy.Qualifiers) {
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
		w.texts(indent, name, values[name])
	}
}

// crawlers writes what the policy knows otherwise than the built-in catalogue.
func (w *printer) crawlers(own *crawlers.Catalogue) {
	base, err := crawlers.Default()
	if err != nil {
		base = &crawlers.Catalogue{}
	}
	first := true
	for i := range w.spec.Crawlers {
		c := &w.spec.Crawlers[i]
		known, ok := base.Lookup(c.Token)
		if !ok {
			known = &crawlers.Crawler{Token: c.Token}
		}
		fields := crawlerFields(c, convertOne(known), known, ownRow(own, c.Token))
		if ok && len(fields) == 0 {
			continue
		}
		if first {
			w.line(0, "crawlers:")
			first = false
		}
		if len(fields) == 0 {
			w.line(1, scalar(c.Token)+": {}")
			continue
		}
		w.line(1, scalar(c.Token)+":")
		for _, f := range fields {
			if len(f.values) == 0 {
				w.line(2, f.name+": []")
			}
			if f.name == "ignores-star" || f.name == "robots-only" {
				w.line(2, f.name+": "+f.values[0])
				continue
			}
			w.texts(2, f.name, f.values)
		}
	}
}

// ownRow is what the policy's catalogue has for a crawler that its file mentions, or
// nil.
func ownRow(own *crawlers.Catalogue, token string) *crawlers.Crawler {
	if own == nil {
		return nil
	}
	if mine, ok := own.Lookup(token); ok && mine.FromPolicy {
		return mine
	}
	return nil
}

type rowField struct {
	name   string
	values []string
}

// crawlerFields are the fields of a row that makes the catalogue's entry into c, and
// into mine, which may be nil.
func crawlerFields(c *policy.Crawler, known policy.Crawler, entry, mine *crawlers.Crawler) (fields []rowField) {
	if mine == nil {
		mine = entry
	}
	add := func(differs bool, name string, values ...string) {
		if differs {
			fields = append(fields, rowField{name, values})
		}
	}
	add(c.Operator != known.Operator && c.Operator != "", "operator", c.Operator)
	add(c.Kind != known.Kind && c.Kind != "", "kind", c.Kind)
	add(len(mine.UserAgents) > 0 && !slices.Equal(mine.UserAgents, entry.UserAgents), "user-agent", mine.UserAgents...)
	add(!slices.Equal(c.Follows, known.Follows), "follows", c.Follows...)
	add(c.IgnoresStar != known.IgnoresStar, "ignores-star", strconv.FormatBool(c.IgnoresStar))
	add(!slices.Equal(c.Purposes, known.Purposes), "purposes", c.Purposes...)
	add(c.RobotsOnly != known.RobotsOnly, "robots-only", strconv.FormatBool(c.RobotsOnly))
	is, was := mine.Verification, entry.Verification
	add(!slices.Equal(is.AddressLists, was.AddressLists), "address-lists", is.AddressLists...)
	add(!slices.Equal(is.ReverseDNS, was.ReverseDNS), "reverse-dns", is.ReverseDNS...)
	add(len(c.IntendedGuards) > 0, "intended", c.IntendedGuards...)
	add(is.WebBotAuth != was.WebBotAuth && is.WebBotAuth != "", "signature-directory", is.WebBotAuth)
	return fields
}

func (w *printer) enforcement() {
	e := w.spec.Enforcement
	var lines []string
	add := func(set bool, text string) {
		if set {
			lines = append(lines, text)
		}
	}
	add(e.Status != 0 && e.Status != defaultStatus && !e.Close, "status: "+strconv.Itoa(e.Status))
	add(e.Impostors > policy.ModeOff, "impostors: "+e.Impostors.String())
	add(e.Message != "" && !e.Close, "message: "+scalar(e.Message))
	add(e.RetryAfter > 0 && !e.Close, "retry-after: "+strconv.FormatInt(int64((e.RetryAfter+time.Second-1)/time.Second), 10))
	add(e.Close, "action: close")
	switch {
	case len(lines) == 0 && e.Mode > policy.ModeOff:
		w.line(0, "enforcement: "+e.Mode.String())
	case len(lines) > 0:
		w.line(0, "enforcement:")
		w.line(1, "mode: "+max(e.Mode, policy.ModeOff).String())
		for _, text := range lines {
			w.line(1, text)
		}
	}
}

func (w *printer) publish() {
	p := w.spec.Publish
	var lines []string
	for _, s := range []struct {
		name     string
		is, than policy.Switch
		words    []string
	}{
		{"acap", p.ACAP, defaultPublish.ACAP, []string{"auto", "full", "off"}},
		{"user-agent-purpose", p.UserAgentPurpose, defaultPublish.UserAgentPurpose, onOff},
		{"content-usage", p.ContentUsage, defaultPublish.ContentUsage, contentUsageWords},
		{"control-tokens", p.ControlTokens, defaultPublish.ControlTokens, onOff},
		{"tdmrep", p.TDMRep, defaultPublish.TDMRep, onOff},
		{"action-requests", p.ActionRequests, defaultPublish.ActionRequests, onOff},
	} {
		if s.is != s.than {
			lines = append(lines, s.name+": "+switchName(s.is, s.words))
		}
	}
	if p.EveryoneNamed {
		lines = append(lines, "everyone: named")
	}
	if p.License != "" {
		lines = append(lines, "license: "+scalar(p.License))
	}
	lines = append(lines, rightsSwitches(p)...)
	if len(lines) > 0 || p.UsageTokens != (policy.UsageTokens{}) {
		w.line(0, "publish:")
	}
	for _, text := range lines {
		w.line(1, text)
	}
	w.usageTokens()
}

// expect writes the tests.
func (w *printer) expect() {
	for i, e := range w.spec.Expect {
		if i == 0 {
			w.line(0, "expect:")
		}
		w.line(1, "- "+scalar(e.String()))
	}
}
