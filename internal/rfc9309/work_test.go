// SPDX-License-Identifier: Apache-2.0

package rfc9309

import (
	"fmt"
	"runtime"
	"strings"
	"testing"
)

// Comparing two files takes little memory, whatever they contain. If too many answers differ, the comparison is not
// complete.
func TestCompareMemory(t *testing.T) {
	long := "/" + strings.Repeat("%%e2", 600)
	for name, c := range map[string]struct {
		text     string
		complete bool
	}{
		"long rules that meet":            {"User-agent: *\n" + lettered(100, "Disallow: "+long+"%[1]s\nAllow: "+long+"%[1]s*\n"), false},
		"preferences above groups":        {lettered(2000, "Content-Usage: /%s train-ai=n\n") + lettered(200, "User-agent: bot%s\nDisallow: /%[1]s/\n"), false},
		"groups that differ, times rules": {"User-agent: *\n" + lettered(1000, "Disallow: /%s/\n") + lettered(600, "User-agent: bot%s\nDisallow: /\n"), false},
	} {
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		d := Compare(Parse([]byte(c.text), nil), Parse([]byte("User-agent: *\nAllow: /\n"), nil), nil)
		runtime.ReadMemStats(&after)
		mib := (after.TotalAlloc - before.TotalAlloc) >> 20
		t.Log(name, mib, d.Complete)
		if mib > 64 || d.Complete != c.complete {
			t.Errorf("%s: a file of %d KiB takes %d MiB, complete: %t", name, len(c.text)>>10, mib, d.Complete)
		}
	}
}

// Compare finds a path that only two of hundreds of long patterns decide, or reports that the comparison is not complete.
func TestCompareFindsMeetingsOfLongPatterns(t *testing.T) {
	for size, complete := range map[int]bool{20: true, 200: true, 4000: false} {
		long := "/" + strings.Repeat("p", size)
		same := "User-agent: *\n" + lettered(100, "Allow: "+long+"%s/*/t\n") + "Disallow: " + long + "W/k\nDisallow: " + long + "Wx/k\n"
		c := Compare(Parse([]byte(same+"Disallow: "+long+"W*/k\n"), nil), Parse([]byte(same), nil), nil)
		if c.Complete != complete || complete && c.Differ == 0 {
			t.Errorf("patterns of %d bytes: complete: %t, %d differ", size, c.Complete, c.Differ)
		}
	}
}

// lettered repeats a text with different letters.
func lettered(n int, format string) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, format, strings.Repeat("x", i%32)+strings.Repeat("y", i/32))
	}
	return b.String()
}
