// SPDX-License-Identifier: Apache-2.0

package robotstxt

import (
	"fmt"
	"runtime"
	"strings"
	"testing"

	"github.com/robotspolicy/caddy-robots-policy/policy"
)

// Thousands of groups can share one very long line. The line must not be copied for each group, because otherwise a file
// written by a stranger could fill the memory.
func TestLongLinesOfManyGroups(t *testing.T) {
	var names strings.Builder
	for i := range 2_000 {
		fmt.Fprintf(&names, "User-agent: bot%c%c%cx\n", 'a'+i%26, 'a'+i/26%26, 'a'+i/676)
	}
	for name, lines := range map[string]string{
		"a path":              "Disallow: /" + strings.Repeat("abcd", 32<<10),
		"a path with *":       "Disallow: /" + strings.Repeat("a:*b", 32<<10),
		"the same path":       strings.Repeat("Allow: /"+strings.Repeat("a:*b", 5<<10)+"\n", 20),
		"a preference":        "Disallow: /a\nContent-Usage: /" + strings.Repeat("a:*b", 25<<10) + " train-ai=n",
		"an unreadable line":  "Disallow: /a\nApp-Directives: " + strings.Repeat("\x01", 100<<10),
		"a number of seconds": "Disallow: /a\nCrawl-delay: " + strings.Repeat("1", 400<<10),
	} {
		text := []byte(names.String() + lines + "\n")
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		Parse(text).Below(policy.Compile(&policy.Spec{})).Notes()
		runtime.ReadMemStats(&after)
		if mib := (after.TotalAlloc - before.TotalAlloc) >> 20; mib > 64 {
			t.Errorf("%s: a file of %d KiB takes %d MiB", name, len(text)>>10, mib)
		}
	}
}
