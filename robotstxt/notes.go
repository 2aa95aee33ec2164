// SPDX-License-Identifier: Apache-2.0

package robotstxt

import (
	"fmt"
	"slices"
	"strings"
)

// maxLinesShown bounds the lines that a grouped note lists.
const maxLinesShown = 10

// Notes are about what crawlers do not read as it is written.
func (f *File) Notes() []Note { return slices.Clone(f.notes) }

// Grouped puts notes that say the same about several lines into one: the first, "and 412
// more like this, lines 7, 9, …".
func Grouped(notes []Note) (grouped []Note) {
	at := map[string]int{}
	lines := map[string][]string{}
	for _, n := range notes {
		if i, ok := at[n.kind]; ok && n.kind != "" {
			if line := fmt.Sprint(n.Line); n.Line > 0 && n.Line != grouped[i].Line && !slices.Contains(lines[n.kind][max(0, len(lines[n.kind])-1):], line) {
				lines[n.kind] = append(lines[n.kind], line)
			}
			continue
		}
		at[n.kind] = len(grouped)
		grouped = append(grouped, n)
	}
	for i := range grouped {
		if more := lines[grouped[i].kind]; len(more) > 0 {
			shown, rest := more, ""
			if len(more) > maxLinesShown {
				shown, rest = more[:maxLinesShown], ", …"
			}
			word := "lines"
			if len(more) == 1 {
				word = "line"
			}
			grouped[i].Message += fmt.Sprintf(" (and %d more like this, %s %s%s)", len(more), word, strings.Join(shown, ", "), rest)
		}
	}
	return grouped
}
