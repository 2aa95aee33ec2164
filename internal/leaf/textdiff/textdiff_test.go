// SPDX-License-Identifier: Apache-2.0

package textdiff

import (
	"strings"
	"testing"
)

// Merge combines mine and theirs, two edited versions of the same text. It calls choice only for lines that mine and
// theirs change in different ways.
func TestMerge(t *testing.T) {
	const base = "a\nb\nc\nd\n"
	for _, c := range []struct{ name, mine, theirs, want string }{
		{"apart", "a\nB\nc\nd\n", "a\nb\nc\nD\n", "a\nB\nc\nD\n"},
		{"nothing of mine", base, "a\nb\n", "a\nb\n"},
		{"nothing of theirs", "x\n", base, "x\n"},
		{"the same", "a\nx\nd\n", "a\nx\nd\n", "a\nx\nd\n"},
		{"both add at the end", base + "mine\n", base + "theirs\n", base + "theirs\nmine\n"},
		{"both add at the start", "mine\n" + base, "theirs\n" + base, "theirs\nmine\n" + base},
		{"one changes what the other adds to", "a\nb\nc\nD\n", base + "e\n", "a\nb\nc\nD\ne\n"},
		{"the other way round", base + "e\n", "a\nb\nc\nD\n", "a\nb\nc\nD\ne\n"},
		{"one adds before what the other changes", "a\nx\nb\nc\nd\n", "a\nB\nc\nd\n", "a\nx\nB\nc\nd\n"},
		{"one deletes, the other adds elsewhere", "a\nd\n", base + "e\n", "a\nd\ne\n"},
		{"both change a line", "a\nb\nC\nd\n", "a\nb\nX\nd\n", ""},
		{"one deletes what the other changes", "a\nd\n", "a\nB\nc\nd\n", ""},
	} {
		got, clashes, _ := Merge(base, c.mine, c.theirs, func(string) string { return "" })
		if len(clashes) > 0 != (c.want == "") || len(clashes) == 0 && got != c.want {
			t.Errorf("%s: %q, clashes %+v", c.name, got, clashes)
		}
		for choice, want := range map[string]string{"mine": c.mine, "theirs": c.theirs} {
			if got, _, _ := Merge(base, c.mine, c.theirs, func(string) string { return choice }); len(clashes) > 0 && got != want {
				t.Errorf("%s, %s: %q", c.name, choice, got)
			}
		}
	}
}

// Comparing a text from a client never uses much memory.
func TestTooLong(t *testing.T) {
	long := strings.Repeat("a\nb\n", 2_000)
	other := strings.Repeat("c\nd\n", 2_000)
	if _, _, ok := Merge(long, other, "x", func(string) string { return "" }); ok {
		t.Error("long texts are merged")
	}
	if d := Compare(long, other); !d.Long || d.Rows != nil {
		t.Errorf("%d rows", len(d.Rows))
	}
	if d := Compare(long+"x\n"+other, long+"y\nz\n"+other); d.Long || d.Added != 2 || d.Removed != 1 || len(d.Rows) != 11 {
		t.Errorf("%+v", d)
	}
}
