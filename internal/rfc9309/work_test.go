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
		"long rules that meet":            {"User-agent: *\n" + lettered(100, "Disallow: "+long+"%[1]s\nAllow: "+long+"%[1]s*\n"), true},
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

// lettered repeats a text with different letters.
func lettered(n int, format string) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, format, strings.Repeat("x", i%32)+strings.Repeat("y", i/32))
	}
	return b.String()
}
