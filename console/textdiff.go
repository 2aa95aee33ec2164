// SPDX-License-Identifier: Apache-2.0

package console

import "strings"

// diffRow is a row of two texts side by side.
type diffRow struct {
	Kind           string // same, ins, del or fold
	OldNo, NewNo   int
	Old, New, Fold string
}

// textDiff is two texts side by side, with long equal parts folded.
type textDiff struct {
	Rows           []diffRow
	Added, Removed int
	Long           bool // too long to compare
}

// The bounds of a comparison.
const (
	maxDiffLines = 3000
	diffContext  = 3
	maxDiffRows  = 400
)

// lines splits a text; the last line end does not begin another line.
func lines(s string) []string {
	if s = strings.TrimSuffix(strings.ReplaceAll(s, "\r\n", "\n"), "\n"); s == "" {
		return nil
	}
	return strings.Split(s, "\n")
}

// diffTexts compares two texts line by line.
func diffTexts(before, now string) *textDiff {
	a, b := lines(before), lines(now)
	d := &textDiff{}
	if len(a) > maxDiffLines || len(b) > maxDiffLines {
		d.Long = before != now
		return d
	}
	all := make([]diffRow, 0, len(a)+len(b))
	i, j := 0, 0
	for _, m := range append(matches(a, b), [2]int{len(a), len(b)}) {
		for ; i < m[0]; i++ {
			all = append(all, diffRow{Kind: "del", OldNo: i + 1, Old: a[i]})
			d.Removed++
		}
		for ; j < m[1]; j++ {
			all = append(all, diffRow{Kind: "ins", NewNo: j + 1, New: b[j]})
			d.Added++
		}
		if i < len(a) && j < len(b) {
			all = append(all, diffRow{Kind: "same", OldNo: i + 1, NewNo: j + 1, Old: a[i], New: b[j]})
			i, j = i+1, j+1
		}
	}
	d.fold(all)
	return d
}

// matches are the pairs of equal lines of a longest common subsequence, in order.
func matches(a, b []string) (pairs [][2]int) {
	start := 0
	for start < len(a) && start < len(b) && a[start] == b[start] {
		pairs = append(pairs, [2]int{start, start})
		start++
	}
	endA, endB := len(a), len(b)
	for endA > start && endB > start && a[endA-1] == b[endB-1] {
		endA, endB = endA-1, endB-1
	}
	n, m := endA-start, endB-start
	table := make([]int16, (n+1)*(m+1)) // the length of what two suffixes have in common
	at := func(i, j int) *int16 { return &table[i*(m+1)+j] }
	for i := n - 1; i >= 0; i-- {
		for j := m - 1; j >= 0; j-- {
			if a[start+i] == b[start+j] {
				*at(i, j) = *at(i+1, j+1) + 1
			} else {
				*at(i, j) = max(*at(i+1, j), *at(i, j+1))
			}
		}
	}
	for i, j := 0, 0; i < n && j < m; {
		switch {
		case a[start+i] == b[start+j]:
			pairs = append(pairs, [2]int{start + i, start + j})
			i, j = i+1, j+1
		case *at(i+1, j) >= *at(i, j+1):
			i++
		default:
			j++
		}
	}
	for k := 0; endA+k < len(a); k++ {
		pairs = append(pairs, [2]int{endA + k, endB + k})
	}
	return pairs
}

// fold replaces long equal parts by one row.
func (d *textDiff) fold(all []diffRow) {
	near := make([]bool, len(all))
	for i, r := range all {
		if r.Kind != "same" {
			for k := max(0, i-diffContext); k <= min(len(all)-1, i+diffContext); k++ {
				near[k] = true
			}
		}
	}
	for i := 0; i < len(all); {
		if near[i] {
			d.Rows = append(d.Rows, all[i])
			i++
			continue
		}
		n := 0
		for i < len(all) && !near[i] {
			n, i = n+1, i+1
		}
		d.Rows = append(d.Rows, diffRow{Kind: "fold", Fold: plural(n, "line is the same", "lines are the same")})
	}
	if len(d.Rows) > maxDiffRows {
		rest := len(d.Rows) - maxDiffRows
		d.Rows = append(d.Rows[:maxDiffRows], diffRow{Kind: "fold", Fold: plural(rest, "more row is", "more rows are") + " not shown"})
	}
}

// insertedLines are the numbers of the lines of now that before does not have.
func insertedLines(before, now string) map[int]bool {
	b := lines(now)
	a := lines(before)
	inserted := map[int]bool{}
	if len(a) > maxDiffLines || len(b) > maxDiffLines {
		return inserted
	}
	for i := range b {
		inserted[i+1] = true
	}
	for _, m := range matches(a, b) {
		delete(inserted, m[1]+1)
	}
	return inserted
}
