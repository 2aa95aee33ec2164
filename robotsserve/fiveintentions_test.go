// SPDX-License-Identifier: Apache-2.0

package robotsserve_test

import (
	"os"
	"strings"
	"testing"

	"github.com/robotspolicy/caddy-robots-policy/policyfile"
	"github.com/robotspolicy/caddy-robots-policy/robotsserve"
)

// A policy of five intentions is a file that a person reads to its end, whatever number
// of crawlers its categories have. The golden files show it.
func TestFiveIntentionsAreShort(t *testing.T) {
	data, err := os.ReadFile("testdata/five-intentions.yaml")
	if err != nil {
		t.Fatal(err)
	}
	file, ds := policyfile.Load("five-intentions.yaml", data)
	if ds.HasErrors() {
		t.Fatal(ds)
	}
	for host, most := range map[string]struct{ lines, octets int }{"www.example.com": {60, 2 << 10}, "staging.example.com": {10, 2 << 10}} {
		f, _ := robotsserve.Render(file.Policy, host, robotsserve.Options{})
		lines, octets := 0, 0
		for line := range strings.Lines(string(f.Body)) {
			if strings.HasPrefix(line, "User-agent: ") && strings.TrimSpace(line) != "User-agent: *" {
				continue
			}
			lines++
			octets += len(line)
		}
		t.Logf("%s: %d lines of %d octets", host, lines, octets)
		if lines > most.lines || octets > most.octets {
			t.Errorf("%s: %d lines of %d octets besides the names of crawlers, at most %v\n%s", host, lines, octets, most, f.Body)
		}
		if strings.Contains(string(f.Body), "**") || !strings.Contains(string(f.Body), "User-agent: *") {
			t.Errorf("%s", f.Body)
		}
	}
}
