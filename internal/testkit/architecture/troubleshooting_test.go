// SPDX-License-Identifier: Apache-2.0

package architecture

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// TestTroubleshootingQuotesMessages: each message in a table of docs/operate/troubleshooting.md
// is one that the code has.
func TestTroubleshootingQuotesMessages(t *testing.T) {
	page, err := os.ReadFile(filepath.Join(root, "docs/operate/troubleshooting.md"))
	if err != nil {
		t.Fatal(err)
	}
	messages := regexp.MustCompile("(?m)^\\| `([^`]+)` \\|").FindAllStringSubmatch(string(page), -1)
	if len(messages) < 20 {
		t.Fatalf("only %d messages", len(messages))
	}
	var code strings.Builder
	err = filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
			return err
		}
		text, err := os.ReadFile(path)
		code.Write(text)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range messages {
		if escaped := strings.ReplaceAll(m[1], `"`, `\"`); !strings.Contains(code.String(), m[1]) && !strings.Contains(code.String(), escaped) {
			t.Errorf("no code has the message %q", m[1])
		}
	}
}

// maxPageLines is the longest that a page may be (docs/contributing/style.md).
const maxPageLines = 250

// longPages are not read from the start to the end.
var longPages = map[string]bool{
	"decisions.md": true, "messages.md": true, // a paragraph for each decision, and for each code
	"caddyfile.md": true, "commands.md": true, // looked up; the code has them
}

// maxHowTo is the number of words that a page about one job may have, without code.
const maxHowTo = 500

// TestPages: each page is short, and the README shorter.
func TestPages(t *testing.T) {
	pages, err := filepath.Glob(filepath.Join(root, "docs/*/*.md"))
	if err != nil {
		t.Fatal(err)
	}
	for _, page := range append(pages, filepath.Join(root, "README.md")) {
		text, err := os.ReadFile(page)
		if err != nil {
			t.Fatal(err)
		}
		limit := maxPageLines
		if filepath.Dir(page) == root {
			limit = 150
		}
		if words := len(strings.Fields(string(fenced.ReplaceAll(text, nil)))); filepath.Base(filepath.Dir(page)) == "how-to" && words > maxHowTo {
			t.Errorf("%s has %d words, more than %d: it may be about two jobs", page, words, maxHowTo)
		}
		if n := strings.Count(string(text), "\n"); n > limit && !longPages[filepath.Base(page)] {
			t.Errorf("%s has %d lines, more than %d: split it", page, n, limit)
		}
	}
}
