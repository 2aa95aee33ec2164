// SPDX-License-Identifier: Apache-2.0

// Package textdiff compares texts line by line, and merges two edited versions of a text.
package textdiff

import (
	"strings"

	"github.com/aryann/difflib"

	"github.com/robotspolicy/caddy-robots-policy/internal/leaf/english"
)

// Row is a row of a side-by-side comparison of two texts.
type Row struct {
	Kind         string // same, ins, del or fold (lines that are left out)
	OldNo, NewNo int
	Old, New     string // for fold, Old describes the lines that are left out
}

// Diff is a side-by-side comparison of two texts. Long parts that are equal in both texts are left out, and a row of
// the kind "fold" stands for each of them.
type Diff struct {
	Rows           []Row
	Added, Removed int
	Long           bool // the texts are too long to compare
}

// Limits of a comparison.
const (
	maxTable = 4_000_000 // the library needs a table of all pairs of lines
	context  = 3
	maxRows  = 400
)

// Compare compares two texts line by line.
func Compare(before, now string) *Diff {
	d := &Diff{}
	all, ok := Rows(before, now)
	if !ok {
		d.Long = true
		return d
	}
	near := make([]bool, len(all))
	for i, r := range all {
		switch r.Kind {
		case "del":
			d.Removed++
		case "ins":
			d.Added++
		default:
			continue
		}
		for k := max(0, i-context); k <= min(len(all)-1, i+context); k++ {
			near[k] = true
		}
	}
	for i := 0; i < len(all); {
		n := i
		for i < len(all) && !near[i] {
			i++
		}
		if n = i - n; n > 0 {
			d.Rows = append(d.Rows, Row{Kind: "fold", Old: english.Count(n, "line") + " in both"})
			continue
		}
		d.Rows = append(d.Rows, all[i])
		i++
	}
	if rest := len(d.Rows) - maxRows; rest > 0 {
		d.Rows = append(d.Rows[:maxRows], Row{Kind: "fold", Old: "and " + english.Count(rest, "row") + " more"})
	}
	return d
}

// Rows returns all rows of a comparison. ok is false if the texts are too long.
func Rows(before, now string) (rows []Row, ok bool) {
	a, b := lines(before), lines(now)
	for len(a) > 0 && len(b) > 0 && a[0] == b[0] {
		n := len(rows) + 1
		rows = append(rows, Row{Kind: "same", OldNo: n, NewNo: n, Old: a[0], New: a[0]})
		a, b = a[1:], b[1:]
	}
	end := 0 // number of equal lines at the end of both texts
	for end < len(a) && end < len(b) && a[len(a)-1-end] == b[len(b)-1-end] {
		end++
	}
	if (len(a)-end)*(len(b)-end) > maxTable {
		return nil, false
	}
	oldNo, newNo := len(rows), len(rows)
	records := difflib.Diff(a[:len(a)-end], b[:len(b)-end])
	for _, line := range a[len(a)-end:] {
		records = append(records, difflib.DiffRecord{Payload: line, Delta: difflib.Common})
	}
	for _, record := range records {
		r := Row{Kind: map[difflib.DeltaType]string{difflib.Common: "same", difflib.LeftOnly: "del", difflib.RightOnly: "ins"}[record.Delta]}
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

// lines splits a text into lines. A final line break does not begin another line.
func lines(s string) []string {
	if s = strings.TrimSuffix(strings.ReplaceAll(s, "\r\n", "\n"), "\n"); s == "" {
		return nil
	}
	return strings.Split(s, "\n")
}
