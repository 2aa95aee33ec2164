// SPDX-License-Identifier: Apache-2.0

package robotstxt

import (
	"fmt"
	"strings"
	"testing"
)

// Each group gets the preferences above the first group. A file with many of both must not multiply them.
func TestPreferencesAboveManyGroups(t *testing.T) {
	t.Parallel()
	var b strings.Builder
	for i := range 2_000 {
		fmt.Fprintf(&b, "Content-Usage: /p%d/ train-ai=n\n", i)
	}
	fmt.Fprintf(&b, "Content-Usage: /%s train-ai=n\n", strings.Repeat("x", 1000))
	for i := range 2_000 {
		fmt.Fprintf(&b, "User-agent: bot%c%d\nDisallow: /a/\n", 'a'+i%26, i)
	}
	f := read([]byte(b.String()))
	lines, bytes := 0, 0
	for _, g := range f.Groups {
		lines += len(g.lines)
		for _, l := range g.lines {
			bytes += len(l.value)
		}
	}
	if want := maxTop * len(f.Groups); lines != want || bytes > want*maxTopLine {
		t.Errorf("%d groups have %d lines of %d bytes, want %d lines of at most %d bytes", len(f.Groups), lines, bytes, want, maxTopLine)
	}
	if f.TooLong {
		t.Error("lines above the groups must not count as lines of groups")
	}
}
