// SPDX-License-Identifier: Apache-2.0

package console

import (
	"strings"

	"github.com/aryann/difflib"
)

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
	maxDiffLines = 2000 // the library has a table of len × len
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
	d := &textDiff{}
	all, ok := diffRows(before, now)
	if !ok {
		d.Long = before != now
		return d
	}
	for _, r := range all {
		switch r.Kind {
		case "del":
			d.Removed++
		case "ins":
			d.Added++
		}
	}
	d.fold(all)
	return d
}

// diffRows are all rows of a comparison; false if the texts are too long for one.
func diffRows(before, now string) (rows []diffRow, ok bool) {
	a, b := lines(before), lines(now)
	if len(a) > maxDiffLines || len(b) > maxDiffLines {
		return nil, false
	}
	oldNo, newNo := 0, 0
	for _, record := range difflib.Diff(a, b) {
		r := diffRow{Kind: map[difflib.DeltaType]string{difflib.Common: "same", difflib.LeftOnly: "del", difflib.RightOnly: "ins"}[record.Delta]}
		if record.Delta != difflib.RightOnly {
			oldNo++
			r.OldNo, r.Old = oldNo, record.Payload
		}
		if record.Delta != difflib.LeftOnly {
			newNo++
			r.NewNo, r.New = newNo, record.Payload
		}
		rows = append(rows, r)
	}
	return rows, true
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
	inserted := map[int]bool{}
	rows, _ := diffRows(before, now)
	for _, r := range rows {
		if r.Kind == "ins" {
			inserted[r.NewNo] = true
		}
	}
	return inserted
}
