// SPDX-License-Identifier: Apache-2.0

package robotsserve_test

import (
	"os"
	"strings"
	"testing"

	"github.com/robotspolicy/caddy-robots-policy/policyfile"
	"github.com/robotspolicy/caddy-robots-policy/robotsserve"
)

// The robots.txt of a policy with five intentions, such as "no training", is short enough for people to read, even if
// its categories have many crawlers. The golden files show the result.
func TestFiveIntentionsAreShort(t *testing.T) {
	data, err := os.ReadFile("testdata/five-intentions.yaml")
	if err != nil {
		t.Fatal(err)
	}
	file, ds := policyfile.Load("five-intentions.yaml", data)
	if ds.HasErrors() {
		t.Fatal(ds)
	}
	for host, limit := range map[string]struct{ lines, size int }{"www.example.com": {60, 2 << 10}, "staging.example.com": {10, 2 << 10}} {
		f, _ := robotsserve.Render(file.Policy, host, robotsserve.Options{})
		lines, size := 0, 0
		for line := range strings.Lines(string(f.Body)) {
			if strings.HasPrefix(line, "User-agent: ") && strings.TrimSpace(line) != "User-agent: *" {
				continue
			}
			lines++
			size += len(line)
		}
		t.Logf("%s: %d lines of %d bytes", host, lines, size)
		if lines > limit.lines || size > limit.size {
			t.Errorf("%s: %d lines of %d bytes besides the names of crawlers, at most %v\n%s", host, lines, size, limit, f.Body)
		}
		if strings.Contains(string(f.Body), "**") || !strings.Contains(string(f.Body), "User-agent: *") {
			t.Errorf("%s", f.Body)
		}
	}
}
