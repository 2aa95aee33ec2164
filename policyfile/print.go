// SPDX-License-Identifier: Apache-2.0

package policyfile

import (
	"bytes"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/robotspolicy/caddy-robots-policy/crawlers"
	"github.com/robotspolicy/caddy-robots-policy/internal/leaf/english"
	"github.com/robotspolicy/caddy-robots-policy/policy"
)

// PrintOptions configures how a policy is printed.
type PrintOptions struct {
	Header string
	// Comments maps the index of a rule in Spec.Rules to the comment to print before the rule. LineComments maps the
	// line of a statement to the comment to print before the statement. The comments in these maps do not have a "#".
	Comments     map[int]string
	LineComments map[int]string
	KeyComments  map[string]string // comments before the keys of the file, such as "publish"
	Footer       string
	// Catalog has the facts for recognizing and verifying the policy's own crawlers. If it is nil, these facts are not
	// printed.
	Catalog *crawlers.Catalog
}

// Print returns a policy file for a Spec. Parsing the file gives a Spec with the same meaning, if two conditions are
// met: all names are valid, and no rule both allows and disallows the same usage of a pattern. File.Print also writes
// the facts for recognizing and verifying the policy's own crawlers.
func Print(spec *policy.Spec) []byte { return PrintWith(spec, PrintOptions{}) }

// Print returns a policy file for the policy, without the comments of the original file.
func (f *File) Print() []byte { return PrintWith(f.Spec, PrintOptions{Catalog: f.Catalog}) }

// PrintWith is like Print with options.
func PrintWith(spec *policy.Spec, o PrintOptions) []byte {
	w := &printer{options: o, sets: map[string]*policy.ResourceSet{}, usages: map[string]*policy.LocalUsage{}}
	for i := range spec.Resources {
		w.sets[spec.Resources[i].Name] = &spec.Resources[i]
	}
	for i := range spec.Usages {
		if u := &spec.Usages[i]; isDefinable(u) {
			w.usages[u.Name] = u
		}
	}
	w.comment(o.Header)
	w.plain("version", formatVersion)
	for _, f := range fileFields {
		if f.print != nil {
			w.section(func() { w.commented(o.KeyComments[f.name], func() { f.print(w, spec) }) })
		}
	}
	w.section(func() { w.comment(o.Footer) })
	return w.out.Bytes()
}

type printer struct {
	out     bytes.Buffer
	indent  int
	options PrintOptions
	sets    map[string]*policy.ResourceSet
	usages  map[string]*policy.LocalUsage // usages that a file can define
}

const indentation = "  "

func (w *printer) line(text string) {
	for range w.indent {
		w.out.WriteString(indentation)
	}
	w.out.WriteString(text)
	w.out.WriteByte('\n')
}

// section writes an empty line and a section of the file. If the section is empty, nothing is written.
func (w *printer) section(write func()) {
	w.out.WriteByte('\n')
	n := w.out.Len()
	write()
	if w.out.Len() == n {
		w.out.Truncate(n - 1)
	}
}

func (w *printer) under(key string, write func()) (written bool) {
	start := w.out.Len()
	w.line(key + ":")
	n := w.out.Len()
	w.indent++
	write()
	w.indent--
	if written = w.out.Len() > n; !written {
		w.out.Truncate(start)
	}
	return written
}

// item writes the lines of a map as one element of a list, with "- " before the first line.
func (w *printer) item(write func()) {
	start := w.out.Len() + w.indent*len(indentation)
	w.indent++
	write()
	w.indent--
	copy(w.out.Bytes()[start:], "- ")
}

func (w *printer) comment(text string) {
	if text == "" {
		return
	}
	for _, line := range splitLines(text) {
		w.line(strings.TrimRight("# "+english.OneLine(line), " "))
	}
}

// commented calls write, and puts a comment before the text that write adds. If write does not add any text, the
// comment is left out, too.
func (w *printer) commented(text string, write func()) {
	start := w.out.Len()
	w.comment(text)
	n := w.out.Len()
	if write(); w.out.Len() == n {
		w.out.Truncate(start)
	}
}

func (w *printer) plain(key, value string) { w.line(key + ": " + value) }

func (w *printer) plainIf(differs bool, key, value string) {
	if differs {
		w.plain(key, value)
	}
}

func (w *printer) text(key, text string) {
	w.plainIf(text != "", key, Scalar(text))
}

func (w *printer) texts(key string, texts []string) {
	if len(texts) == 1 {
		w.plain(key, Scalar(texts[0]))
		return
	}
	w.under(key, func() { w.items(texts) })
}

func (w *printer) items(texts []string) {
	for _, text := range texts {
		w.line("- " + Scalar(text))
	}
}

var (
	plainScalar = regexp.MustCompile(`^[A-Za-z0-9/_.](?:[A-Za-z0-9/_.~+ -]|:[A-Za-z0-9/_.~+-])*$`)
	numberLike  = regexp.MustCompile(`^[0-9.:eExo_+-]+$`)
	guessed     = regexp.MustCompile(`(?i)^(?:y|n|yes|no|on|off|true|false|null|\.nan|\.inf|\d{4}-\d\d?-\d\d?.*)$`)
)

// Scalar returns a text as the value of a key in a policy file. The text is in quotes if YAML needs them.
func Scalar(s string) string {
	switch {
	case plainScalar.MatchString(s) && !strings.HasSuffix(s, " ") && !numberLike.MatchString(s) && !guessed.MatchString(s) && !strings.HasPrefix(s, "..."):
		return s
	case strings.ContainsAny(s, `"\`) && !strings.ContainsFunc(s, func(c rune) bool { return c < ' ' || c > '~' }):
		return "'" + strings.ReplaceAll(s, "'", "''") + "'"
	}
	return strconv.Quote(s)
}

var bracketed = regexp.MustCompile(`^[A-Za-z][A-Za-z0-9_-]*(?::[A-Za-z][A-Za-z0-9_-]*)?$`)

const maxBracketed = 60

// names writes a short list in brackets.
func (w *printer) names(key string, names []string) {
	short := len(names) > 1 && !slices.ContainsFunc(names, func(s string) bool { return !bracketed.MatchString(s) || guessed.MatchString(s) })
	if text := "[" + strings.Join(names, ", ") + "]"; short && len(text) <= maxBracketed {
		w.plain(key, text)
		return
	}
	w.texts(key, names)
}

func texts[T fmt.Stringer](values []T) []string {
	all := make([]string, len(values))
	for i, v := range values {
		all[i] = v.String()
	}
	return all
}

func plainTexts[S ~string](values []S) []string {
	all := make([]string, len(values))
	for i, v := range values {
		all[i] = string(v)
	}
	return all
}
