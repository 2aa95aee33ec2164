// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// The comparison with a public collection says how much is recognised and what is not.
func TestCrawlersCheckAgainst(t *testing.T) {
	file := filepath.Join(t.TempDir(), "list.json")
	write := func(text string) {
		t.Helper()
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write(`[{"pattern": "GPTBot", "tags": ["ai-crawler"], "instances": ["GPTBot/1.0"]}, {"pattern": "Unheard", "tags": ["seo"], "instances": ["UnheardOf/1.0"]}]`)
	out, err := runCrawlers(t, "--check-against", file)
	if err != nil || !strings.Contains(out, "1 of 1, 100.0%") || !strings.Contains(out, "1 of 2, 50.0%") ||
		!strings.HasSuffix(out, "not recognised, of crawler-user-agents:\n  Unheard (seo): UnheardOf/1.0\n") {
		t.Errorf("%v\n%s", err, out)
	}
	if out, err = runCrawlers(t, "--json", "--check-against", file); err != nil || !strings.Contains(out, `"list": "crawler-user-agents"`) {
		t.Errorf("%v\n%s", err, out)
	}
	for _, args := range [][]string{{"GPTBot", "--check-against", file}, {"--check-against", "no-such-file"}} {
		if _, err := runCrawlers(t, args...); err == nil {
			t.Errorf("%q: no error", args)
		}
	}
	write("User-agent: *")
	if _, err := runCrawlers(t, "--check-against", file); err == nil {
		t.Error("a file that is no collection is read")
	}
}
