// SPDX-License-Identifier: Apache-2.0

package robotspolicy

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// TestCaddyfilePage compares the syntax in docs/reference/caddyfile.md with the comments of the functions that parse
// it. It also checks that the page names every placeholder.
func TestCaddyfilePage(t *testing.T) {
	const name = "docs/reference/caddyfile.md"
	text, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	page, shown := string(text), map[string]bool{}
	page = regexp.MustCompile("(?ms)^<!-- syntax (\\S+) -->\n```text\n.*?^```\n").ReplaceAllStringFunc(page, func(block string) string {
		file := regexp.MustCompile(`syntax (\S+)`).FindStringSubmatch(block)[1]
		shown[file] = true
		return "<!-- syntax " + file + " -->\n```text\n" + syntaxIn(t, file) + "```\n"
	})
	for _, pattern := range []string{"*.go", "console/*.go", "internal/caddyside/*/*.go"} {
		files, err := filepath.Glob(pattern)
		if err != nil {
			t.Fatal(err)
		}
		for _, file := range files {
			if syntaxIn(t, file) != "" && !shown[file] && file != "internal/caddyside/recorders/crawlerlog.go" { // it has no options
				t.Errorf("%s does not show the syntax in %s", name, file)
			}
		}
	}
	for _, p := range placeholders {
		if !strings.Contains(page, "`{"+placeholderPrefix+p.name+"}`") && !strings.Contains(page, "`."+p.name+"`") {
			t.Errorf("%s does not name the placeholder %s", name, p.name)
		}
	}
	if page == string(text) {
		return
	}
	if !*update {
		t.Fatalf("%s is out of date: go test -run TestCaddyfilePage -update .", name)
	}
	if err := os.WriteFile(name, []byte(page), 0o644); err != nil {
		t.Fatal(err)
	}
}

// syntaxIn returns the Caddyfile syntax in the comments of a Go file, with the indentation of Caddyfiles.
func syntaxIn(t *testing.T, file string) string {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if strings.HasSuffix(file, "_test.go") {
		return ""
	}
	m := regexp.MustCompile(`(?s) Syntax:\n//\n(.*?)\nfunc `).FindStringSubmatch(string(text))
	if m == nil {
		return ""
	}
	var b strings.Builder
	for line := range strings.Lines(m[1] + "\n") {
		if code, ok := strings.CutPrefix(line, "//\t"); ok {
			b.WriteString(code)
		}
	}
	return b.String()
}
