// SPDX-License-Identifier: Apache-2.0

package crawlers

import (
	"testing"
	"unicode"
)

// The names that are counted and displayed never contain control characters.
func TestAutomatedNamesArePrintable(t *testing.T) {
	for ua, want := range map[string]string{
		"My\u202ebot/1.0":                    "Mybot",
		"\u2066Evil\u2069Crawler/2":          "EvilCrawler",
		"x\u0085bot/1":                       "xbot",
		"a\u200bbot/1 (+https://a.example/)": "abot",
	} {
		name, ok := Automated(ua)
		if !ok || name != want {
			t.Errorf("%q: %q, %v, want %q", ua, name, ok, want)
		}
		for _, r := range name {
			if !unicode.IsPrint(r) {
				t.Errorf("%q: %q", ua, name)
			}
		}
	}
}
