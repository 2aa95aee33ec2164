// SPDX-License-Identifier: Apache-2.0

package integration_test

import (
	"maps"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/robotspolicy/caddy-robots-policy/integration_test/internal/caddytest"
	"github.com/robotspolicy/caddy-robots-policy/internal/testkit"
)

// Every command in the README and in the pages exists, and has the options that the page shows. This includes commands
// that are part of a sentence.
func TestCommandsOfThePages(t *testing.T) {
	testkit.Slow(t)
	shown := commandsOfThePages(t)
	run := func(args ...string) (string, error) {
		cmd := caddytest.Command(t.TempDir(), append([]string{"robots-policy"}, args...)...)
		out, err := cmd.CombinedOutput()
		return string(out), err
	}
	help := map[string]string{}
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
	}
	if t.Logf("%d commands", len(shown)); len(shown) < 20 {
		t.Errorf("found only %d commands", len(shown))
	}
}

// commandsOfThePages returns the commands on the pages, each with its page. The keys are the commands, and the values
// are the pages. Pipes, and other parts that the shell interprets, are left out.
func commandsOfThePages(t *testing.T) map[string]string {
	t.Helper()
	shown := map[string]string{}
	for _, page := range append(pagesOfDocs(t), "../README.md", "../packaging/README.md") {
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
