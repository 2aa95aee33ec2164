// SPDX-License-Identifier: Apache-2.0

package policyfile

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/robotspolicy/caddy-robots-policy/internal/testkit"
	"github.com/robotspolicy/caddy-robots-policy/policy"
)

// FuzzLoad loads arbitrary bytes. Load always returns, and it returns a File if and only if there is no error.
// Diagnostics are single lines of text with a place in the file. If a file loads, it can be printed, and the printed
// file has the same meaning.
func FuzzLoad(f *testing.F) {
	for _, pattern := range []string{"testdata/good/*.yaml", "testdata/bad/*.yaml", "../examples/policies/*.yaml"} {
		for _, path := range filesOf(f, pattern) {
			data, err := os.ReadFile(path)
			if err != nil {
				f.Fatal(err)
			}
			f.Add(data)
		}
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		file, ds := LoadWith("fuzz.yaml", data, Options{Now: testNow})
		if (file == nil) != ds.HasErrors() {
			t.Fatalf("file %v, problems %v", file != nil, ds.Error())
		}
		lines := len(splitLines(string(data)))
		for _, d := range ds {
			text := d.String()
			if strings.ContainsAny(text, "\n\r\x00\x1b") || !utf8.ValidString(text) || d.Message == "" {
				t.Errorf("%q", text)
			}
			if d.Pos.Line < 1 || d.Pos.Line > max(lines, 1)+1 || d.Pos.Column < 1 {
				t.Errorf("%s: the file has %d lines", text, lines)
			}
		}
		if b, err := json.Marshal(ds); err != nil || !json.Valid(b) {
			t.Errorf("%v", err)
		}
		if strings.ContainsAny(strings.ReplaceAll(ds.Text(), "\n", ""), "\r\x00\x1b") {
			t.Errorf("%q", ds.Text())
		}
		if file != nil {
			checkFile(t, file)
			checkPrinted(t, file)
		}
	})
}

// checkFile checks properties of a loaded file that other packages rely on.
func checkFile(t *testing.T, f *File) {
	t.Helper()
	for i := range f.Spec.Rules {
		r := &f.Spec.Rules[i]
		if len(r.For) == 0 {
			t.Errorf("rule %d is for nobody", i)
		}
		for _, s := range r.Statements {
			if s.Pattern.IsZero() || s.Pos.Line == 0 || !s.Allow && (s.Qualifiers != nil || s.Local != "") || s.Allow && s.Usage == policy.Other {
				t.Errorf("%+v", s)
			}
		}
		for _, d := range r.AppDirectives {
			if d.Pattern.IsZero() || d.App == "" || !strings.HasPrefix(d.Text, d.App) {
				t.Errorf("%+v", d)
			}
		}
		for _, e := range r.EngineRules {
			if e.Pattern.IsZero() || e.Name == "" || e.Rule.IsEmpty() {
				t.Errorf("%+v", e)
			}
		}
		for _, text := range append(append([]string{r.Name, r.PermissionsReference}, r.UsagePurposes...), f.Spec.SitemapsOf("")...) {
			if strings.ContainsAny(text, "\r\n") {
				t.Errorf("a line break in %q would add a line to robots.txt", text)
			}
		}
	}
}

// FuzzLoadDirectives does the same as FuzzLoad with the values of single keys, because mutations of whole files seldom
// change them.
func FuzzLoadDirectives(f *testing.F) {
	for _, s := range []string{
		"examplesearch;widgets=?0", `a;b="c", d;e=1.5;f=:AAE=:`, "a;b=@1659578233;c=%\"f%c3%bc\"", "max-snippet:20, noindex", "unavailable_after: 2026-12-31T23:59:59Z, notranslate",
		"/a*b$", "*.pdf$", "/%7e%2A", "until-2027-01-31", "250-chars", "Googlebot", "category:search", "operator:Google", "www.example.com", "*.example.com", "https://example.com/a?b", "2.5", "[::1]:80", "[::", "bücher.example",
	} {
		for i := range templates {
			f.Add(s, byte(i))
		}
	}
	f.Fuzz(func(t *testing.T, s string, which byte) {
		if strings.ContainsAny(s, "\r\n") {
			return
		}
		quoted := "'" + strings.ReplaceAll(s, "'", "''") + "'"
		template := templates[int(which)%len(templates)]
		file, ds := LoadWith("fuzz.yaml", []byte("version: 1\nrules:\n  - "+strings.ReplaceAll(template, "X", quoted)+"\n"), Options{Now: testNow})
		if (file == nil) != ds.HasErrors() {
			t.Fatalf("file %v, problems %v", file != nil, ds.Error())
		}
		if file != nil {
			checkFile(t, file)
			checkPrinted(t, file)
		}
	})
}

