// SPDX-License-Identifier: Apache-2.0

// Prose looks for patterns that plain English does not have, in the docs, the messages, the templates of pages and the
// comments. It fails if the number of matches of a pattern differs from the number in limits.txt. If there are fewer
// matches, -update lowers the number in limits.txt.
//
//	go -C tools run ./prose             # what is new, or the numbers
//	go -C tools run ./prose -list W3    # each place; several rules are separated by commas, "all" is all
package main

import (
	"cmp"
	_ "embed"
	"flag"
	"fmt"
	"log"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
)

//go:embed limits.txt
var limits string

type place struct {
	file string
	paragraph
}

// found maps the IDs of rules and the kinds of text to the places of the matches.
type found map[string]map[kind][]place

func main() {
	log.SetFlags(0)
	root := flag.String("root", "..", "the repository's folder")
	list := flag.String("list", "", "rules whose places are printed")
	in := flag.String("in", "", "print only places in files whose path begins with this")
	update := flag.Bool("update", false, "write limits.txt")
	flag.Parse()
	f, err := search(*root)
	if err != nil {
		log.Fatal(err)
	}
	switch {
	case *list != "":
		f.list(strings.Split(*list, ","), *in)
	case *update:
		if err := os.WriteFile("prose/limits.txt", []byte(f.table()), 0o644); err != nil {
			log.Fatal(err)
		}
	case f.table() != limits:
		f.compare()
		os.Exit(1)
	}
}

// search returns the matches in every file that git tracks.
func search(root string) (found, error) {
	out, err := exec.Command("git", "-C", root, "ls-files").Output()
	if err != nil {
		return nil, err
	}
	f := found{}
	for name := range strings.Lines(string(out)) {
		name = strings.TrimSuffix(name, "\n")
		text, err := os.ReadFile(filepath.Join(root, name))
		if err != nil || skipped(name) {
			continue // a deleted file
		}
		all, err := paragraphs(name, string(text))
		if err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		for _, p := range all {
			f.add(name, p)
		}
	}
	return f, nil
}

func skipped(name string) bool {
	return strings.Contains(name, "testdata/") || strings.Contains(name, "archive/") || strings.HasPrefix(name, "tools/")
}

func paragraphs(name, text string) ([]paragraph, error) {
	switch filepath.Ext(name) {
	case ".md":
		return fromMarkdown(text), nil
	case ".go":
		return fromGo(name, text)
	case ".html", ".tmpl":
		return fromTemplate(text), nil
	}
	return nil, nil
}

func (f found) add(file string, p paragraph) {
	for _, id := range violations(p.kind, p.text) {
		if f[id] == nil {
			f[id] = map[kind][]place{}
		}
		f[id][p.kind] = append(f[id][p.kind], place{file, p})
	}
}

func ids() (all []string) {
	for _, r := range rules {
		all = append(all, r.id)
	}
	return append(all, "M2")
}

// table returns a text with one line for each rule. The line has the number of matches for each kind.
func (f found) table() string {
	var b strings.Builder
	fmt.Fprintf(&b, "rule")
	for _, k := range kinds {
		fmt.Fprintf(&b, " %9s", k)
	}
	for _, id := range ids() {
		fmt.Fprintf(&b, "\n%-4s", id)
		for _, k := range kinds {
			fmt.Fprintf(&b, " %9d", len(f[id][k]))
		}
	}
	return b.String() + "\n"
}

// compare prints the rules whose numbers differ from the limits.
func (f found) compare() {
	fmt.Print("numbers that differ from tools/prose/limits.txt (a higher one: rewrite; a lower one: -update):\n\n")
	was := strings.Split(limits, "\n")
	for i, line := range strings.Split(f.table(), "\n") {
		if i < len(was) && line == was[i] {
			continue
		}
		fmt.Println(line, "  now")
		if i < len(was) {
			fmt.Println(was[i], "  allowed")
		}
	}
	fmt.Print("\n\"go -C tools run ./prose -list RULE\" prints the places; docs/contributing/style.md says what to write instead.\n")
}

func (f found) list(wanted []string, in string) {
	var lines []string
	for _, id := range ids() {
		if !slices.Contains(wanted, id) && wanted[0] != "all" {
			continue
		}
		for _, k := range kinds {
			places := f[id][k]
			slices.SortStableFunc(places, func(a, b place) int { return cmp.Or(strings.Compare(a.file, b.file), a.line-b.line) })
			for _, p := range places {
				if strings.HasPrefix(p.file, in) {
					lines = append(lines, fmt.Sprintf("%s:%d: %s: %s", p.file, p.line, id, p.text))
				}
			}
		}
	}
	slices.Sort(lines)
	for _, l := range lines {
		fmt.Println(l)
	}
}
