// SPDX-License-Identifier: Apache-2.0

package architecture

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"unicode"
)

var (
	fenced   = regexp.MustCompile("(?ms)^```.*?^```")
	mdLink   = regexp.MustCompile(`\]\(([^)\s]+)\)`)
	mdHeader = regexp.MustCompile(`(?m)^#+ (.+)$`)
)

// anchors returns the URL fragments of a page's headings, in GitHub's form.
func anchors(page string) map[string]bool {
	found := map[string]bool{}
	for _, m := range mdHeader.FindAllStringSubmatch(fenced.ReplaceAllString(page, ""), -1) {
		found[strings.Map(func(r rune) rune {
			switch {
			case r == ' ':
				return '-'
			case unicode.IsLetter(r), unicode.IsDigit(r), r == '-', r == '_':
				return unicode.ToLower(r)
			}
			return -1
		}, m[1])] = true
	}
	return found
}

// TestLinksOfTheDocs checks that every relative link leads to an existing file and heading, and that every page of
// docs/ can be reached from the README.
func TestLinksOfTheDocs(t *testing.T) {
	var pages []string
	for _, pattern := range []string{"*.md", "docs/*.md", "docs/*/*.md", "integration_test/*.md", "packaging/*.md"} {
		found, err := filepath.Glob(filepath.Join(root, pattern))
		if err != nil {
			t.Fatal(err)
		}
		pages = append(pages, found...)
	}
	links := map[string][]string{} // the pages that a page links to
	for _, page := range pages {
		text, err := os.ReadFile(page)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range mdLink.FindAllStringSubmatch(fenced.ReplaceAllString(string(text), ""), -1) {
			if strings.Contains(m[1], "://") || strings.HasPrefix(m[1], "mailto:") {
				continue
			}
			path, anchor, _ := strings.Cut(m[1], "#")
			target := page
			if path != "" {
				target = filepath.Join(filepath.Dir(page), filepath.FromSlash(path))
			}
			there, err := os.ReadFile(target)
			if info, statErr := os.Stat(target); err != nil && (statErr != nil || !info.IsDir()) {
				t.Errorf("%s: the link %s leads to no file", page, m[1])
				continue
			}
			if anchor != "" && strings.HasSuffix(target, ".md") && !anchors(string(there))[anchor] {
				t.Errorf("%s: the link %s names a heading that %s does not have", page, m[1], target)
			}
			links[page] = append(links[page], target)
		}
	}
	reached := map[string]bool{}
	var walk func(page string)
	walk = func(page string) {
		if reached[page] {
			return
		}
		reached[page] = true
		for _, to := range links[page] {
			walk(to)
		}
	}
	walk(filepath.Join(root, "README.md"))
	for _, page := range pages {
		if !reached[page] && strings.HasPrefix(page, filepath.Join(root, "docs")) {
			t.Errorf("no links lead from the README to %s", page)
		}
	}
	if len(pages) < 15 {
		t.Errorf("only %d pages", len(pages))
	}
}

// TestPackagesAreDocumented compares the table in docs/contributing/architecture.md with the packages
// of this module.
func TestPackagesAreDocumented(t *testing.T) {
	text, err := os.ReadFile(filepath.Join(root, "docs/contributing/architecture.md"))
	if err != nil {
		t.Fatal(err)
	}
	listed := map[string]bool{}
	for line := range strings.Lines(string(text)) {
		if cells := strings.Split(line, "|"); len(cells) == 4 {
			for _, m := range regexp.MustCompile("`([^`]+)`").FindAllStringSubmatch(cells[1], -1) {
				listed[m[1]] = true
			}
		}
	}
	for dir := range readImports(t) {
		if !listed[dir] {
			t.Errorf("docs/contributing/architecture.md has no row for %s", dir)
		}
		delete(listed, dir)
	}
	for dir := range listed {
		t.Errorf("docs/contributing/architecture.md names %s, which does not exist", dir)
	}
}

// TestWordsToAvoid checks that no page has a word that docs/contributing/style.md says to avoid.
func TestWordsToAvoid(t *testing.T) {
	avoid := regexp.MustCompile(`(?i)\b(kept|told|teller|patience|mended|deaf|sayable|claiming|roster|asker|whom)\b`)
	for _, pattern := range []string{"*.md", "docs/*.md", "docs/*/*.md", "integration_test/*.md", "packaging/*.md"} {
		pages, err := filepath.Glob(filepath.Join(root, pattern))
		if err != nil {
			t.Fatal(err)
		}
		for _, page := range pages {
			text, err := os.ReadFile(page)
			if err != nil {
				t.Fatal(err)
			}
			if word := avoid.Find(fenced.ReplaceAll(text, nil)); word != nil && filepath.Base(page) != "style.md" {
				t.Errorf("%s has the word %q", page, word)
			}
		}
	}
}