// templates are rules in which a value replaces X.
var templates = []string{
	"for: everyone\n    app-directives: X", "for: everyone\n    robots-tag: [X, {paths: /a/, rules: X}]", "for: everyone\n    disallow: {crawl: X, index: [/b, X]}",
	"for: everyone\n    allow: {index: {paths: /a/, time-limit: X}}", "for: everyone\n    allow: {present-snippet: {paths: X, max-length: 20-chars}}",
	"for: X\n    name: X", "for: everyone\n    hosts: X", "for: A\n    permissions-reference: X", "for: A\n    usage-purposes: X", "for: A\n    crawl-delay: X",
	"for: everyone\n    allow: {present: {paths: /a/, must-use-resource: X}}",
}

// TestHostileFiles loads files that need the most work for each byte. It does not measure the time, but fails at the
// time limit of the test program if loading does not end.
func TestHostileFiles(t *testing.T) {
	size := MaxSize - 64
	if !testkit.Long() {
		size = size / 64 * testkit.Rounds(1, 4)
	}
	fill := func(unit string) []byte { return []byte(strings.Repeat(unit, size/len(unit))) }
	for name, data := range map[string][]byte{
		"brackets":     fill("["),
		"braces":       fill("{"),
		"hyphens":      fill("- "),
		"nested":       fill("a: {"),
		"questions":    fill("? "),
		"quotes":       fill("\"a\n"),
		"colons":       fill("a: b: "),
		"unknown keys": append([]byte("version: 1\n"), bytes.ReplaceAll(fill("abcdefgh: 1\n"), []byte("abcd"), []byte("abce"))...),
		"empty items":  append([]byte("rules:\n"), fill("-\n")...),
		"rules":        append([]byte("version: 1\nrules:\n"), fill("- {for: A, disallow: {index: /}}\n")...),
		"stars":        append([]byte("version: 1\nrules:\n- for: everyone\n  disallow:\n    index:\n"), fill("    - \"/*a*b*c*d$\"\n")...),
		"tokens":       append([]byte("version: 1\nrules:\n- disallow: {crawl: /}\n  for:\n"), fill("  - Googelbto\n")...),
		"long line":    append([]byte("version: 1\nrules:\n- for: everyone\n  disallow:\n    crawl: /"), fill("a*")...),
		"comments":     append([]byte("version: 1\n"), fill("# a\n\n")...),
		"aliases":      append([]byte("a: &a [1]\nb: ["), fill("*a, ")...),
		"tabs":         fill("\ta\n"),
		"wild sets":    wildFile(1000, 100, 95),
		"wild rules":   wildFile(20, 4000, 4000),
		"wild paths":   wildFile(testkit.Rounds(5_000, 15_000), 1, 1),
	} {
		t.Run(name, func(t *testing.T) {
			if testing.Short() && name == "wild paths" {
				t.Skip("as large as a policy can be")
			}
			_, ds := LoadWith("hostile.yaml", data, Options{Now: testNow})
			if len(ds) > maxDiagnostics {
				t.Errorf("%d diagnostics", len(ds))
			}
		})
	}
}

// wildFile returns a policy file with a named set of patterns with wildcards. Some rules disallow the set, and others
// allow it. The arguments are the numbers of patterns, of disallowing rules and of allowing rules.
func wildFile(paths, disallow, allow int) []byte {
	var b strings.Builder
	b.WriteString("version: 1\nresources:\n  many:\n")
	for i := range paths {
		fmt.Fprintf(&b, "    - \"/*a%d/*b\"\n", i)
	}
	b.WriteString("rules:\n")
	for range disallow {
		b.WriteString("  - for: everyone\n    disallow:\n      index: many\n")
	}
	for i := range allow {
		fmt.Fprintf(&b, "  - for: %s\n    allow:\n      index: many\n", benchAgent(i))
	}
	return []byte(b.String())
}
