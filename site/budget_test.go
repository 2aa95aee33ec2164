// SPDX-License-Identifier: Apache-2.0

package site

import (
	"fmt"
	"strings"
	"testing"

	"github.com/robotspolicy/caddy-robots-policy/internal/testkit"
	"github.com/robotspolicy/caddy-robots-policy/policyfile"
)

// Loading a policy file of the maximum size needs little memory and time, whatever its content is.
func TestPolicyBudget(t *testing.T) {
	testkit.Nightly(t)
	if testing.Short() {
		t.Skip("loads large policies")
	}
	repeat := func(size int, format string) string {
		var b strings.Builder
		for i := 0; b.Len() < size; i++ {
			fmt.Fprintf(&b, format, i)
		}
		return b.String()
	}
	fill := func(format string) string { return repeat(policyfile.MaxSize-1000, format) }
	const head = "version: 1\nrules:\n"
	for name, text := range map[string]string{
		"paths":          head + "  - for: everyone\n    disallow:\n      crawl:\n" + fill("        - /p%d/\n"),
		"wildcards":      head + "  - for: everyone\n    disallow:\n      crawl:\n" + fill("        - /*%d*a\n"),
		"rules":          head + fill("  - for: GPTBot\n    disallow: {crawl: /p%d/}\n"),
		"audiences":      head + "  - for: [" + fill("Bot%d, ") + "GPTBot]\n    disallow: {crawl: /}\n",
		"some audiences": head + "  - for: [" + repeat(480_000, "Bot%d, ") + "GPTBot]\n    disallow: {crawl: /}\n",
		"pairs":          head + "  - for: [" + repeat(8000, "Bot%d, ") + "GPTBot]\n    hosts: [" + repeat(7000, "h%d.example, ") + "x.example]\n    disallow: {crawl: /}\n",
		"hosts":          head + "  - for: everyone\n    hosts: [" + fill("h%d.example, ") + "x.example]\n    disallow: {crawl: /}\n",
		"expectations":   "version: 1\nrules: []\nexpect:\n" + fill("  - GPTBot may crawl /p%d/\n"),
		"nested":         head + strings.Repeat("[", policyfile.MaxSize/2),
		"billion laughs": "a: &a [x,x,x]\n" + fill("k%d: &a [*a,*a,*a,*a,*a,*a,*a,*a]\n"),
		"unknown keys":   head + fill("  - k%d: 1\n"),
		"not YAML":       strings.Repeat("\x00\x01\xff", policyfile.MaxSize/3),
	} {
		t.Run(name, func(t *testing.T) {
			testkit.Within(t, 96<<20, testkit.BudgetCPU, func() { Load("policy.yaml", []byte(text)) })
		})
	}
}
