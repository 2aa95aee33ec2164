// SPDX-License-Identifier: Apache-2.0

package architecture

import (
	"go/scanner"
	"go/token"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
)

// retired lists words that users must not see. The field use has the words to use instead, which
// docs/reference/glossary.md explains.
var retired = []struct{ words, use string }{
	{`catalogu\w+`, "catalog"},
	{`licen[c]e\w*`, "license"},
	{`recognis\w+|behaviou\w+|colou?r?our\w*|neighbour\w*|honour\w*|organisation\w*|normalis\w+`, "the American spelling"},
	{`unclassified|category:KIND|primary kinds?|crawler kinds?`, "category"},
	{`claimed`, "unverified"},
	{`visits?|visits_log|visits_total`, "request"},
	{`refus(?:e|es|ed|ing|al|als)|would_refuse`, "block"},
	{`(?:search )?guards?`, "safety check or search-loss limit"},
	{`verdicts?`, "decision"},
	{`alarms?`, "alert"},
	{`meta elements?|robots elements?`, "meta tag"},
	{`rights registers?|registers? of rights`, "rights documents and signals"},
	{`strangers?|unknown (?:clients?|automated clients?)`, "unlisted client"},
	{`publications?`, "version"},
	{`prohibitions?`, "disallow entry"},
	{`permissions?`, "allow entry"},
	{`(?:closed|open) to (?:crawlers|everyone|search|AI|all)|shuts? out|stays? (?:closed|open)`, "disallowed or allowed"},
	{`activity stores?|--store`, "activity database"},
	{`faults?|trouble`, "error, warning or hint"},
	{`(?:at )?the edge|channel=\\?"edge`, "blocking"},
	{`closes? to`, "disallow for"},
	{`crawler_requests_total|fleet_nodes|clickhouse_behind_seconds`, "the new name of the metric"},
}

// exceptions lists places that may contain a retired word, because another project defines it there. Each place is a
// file, or "*" for every file, and a part of a line.
var exceptions = []struct{ file, line string }{
	{"*", "permissions-reference"},
	{"*", "agent-permissions.json"},
	{"docs/reference/glossary.md", ""},
	{"CONTRIBUTING.md", "DIR/catalogues"},                                // name of a folder with data of other projects
	{"internal/cli/policyinput/policyinput.go", "no permission to read"}, // a term of the operating system
	// Words that authors may use in policies and robots.txt files.
	{"policyfile/words.go", ""},
	{"policyfile/parser.go", "refuse"},
	{"policyfile/expect.go", "denied|forbidden"},
	{"robotstxt/import.go", "data[- ]?mining"},
	{"robotstxt/keys.go", "visit time"},
	{"tools/prose/rules.go", ""}, // words in patterns
	// Words in User-Agents.
	{"crawlers/catalog/academic-listed.yaml", "Please visit"},
	{"crawlers/catalog/none.yaml", "Visit Us"},
}

// TestRetiredWords looks for retired words in texts that users can see: pages, messages, templates, the schema, alerts
// and the dashboard.
func TestRetiredWords(t *testing.T) {
	t.Parallel()
	words, all := make([]*regexp.Regexp, len(retired)), make([]string, len(retired))
	for i := range retired {
		all[i] = retired[i].words
		words[i] = wholeWords(retired[i].words)
	}
	some := wholeWords(strings.Join(all, "|")) // fast check, because nearly no line contains a retired word
	for _, text := range seenByUsers(t) {
		if !some.MatchString(text.line) || excepted(text) {
			continue
		}
		for i, word := range words {
			if word.MatchString(text.line) {
				t.Errorf("%s:%d: write %s: %s", text.file, text.number, retired[i].use, strings.TrimSpace(text.line))
			}
		}
	}
}

func wholeWords(words string) *regexp.Regexp {
	return regexp.MustCompile(`(?i)(?:^|[^\w-])(?:` + words + `)(?:$|[^\w-])`)
}

func excepted(text seenLine) bool {
	for _, e := range exceptions {
		if (e.file == "*" || e.file == text.file) && strings.Contains(text.line, e.line) {
			return true
		}
	}
	return false
}

type seenLine struct {
	file, line string
	number     int
}

var (
	action  = regexp.MustCompile(`\{\{.*?\}\}`)
	literal = regexp.MustCompile(`"[^"]*"`)
)

// seenByUsers returns the lines of everything that users can see.
func seenByUsers(t *testing.T) (all []seenLine) {
	t.Helper()
	list := exec.Command("git", "ls-files", "*.md", "*.go", "*.html", "*.json", "*.yaml", "*.svg")
	list.Dir = root
	out, err := list.Output()
	if err != nil {
		t.Skip("this folder is not a git checkout")
	}
	for name := range strings.Lines(string(out)) {
		name = strings.TrimSpace(name)
		if !visible.MatchString(name) || invisible.MatchString(name) {
			continue
		}
		data, err := os.ReadFile(filepath.Join(root, name))
		if os.IsNotExist(err) {
			continue
		}
		if err != nil {
			t.Fatal(err)
		}
		if strings.HasSuffix(name, ".go") {
			all = append(all, literals(name, data)...)
			continue
		}
		for i, line := range strings.Split(string(data), "\n") {
			all = append(all, seenLine{name, action.ReplaceAllStringFunc(line, func(a string) string {
				return strings.Join(literal.FindAllString(a, -1), " ") // words that the code compares with or prints
			}), i + 1})
		}
	}
	if len(all) < 10_000 {
		t.Fatalf("only %d lines", len(all))
	}
	return all
}

var (
	visible   = regexp.MustCompile(`^(docs/|console/templates/|README|CONTRIBUTING|SECURITY|examples/|packaging/)|\.go$|report\.html$|crawlers/catalog/`)
	invisible = regexp.MustCompile(`_test\.go$|/testdata/|^(bench|internal/testkit|internal/rfc9309|integration_test)/|packaging/kubernetes/schema`)
)

// literals returns the string literals of a Go file, except imports. They include the tags of struct fields.
func literals(name string, data []byte) (all []seenLine) {
	fset := token.NewFileSet()
	file := fset.AddFile(name, -1, len(data))
	var s scanner.Scanner
	s.Init(file, data, nil, 0)
	imports := false
	for {
		pos, tok, lit := s.Scan()
		switch tok {
		case token.EOF:
			return all
		case token.IMPORT:
			imports = true
		case token.CONST, token.VAR, token.TYPE, token.FUNC:
			imports = false
		case token.STRING:
			if imports {
				continue
			}
			if text, err := strconv.Unquote(lit); err == nil {
				all = append(all, seenLine{name, text, fset.Position(pos).Line})
			}
		}
	}
}
