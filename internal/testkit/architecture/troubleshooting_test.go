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

// TestTroubleshootingQuotesMessages checks that each message in the tables of docs/operate/troubleshooting.md exists in
// the code.
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

// maxPageLines is the maximum number of lines of a page (docs/contributing/style.md).
const maxPageLines = 250

// longPages lists pages that may be longer, because people do not read them from start to end.
var longPages = map[string]bool{
	"decisions.md": true, "messages.md": true, // these pages have a paragraph for each decision, or for each code
	"caddyfile.md": true, "commands.md": true, // readers look up single entries, which come from the code
}

// maxHowTo is the maximum number of words, without code, of a page about one job.
const maxHowTo = 500

// TestPages checks the number of lines of each page in docs and of the README, and the number of words of each how-to
// page.
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
