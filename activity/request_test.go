// SPDX-License-Identifier: Apache-2.0

package activity

import (
	"strings"
	"testing"
	"unicode/utf8"
)

// Clients choose the texts of a request, so the limit applies to every text. Each invalid byte would otherwise need
// three bytes.
func TestStoredTextIsLimited(t *testing.T) {
	for _, c := range []struct{ name, text, want string }{
		{"short", "/a", "/a"},
		{"as long as the limit", strings.Repeat("a", MaxText), strings.Repeat("a", MaxText)},
		{"too long", strings.Repeat("a", MaxText+1), strings.Repeat("a", MaxText)},
		{"a character across the limit", strings.Repeat("a", MaxText-1) + "é", strings.Repeat("a", MaxText-1)},
		{"an invalid byte", "/a\xff", "/a\uFFFD"},
		{"many invalid bytes", strings.Repeat("a\xff", MaxText), strings.Repeat("a\uFFFD", MaxText/4)},
		{"only bytes inside of characters", strings.Repeat("\x80", 2*MaxText), "\uFFFD"},
	} {
		if got := Text(c.text); got != c.want || len(got) > MaxText || !utf8.ValidString(got) {
			t.Errorf("%s: %d bytes %q, want %d bytes %q", c.name, len(got), got, len(c.want), c.want)
		}
	}
}
