// SPDX-License-Identifier: Apache-2.0

package integration_test

import (
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/robotspolicy/caddy-robots-policy/integration_test/internal/caddytest"
)

// Every command that the README and the pages show exists, and has the options that are shown
// with it. Those that need nothing but a policy file run.
func TestCommandsOfThePages(t *testing.T) {
	shown := commandsOfThePages(t)
	dir := t.TempDir()
	example, err := os.ReadFile("../examples/site-policy.yaml")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"site-policy.yaml", "examples/site-policy.yaml"} {
		if err := os.MkdirAll(filepath.Dir(filepath.Join(dir, name)), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, name), example, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	run := func(args ...string) (string, error) {
		cmd := caddytest.Command(t.TempDir(), append([]string{"robots-policy"}, args...)...)
		cmd.Dir = dir
		if !filepath.IsAbs(cmd.Path) {
			cmd.Path, _ = filepath.Abs(cmd.Path)
		}
		out, err := cmd.CombinedOutput()
		return string(out), err
	}
	help := map[string]string{}
	ran := 0
	for _, command := range slices.Sorted(maps.Keys(shown)) {
		words := strings.Fields(command)
		name := words[:1]
		if len(words) > 1 && words[0] == "crawlers" && (words[1] == "export" || words[1] == "update") {
			name = words[:2]
		}
		key := strings.Join(name, " ")
		if _, ok := help[key]; !ok {
			out, err := run(append(slices.Clone(name), "--help")...)
			if err != nil || !strings.Contains(out, "robots-policy "+key) {
				t.Errorf("%s: %s: %v", shown[command], key, err)
			}
			help[key] = out
		}
		for _, word := range words {
			option, _, _ := strings.Cut(word, "=")
			if strings.HasPrefix(option, "--") && !regexp.MustCompile(regexp.QuoteMeta(option)+`\b`).MatchString(help[key]) {
				t.Errorf("%s: %s has no %s: %s", shown[command], key, option, command)
			}
		}
		if runs := []string{"check site-policy.yaml", "explain examples/site-policy.yaml --agent GPTBot", "explain site-policy.yaml --agent Googlebot", "crawlers export", "schema"}; slices.ContainsFunc(runs, func(s string) bool { return strings.HasPrefix(command, s) }) {
			ran++
			if out, err := run(words...); err != nil {
				t.Errorf("%s: %s: %v\n%s", shown[command], command, err, out)
			}
		}
	}
	t.Logf("%d commands, of which %d ran", len(shown), ran)
	if len(shown) < 20 || ran < 3 {
		t.Errorf("found only %d commands, and ran %d", len(shown), ran)
	}
}

// commandsOfThePages are the commands that pages show, without what a shell does with them, and
// the page of each.
func commandsOfThePages(t *testing.T) map[string]string {
	t.Helper()
	pages, err := filepath.Glob("../docs/*.md")
	if err != nil {
		t.Fatal(err)
	}
	shown := map[string]string{}
	for _, page := range append(pages, "../README.md", "../packaging/README.md") {
		text, err := os.ReadFile(page)
		if err != nil {
			t.Fatal(err)
		}
		joined := strings.ReplaceAll(string(text), "\\\n", " ")
		for _, m := range regexp.MustCompile("caddy robots-policy ([a-z][^|>#`;&\n]*)").FindAllStringSubmatch(joined, -1) {
			command := strings.TrimSpace(strings.NewReplacer("[", "", "]", "", "'", "", `"`, "", ")", "", ",", " ").Replace(m[1]))
			if name := strings.Fields(command); regexp.MustCompile(`^[a-z-]+[.:]?$`).MatchString(name[0]) && len(command) < 200 {
				shown[strings.TrimRight(command, ".:")] = page
			}
		}
	}
	return shown
}
