// SPDX-License-Identifier: Apache-2.0

package verify

import (
	"fmt"
	"strings"
	"testing"

	"github.com/robotspolicy/caddy-robots-policy/internal/testkit"
)

// Reading an address list takes little memory and time, whatever the list contains.
func TestListBudget(t *testing.T) {
	testkit.Nightly(t)
	fill := func(format string) string {
		var b strings.Builder
		for i := 0; b.Len() < maxListBytes-200; i++ {
			fmt.Fprintf(&b, format, i>>16&255, i>>8&255, i&255)
		}
		return b.String()
	}
	for name, data := range map[string]string{
		"plain text":     fill("10.%d.%d.%d\n"),
		"JSON":           `{"prefixes":[` + fill(`{"ipv4Prefix":"10.%d.%d.%d/32"},`) + `{"ipv4Prefix":"10.0.0.0/32"}]}`,
		"JSON, nested":   strings.Repeat("[", maxListBytes-1),
		"JSON, objects":  strings.Repeat(`{"a":`, maxListBytes/5-1),
		"empty lines":    strings.Repeat("\n", maxListBytes),
		"one long word":  strings.Repeat("1", maxListBytes),
		"a page of tags": "<html>" + strings.Repeat("<a>", maxListBytes/3-10),
		"a page":         "<html><pre>" + fill("<li>10.%d.%d.%d"),
		"IPv6":           fill("2001:db8:%x:%x:%x::\n"),
	} {
		t.Run(name, func(t *testing.T) {
			testkit.Budget(t, func() {
				if p, err := parseList([]byte(data)); err == nil && len(p.prefixes) == 0 {
					t.Error("a list without addresses was accepted")
				}
			})
		})
	}
}
