// SPDX-License-Identifier: Apache-2.0

package crawlers

import (
	"fmt"
	"strings"
	"testing"

	"github.com/robotspolicy/caddy-robots-policy/internal/testkit"
)

// Reading a file as a catalog takes little memory and time, whatever the file contains.
func TestCatalogBudget(t *testing.T) {
	testkit.Nightly(t)
	const size = 1 << 20 // the maximum size of a policy file
	fill := func(format string) string {
		var b strings.Builder
		for i := 0; b.Len() < size-1000; i++ {
			fmt.Fprintf(&b, format, i)
		}
		return b.String()
	}
	const head = "version: 1\nas-of: 2026-11-22\n"
	for name, data := range map[string]string{
		"crawlers":         head + "crawlers:\n" + fill("  Bot%d:\n    category: search\n    operator: O\n"),
		"nested":           head + strings.Repeat("[", size/2),
		"flow mappings":    head + strings.Repeat("{a: ", size/5),
		"aliases":          head + "a: &a [x]\n" + "b: [" + fill("*a, ") + "]\n",
		"billion laughs":   head + "a: &a [x,x,x,x,x,x,x,x,x]\n" + fill("k%d: &a [*a,*a,*a,*a,*a,*a,*a,*a]\n"),
		"unknown keys":     head + fill("k%d: 1\n"),
		"one long line":    head + "crawlers: " + strings.Repeat("x", size),
		"comments":         head + fill("# %d\n"),
		"not YAML":         strings.Repeat("\x00\x01\xff", size/3),
		"patterns":         head + "crawlers:\n  Bot:\n    patterns:\n" + fill("      - a%d\n"),
		"deep indentation": head + "crawlers:\n" + deep(1400),
	} {
		t.Run(name, func(t *testing.T) {
			testkit.Budget(t, func() {
				if _, err := Parse("crawlers.yaml", []byte(data)); err == nil {
					t.Error("the file was accepted as a catalog")
				}
			})
		})
	}
}

func deep(n int) string {
	var b strings.Builder
	for i := range n {
		b.WriteString(strings.Repeat(" ", i) + "a:\n")
	}
	return b.String()
}
